"""What is shown of an evaluation: means of all questions, of each source and each language, and the worst answers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from docindex_dagster.evaluation.asking import Answer
from docindex_dagster.evaluation.bootstrap import Interval, intervals
from docindex_dagster.evaluation.metrics import NAMES
from docindex_dagster.evaluation.sampling import random_number

ALL = "all"


@dataclass(frozen=True, slots=True)
class Figures:
    """The metrics of some questions, in the order of `metrics.NAMES`."""

    name: str
    questions: int
    metrics: Sequence[Interval]

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it: each metric with its mean and the ends of its interval."""
        metrics = {name: metric._asdict() for name, metric in zip(NAMES, self.metrics, strict=True)}
        return {"name": self.name, "questions": self.questions, **metrics}


@dataclass(frozen=True, slots=True)
class Report:
    """How good a search is."""

    total: Figures
    by_source: Sequence[Figures]
    by_language: Sequence[Figures]
    worst: Sequence[Answer]

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "total": self.total.as_dict(),
            "by_source": [one.as_dict() for one in self.by_source],
            "by_language": [one.as_dict() for one in self.by_language],
            "worst": [described(answer) for answer in self.worst],
        }


def report(answers: Sequence[Answer], worst: int = 10) -> Report:
    """The figures of some answers, and so many of the worst ones.

    Raises:
        ValueError: there are no answers.
    """
    if not answers:
        raise ValueError("there are no answers to report on")
    return Report(
        figures(ALL, answers),
        [figures(name, some) for name, some in grouped(answers, lambda answer: answer.question.source)],
        [figures(name, some) for name, some in grouped(answers, lambda answer: answer.question.language)],
        sorted(answers, key=_goodness)[:worst],
    )


def figures(name: str, answers: Sequence[Answer]) -> Figures:
    """The figures of at least one answer."""
    return Figures(name, len(answers), intervals([answer.scores for answer in answers]))


def grouped(answers: Sequence[Answer], key: Callable[[Answer], str]) -> Iterable[tuple[str, list[Answer]]]:
    """Answers by what they have in common, the largest group first."""
    found: dict[str, list[Answer]] = {}
    for answer in answers:
        found.setdefault(key(answer), []).append(answer)
    return sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))


def described(answer: Answer) -> dict[str, Any]:
    """An answer as JSON has it: what was asked, what was wanted and at which ranks that is, and what was found."""
    question = answer.question
    return {
        "name": question.name,
        "question": question.text,
        "source": question.source,
        "wanted": [
            {"path": str(target), "rank": rank} for target, rank in zip(question.targets, answer.ranks, strict=True)
        ],
        "ndcg_10": round(answer.scores.ndcg_10, 4),
        "found": [str(place) for place in answer.places],
    }


def _goodness(answer: Answer) -> tuple[float, float, bytes]:
    """By its scores; of equals, any of all sources come first."""
    return answer.scores.ndcg_10, answer.scores.mrr, random_number(answer.question)
