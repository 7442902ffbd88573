"""What is shown of an evaluation: means of all questions, of each source and each language, and the worst answers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from docindex_dagster.evaluation.metrics import NAMES, Interval, intervals
from docindex_dagster.evaluation.questions import random_number
from docindex_dagster.evaluation.retrieval_runs import Answer

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
