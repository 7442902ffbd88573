"""Two configurations on the same questions: the differences of their metrics, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from docindex_dagster.evaluation.asking import Answer
from docindex_dagster.evaluation.bootstrap import Interval, intervals
from docindex_dagster.evaluation.metrics import NAMES
from docindex_dagster.evaluation.report import ALL, Figures, described, figures, grouped
from docindex_dagster.evaluation.sampling import random_number


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the second configuration gives, and how much more than the first one."""

    total: Figures  # of the second
    difference: Figures
    by_source: Sequence[Figures]  # differences
    changed: Sequence[tuple[Answer, Answer]]  # of which the ranks differ most, the first and the second answer

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "total": self.total.as_dict(),
            "difference": self.difference.as_dict(),
            "verdict": {name: verdict(one) for name, one in zip(NAMES, self.difference.metrics, strict=True)},
            "by_source": [one.as_dict() for one in self.by_source],
            "changed": [{"first": described(before), "second": described(after)} for before, after in self.changed],
        }


def compare(first: Sequence[Answer], second: Sequence[Answer], shown: int = 10) -> Comparison:
    """Compare the answers of two configurations to the same questions, and list so many of those that differ most.

    Raises:
        ValueError: the questions are not the same, or there are none.
    """
    if not first or [answer.question for answer in first] != [answer.question for answer in second]:
        raise ValueError("two configurations are compared on the same questions")
    after = {answer.question: answer for answer in second}
    pairs = [(answer, after[answer.question]) for answer in first]
    by_source = [
        _difference(name, [(answer, after[answer.question]) for answer in some])
        for name, some in grouped(first, lambda answer: answer.question.source)
    ]
    differing = [pair for pair in pairs if pair[0].scores != pair[1].scores]
    changed = sorted(differing, key=lambda pair: (-abs(_gain(pair)), random_number(pair[0].question)))[:shown]
    return Comparison(figures(ALL, second), _difference(ALL, pairs), by_source, changed)


def verdict(difference: Interval) -> str:
    """What a difference means: nothing is shown where its interval has zero in it."""
    if not difference.excludes_zero:
        return "no difference is shown"
    return "better" if difference.mean > 0 else "worse"


def _difference(name: str, pairs: Sequence[tuple[Answer, Answer]]) -> Figures:
    rows = [[after - before for before, after in zip(one.scores, two.scores, strict=True)] for one, two in pairs]
    return Figures(name, len(pairs), intervals(rows))


def _gain(pair: tuple[Answer, Answer]) -> float:
    before, after = pair
    return after.scores.ndcg_10 - before.scores.ndcg_10
