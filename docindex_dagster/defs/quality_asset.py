"""The asset `retrieval_quality`: nightly measurements of search quality, and a check that warns of a drop.

It has its own job and schedule, so that runs of sources do not wait for it. See docs/how-to/evaluate-search.md.
"""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

from docindex_dagster.core.access import writable_home
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.defs import dead_runs, metadata
from docindex_dagster.defs.outcomes import as_dagster_failure
from docindex_dagster.defs.resources import Project

if TYPE_CHECKING:
    from docindex_dagster.evaluation.nightly_results import Change, Night
    from docindex_dagster.evaluation.report import Figures, Report

QUALITY = dg.AssetKey("retrieval_quality")
EVALUATION = "evaluation"  # the asset group
_AS_BEFORE = "retrieval_is_as_good_as_before"
_ROWS = 200  # in a table
_PLACES = 3  # per question
_ADVICE = (
    "See which questions have different answers now (`worst`, and `docindex evaluate`), and what changed: the "
    "settings, the version of docindex, or files that resemble the expected answers."
)


@dg.asset(
    key=QUALITY,
    deps=["lancedb_table", "tantivy_index"],
    group_name=EVALUATION,
    kinds={"json"},
    code_version="1",
    check_specs=[
        metadata.check_spec(
            _AS_BEFORE,
            QUALITY,
            "Warns when NDCG@10 drops, for all sources or for one: over the questions that recent nights also asked, "
            "the entire 95 % interval of the difference is below zero, and the mean drop is not negligible. See "
            "docs/how-to/evaluate-search.md.",
        )
    ],
)
@as_dagster_failure
def retrieval_quality(context: dg.AssetExecutionContext, project: Project) -> Iterator[dg.MaterializeResult[None]]:
    """Search quality of this project, measured with questions from its own history and from its users.

    The job `evaluate_retrieval` measures it every night. See docs/how-to/evaluate-search.md.
    """
    from docindex_dagster.evaluation.nightly_results import evaluate_night

    started = time.perf_counter()
    settings = project.read_settings()
    dead_runs.record_process(context.instance, settings, context.run.run_id)
    with writable_home(settings):
        night = evaluate_night(settings, context.log.warning)
    yield dg.MaterializeResult(
        data_version=dg.DataVersion(_version(night)),
        metadata={**_metadata(night), "seconds": metadata.seconds_since(started)},
        check_results=[_check(night)],
    )


def _version(night: "Night") -> str:
    from docindex_dagster.evaluation import nightly_results

    scores = ((nightly_results.identity(answer.question), repr(answer.scores)) for answer in night.answers)
    return digest_parts(*(part for pair in scores for part in pair))


def _metadata(night: "Night") -> dict[str, Any]:
    """Return the metrics over all questions, then tables of sources, languages and the worst questions."""
    from docindex_dagster.evaluation.metrics import NAMES

    found = night.report
    if found is None:
        return {"questions": 0}
    numbers = {
        label: value
        for name, metric in zip(NAMES, found.total.metrics, strict=True)
        for label, value in ((name, metric.mean), (f"{name}_low", metric.low), (f"{name}_high", metric.high))
    }
    return {
        "questions": found.total.questions,
        **numbers,
        **_difference(night),
        "by_source": _table(found.by_source),
        "by_language": _table(found.by_language),
        "worst": _worst(found),
    }


def _difference(night: "Night") -> dict[str, Any]:
    """Return the change from recent nights over the same questions, if there are enough of them."""
    total = night.changes[0]
    return {} if total.difference is None else {"change": total.difference.mean, "compared": total.questions}


def _table(found: "Sequence[Figures]") -> dg.TableMetadataValue:
    from docindex_dagster.evaluation.metrics import LABELS

    rows = [
        {
            "name": figures.name,
            "questions": figures.questions,
            **{
                label: f"{metric.mean:.3f} ({metric.low:.3f} to {metric.high:.3f})"
                for label, metric in zip(LABELS, figures.metrics, strict=True)
            },
        }
        for figures in found[:_ROWS]
    ]
    return metadata.records(rows, ["name", "questions", *LABELS])


def _worst(found: "Report") -> dg.TableMetadataValue:
    rows = [
        (
            answer.question.source,
            answer.question.text,
            ", ".join(map(str, answer.question.targets)),
            ", ".join(map(str, answer.places[:_PLACES])),
        )
        for answer in found.worst
    ]
    return metadata.texts(("source", "question", "wanted", "found"), rows)


def _check(night: "Night") -> dg.AssetCheckResult:
    drops = {change.name: _reason(change) for change in night.changes if change.is_drop}
    return metadata.warning(_AS_BEFORE, drops, _ADVICE)


def _reason(change: "Change") -> str:
    if change.difference is None:
        return ""
    mean, low, high = change.difference
    return f"NDCG@10 {mean:+.3f} ({low:+.3f} to {high:+.3f}) over {change.questions:,} questions also asked recently"
