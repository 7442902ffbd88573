"""The asset `memory`: what was said in a domain, folded from its log into stores of its own; its job, and its sensor.

A domain in which much was said, or something long ago, is asked for; its partition lives as long as it.

Dagster's record holds numbers, and no word of a message: what is forgotten could not be erased there. An extractor, a
chunker or the API of a model may quote what it was given, so neither their errors nor their warnings go into it.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
from pydantic import Field

from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings
from docindex_dagster.defs import dead_runs, metadata
from docindex_dagster.defs.outcomes import CANCELED, FINISHED, MOST_REQUESTS, LastRuns, as_dagster_failure, last_runs
from docindex_dagster.defs.resources import Project
from docindex_dagster.defs.sensors import MEMORY_INTERVAL_S, Remembered
from docindex_dagster.defs.tags import DOMAINS, DOMAINS_NAME, PARTITION_TAG, REASON_TAG
from docindex_dagster.memory import domains
from docindex_dagster.memory.fold import fold, is_wordless, reason, state_of, why_due
from docindex_dagster.memory.log import open_log
from docindex_dagster.memory.results import Folding

MEMORY = dg.AssetKey("memory")
_LOG_IS_WHOLE = "the_log_is_whole"
_NOTHING = "nothing"  # the data version of a domain in which nothing was said
# A tick may take 60 s; what is not looked at within the budget is first in the next tick.
_BUDGET_S = 40


@dg.asset(
    partitions_def=DOMAINS,
    group_name="memory",
    kinds={"lancedb", "tantivy"},
    code_version="1",
    check_specs=[
        metadata.check_spec(
            _LOG_IS_WHOLE,
            MEMORY,
            "Warns when bytes of the log of a domain are damaged, and names them; all other messages are folded. The "
            "damaged ones are lost unless a back-up has them.",
            DOMAINS,
        )
    ],
)
@as_dagster_failure
def memory(context: dg.AssetExecutionContext, project: Project) -> Iterator[dg.MaterializeResult[None]]:
    """What agents, their users and their tools said in a domain, searchable from stores of its own.

    It is searchable before, too: a search of a domain looks at its log as well. A run folds what the log has since the
    last one, and erases what is forgotten. The sensor `memory` asks for it. See docs/operations.md, “Memory”.
    """
    started = time.perf_counter()
    settings, key = project.read_settings(), context.partition_key
    dead_runs.begin(context.instance, settings, context.run.run_id)
    flaws = _flaws(settings, key)
    done = _folded(context, settings, key)
    yield dg.MaterializeResult(
        data_version=dg.DataVersion(done.version or _NOTHING),
        metadata={**_metadata(done), "seconds": metadata.seconds_since(started)},
        check_results=[
            dg.AssetCheckResult(
                passed=not flaws,
                severity=dg.AssetCheckSeverity.WARN,
                check_name=_LOG_IS_WHOLE,
                metadata={"count": len(flaws), **({"where": metadata.texts(("place",), flaws)} if flaws else {})},
            )
        ],
    )


def _folded(context: dg.AssetExecutionContext, settings: Settings, key: str) -> Folding:
    """Fold a domain; of an error that may quote what was said, nothing but its kind is recorded."""
    try:
        return fold(settings, key, on_wait=lambda owner: context.log.info(f"{key} waits for {owner}"))
    except Exception as error:
        if is_wordless(error):
            raise
        raise dg.Failure(reason(error, key), allow_retries=False) from None


def _flaws(settings: Settings, key: str) -> list[tuple[str]]:
    """Where the log is damaged, by segment and byte."""
    found = open_log(Layout(settings.home), key).read().flaws
    return [(f"{each.position.segment} at byte {each.position.start:,}",) for each in found if not each.is_torn]


def _metadata(done: Folding) -> dict[str, Any]:
    return {
        "dagster/partition_row_count": done.chunks,
        "messages": done.messages,
        "added": done.added,
        "removed": done.removed,
        "chunks": done.chunks,
        "concepts": done.concepts,
        "edges": done.edges,
        **({} if done.generation is None else {"generation": done.generation}),
        **({"erased": len(done.receipt.forgotten), "erased_files": done.receipt.files} if done.receipt else {}),
        "warnings": len(done.warnings),
    }


fold_memory = dg.define_asset_job(
    "fold_memory",
    selection=dg.AssetSelection.assets(MEMORY),
    description="Fold what was said in one domain since the last fold into its stores, and erase what is forgotten. "
    "See docs/operations.md, “Memory”.",
)


class _Asked(Remembered):
    """For which state of a domain a run was asked for, and when."""

    state: str = ""
    at: float = 0  # seconds since 1970; 0: none was


class _Cursor(Remembered):
    """The cursor: the domains in the order in which they were looked at."""

    asked: dict[str, _Asked] = Field(default_factory=dict)


@dg.sensor(
    name="memory",
    job=fold_memory,
    minimum_interval_seconds=MEMORY_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Keeps the partitions of memory and its domains in agreement, and asks for a run of each domain in "
    "which memory.fold_messages wait, one waits for memory.fold_minutes, or something is to be erased. See "
    "docs/operations.md, “Memory”.",
)
def memory_due(context: dg.SensorEvaluationContext, project: Project) -> dg.SensorResult:
    """Look at the domains, those looked at longest ago first, within the budget."""
    settings = project.read_settings()
    return _Tick(context, settings, _Cursor.of(context.cursor)).look_at(domains.domains(Layout(settings.home)))


@dataclass(frozen=True, slots=True)
class _Tick:
    """One look over the domains."""

    context: dg.SensorEvaluationContext
    settings: Settings
    before: _Cursor
    started: float = field(default_factory=time.monotonic)

    def look_at(self, keys: Sequence[str]) -> dg.SensorResult:
        """Ask for the domains that are due, and bring the partitions up to date."""
        asked = {key: value for key, value in self.before.asked.items() if key in keys}
        position = {key: index for index, key in enumerate(asked)}
        requests: list[dg.RunRequest] = []
        looked_at = 0
        for key in sorted(keys, key=lambda key: position.get(key, -1)):
            if time.monotonic() - self.started > _BUDGET_S or len(requests) == MOST_REQUESTS:
                break
            looked_at += 1
            asked[key], request = self._follow_up(key, asked.pop(key, _Asked()))  # goes to the end of the order
            if request is not None:
                requests.append(request)
        partitions = set(self.context.instance.get_dynamic_partitions(DOMAINS_NAME))
        add = sorted(set(keys) - partitions)
        gone = [key for key in sorted(partitions - set(keys)) if _without_runs(self.context.instance, key)]
        idle = f"looked at {looked_at} of {len(keys)} domains; nothing to ask for"
        return dg.SensorResult(
            run_requests=requests,
            skip_reason=None if requests else dg.SkipReason(idle),
            dynamic_partitions_requests=[
                *([DOMAINS.build_add_request(add)] if add else []),
                *([DOMAINS.build_delete_request(gone)] if gone else []),
            ],
            cursor=_Cursor(asked=asked).model_dump_json(),
        )

    def _follow_up(self, key: str, before: _Asked) -> tuple[_Asked, dg.RunRequest | None]:
        """What to remember of a domain, and the run to ask for if it is time."""
        try:
            reason = why_due(self.settings, key, now=time.time)
            state = state_of(domains.home(Layout(self.settings.home), key))
        except (DocindexError, OSError) as error:
            self.context.log.warning(f"{key}: {error}")
            return before, None
        if reason is None:
            return _Asked(), None
        last = last_runs(self.context.instance, {PARTITION_TAG: key})
        if not self._is_time(last, before, state):
            return before, None
        return _Asked(state=state, at=time.time()), dg.RunRequest(partition_key=key, tags={REASON_TAG: reason})

    def _is_time(self, last: LastRuns, before: _Asked, state: str) -> bool:
        """Whether a run of a domain that is due may be asked for."""
        if not last.may_ask():
            return False
        if last.status in CANCELED and time.time() < last.ended + self.settings.memory.fold_minutes * 60:
            return False
        # It ran for what there is now, and nothing came of it: asking again would bring the same.
        is_done = before.state == state and last.began >= before.at and not last.failures
        return not is_done


def _without_runs(instance: dg.DagsterInstance, key: str) -> bool:
    """Delete runs of a domain that is gone, a few in each tick; whether none is left.

    Its partition, if it were added again, would show them as its own.
    """
    runs = instance.get_runs(dg.RunsFilter(tags={PARTITION_TAG: key}), limit=MOST_REQUESTS)
    for run in runs:
        if run.status in FINISHED:
            instance.delete_run(run.run_id)
    return not runs or (len(runs) < MOST_REQUESTS and all(run.status in FINISHED for run in runs))
