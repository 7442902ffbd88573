"""Printing an evaluation: tables of metrics with their intervals, a comparison, and the worst questions."""

from collections.abc import Iterable, Sequence

from rich.text import Text

from docindex_dagster.cli import console
from docindex_dagster.core.printable import in_line
from docindex_dagster.evaluation.asking import Answer
from docindex_dagster.evaluation.metrics import LABELS, Interval
from docindex_dagster.evaluation.report import Comparison, Figures, verdict
from docindex_dagster.evaluation.run import Evaluation

_PLACES = 3  # of what was found instead


def evaluation(found: Evaluation) -> None:
    """Print all of it."""
    for origin in found.origins:
        console.out.print(in_line(origin))
    if found.left_out:
        console.out.print(f"{console.count(found.left_out, 'question')} left out: the second index lacks their answers")
    report = found.report
    _table("", [report.total, *(report.by_source if len(report.by_source) > 1 else ())])
    _table("by language", report.by_language)
    if found.comparison is not None:
        _comparison(report.total, found.comparison)
    if report.worst:
        console.out.print(Text("\nthe worst questions", "bold"))
    for answer in report.worst:
        _answer(answer)


def _table(title: str, rows: Iterable[Figures]) -> None:
    cells = [(row.name, row.questions, *map(_interval, row.metrics)) for row in rows]
    console.out.print()
    console.table((title or "source", "questions", *LABELS), cells)


def _interval(found: Interval) -> str:
    return f"{found.mean:.3f} ({found.low:.3f} to {found.high:.3f})"


def _comparison(first: Figures, found: Comparison) -> None:
    rows = [
        (label, f"{one.mean:.3f}", f"{two.mean:.3f}", _signed(by), verdict(by))
        for label, one, two, by in zip(
            LABELS, first.metrics, found.total.metrics, found.difference.metrics, strict=True
        )
    ]
    console.out.print()
    console.table(("the second", "first", "second", "difference", ""), rows)
    if len(found.by_source) > 1:
        console.out.print()
        ndcg = [
            (row.name, row.questions, _signed(row.metrics[-1]), verdict(row.metrics[-1])) for row in found.by_source
        ]
        console.table((f"{LABELS[-1]} of", "questions", "difference", ""), ndcg)
    if found.changed:
        console.out.print(Text("\nthe questions that differ most", "bold"))
    for before, after in found.changed:
        _answer(before)
        _found("   second", after)


def _signed(found: Interval) -> str:
    return f"{found.mean:+.3f} ({found.low:+.3f} to {found.high:+.3f})"


def _answer(answer: Answer) -> None:
    question = answer.question
    line = Text(f"{answer.scores.ndcg_10:.3f} ", "dim").append(in_line(question.text), "bold")
    console.out.print(line.append(in_line(f"  {question.name}"), "dim"))
    wanted = (f"{target}{_rank(rank)}" for target, rank in zip(question.targets, answer.ranks, strict=True))
    console.out.print(Text(in_line(f"   wanted {', '.join(wanted)}")))
    _found("   found ", answer)


def _rank(rank: int | None) -> str:
    return "" if rank is None else f" (#{rank})"


def _found(label: str, answer: Answer) -> None:
    places: Sequence[str] = [str(place) for place in answer.places[:_PLACES]]
    console.out.print(Text(in_line(f"{label} {', '.join(places) or 'nothing'}"), "dim"))
