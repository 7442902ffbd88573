"""The `docindex evaluate` command: search quality on the user's own repositories."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from docindex_dagster.cli.common import Json, Sources, reader_of
from docindex_dagster.cli.selected_project import load_project
from docindex_dagster.core.safe_text import on_one_line
from docindex_dagster.evaluation import COMMITS, QUESTIONS
from docindex_dagster.render import console
from docindex_dagster.search.model import RETRIEVING, Mode
from docindex_dagster.sources.paths import check_redirection

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from docindex_dagster.core.settings import Settings
    from docindex_dagster.evaluation.metrics import Interval
    from docindex_dagster.evaluation.report import Comparison, Figures
    from docindex_dagster.evaluation.retrieval_runs import QuestionResult
    from docindex_dagster.evaluation.run import Evaluation

_MAX_PLACES = 3  # results listed for a question


def evaluate(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="A file of questions: .csv with the columns question and path (PATH, PATH:LINE or PATH:FIRST-LAST) "
            "and optionally source, or .jsonl with these keys. Without a file, commit subjects are the questions and "
            "the files they changed are the expected results.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    source: Sources = None,
    all_sources: Annotated[bool, typer.Option("--all", "-a", help="Evaluate all sources, including branches.")] = False,
    commits: Annotated[
        int, typer.Option("--commits", "-n", min=1, max=1_000_000, help="Number of recent commits to read per source.")
    ] = COMMITS,
    questions: Annotated[
        int, typer.Option("--questions", "-q", min=0, help="Number of questions to sample per source; 0 means all.")
    ] = QUESTIONS,
    seed: Annotated[int, typer.Option(help="Seed for sampling the questions.")] = 0,
    mode: Annotated[Mode, typer.Option("--mode", "-m", help="Retrieval mode: " + ", ".join(RETRIEVING) + ".")] = (
        Mode.HYBRID
    ),
    rerank: Annotated[
        str | None,
        typer.Option(
            "--rerank", help="Reranker: none, mmr, cross-encoder, remote, or one from a plugin.", show_default=False
        ),
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option(
            "--compare",
            metavar="FILE.toml",
            help="Also evaluate a second configuration and compare. The file contains what differs: mode, home, and "
            "the tables search, rerank, embedding and weights.",
            show_default=False,
        ),
    ] = None,
    worst: Annotated[
        int, typer.Option("--worst", "-w", min=0, max=100_000, help="Number of worst questions to show.")
    ] = 10,
    json: Json = False,
) -> None:
    """Measure search quality on your own repositories.

    Show Hit@1, Hit@5, Hit@10, MRR and NDCG@10 with 95% intervals, by source and
    by language, and the questions with the worst results.
    """
    from docindex_dagster.evaluation.configuration import Configuration, read_configuration
    from docindex_dagster.evaluation.run import QuestionSelection, find_questions
    from docindex_dagster.evaluation.run import evaluate as evaluated
    from docindex_dagster.search.scope import keys_of

    if mode not in RETRIEVING:
        raise typer.BadParameter(f"must be one of {', '.join(RETRIEVING)}", param_hint="--mode")
    for named in filter(None, (file, compare)):
        check_redirection(named)
    settings = load_project()
    first = Configuration(_reranked(settings, rerank), mode)
    second = None if compare is None else read_configuration(first, compare)
    reader = reader_of(settings)
    keys = keys_of(settings, reader.generation, source or (), all_sources=all_sources)
    wanted = QuestionSelection(keys, commits, questions or None, seed, file)
    started = time.perf_counter()
    sample = find_questions(settings, reader, wanted, console.warning)
    if console.err.is_terminal:
        console.err.print(f"asking {console.count(len(sample.questions), 'question')}")
    found = evaluated(first, reader, sample, other=second, sources=keys, worst=worst, warn=console.warning)
    if json:
        console.as_json(found.as_dict())
    else:
        _show(found)
    console.err.print(f"{console.count(len(sample.questions), 'question')} in {time.perf_counter() - started:.1f} s")


def _reranked(settings: "Settings", rerank: str | None) -> "Settings":
    """Return the settings with another reranker."""
    if rerank is None:
        return settings
    from docindex_dagster.search.service import rerank_settings

    return settings.model_copy(update={"rerank": rerank_settings(settings.rerank, rerank)})


def _show(found: "Evaluation") -> None:
    for origin in found.origins:
        console.out.print(on_one_line(origin))
    if found.left_out:
        skipped = console.count(found.left_out, "question")
        console.out.print(f"{skipped} skipped: their answers are not in the second index")
    report = found.report
    _table("", [report.total, *(report.by_source if len(report.by_source) > 1 else ())])
    _table("by language", report.by_language)
    if found.comparison is not None:
        _comparison(report.total, found.comparison)
    if report.worst:
        console.out.print(Text("\nworst questions", "bold"))
    for answer in report.worst:
        _answer(answer)


def _table(title: str, rows: "Iterable[Figures]") -> None:
    from docindex_dagster.evaluation.metrics import LABELS

    cells = [(row.name, row.questions, *map(_interval, row.metrics)) for row in rows]
    console.out.print()
    console.table((title or "source", "questions", *LABELS), cells)


def _interval(found: "Interval") -> str:
    return f"{found.mean:.3f} ({found.low:.3f} to {found.high:.3f})"


def _comparison(first: "Figures", found: "Comparison") -> None:
    from docindex_dagster.evaluation.metrics import LABELS
    from docindex_dagster.evaluation.report import verdict

    rows = [
        (label, f"{one.mean:.3f}", f"{two.mean:.3f}", _signed(by), verdict(by))
        for label, one, two, by in zip(
            LABELS, first.metrics, found.total.metrics, found.difference.metrics, strict=True
        )
    ]
    console.out.print()
    console.table(("metric", "first", "second", "difference", ""), rows)
    if len(found.by_source) > 1:
        console.out.print()
        ndcg = [
            (row.name, row.questions, _signed(row.metrics[-1]), verdict(row.metrics[-1])) for row in found.by_source
        ]
        console.table((f"{LABELS[-1]} by source", "questions", "difference", ""), ndcg)
    if found.changed:
        console.out.print(Text("\nquestions that differ most", "bold"))
    for before, after in found.changed:
        _answer(before)
        _found("   second  ", after)


def _signed(found: "Interval") -> str:
    return f"{found.mean:+.3f} ({found.low:+.3f} to {found.high:+.3f})"


def _answer(answer: "QuestionResult") -> None:
    question = answer.question
    line = Text(f"{answer.scores.ndcg_10:.3f} ", "dim").append(on_one_line(question.text), "bold")
    console.out.print(line.append(on_one_line(f"  {question.name}"), "dim"))
    expected = (f"{target}{_rank(rank)}" for target, rank in zip(question.targets, answer.ranks, strict=True))
    console.out.print(Text(on_one_line(f"   expected {', '.join(expected)}")))
    _found("   found   ", answer)


def _rank(rank: int | None) -> str:
    return "" if rank is None else f" (#{rank})"


def _found(label: str, answer: "QuestionResult") -> None:
    places: Sequence[str] = [str(place) for place in answer.places[:_MAX_PLACES]]
    console.out.print(Text(on_one_line(f"{label} {', '.join(places) or 'nothing'}"), "dim"))
