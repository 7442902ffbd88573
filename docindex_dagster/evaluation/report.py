"""The report of an evaluation: means over all questions, by source and by language, and the worst answers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from docindex_dagster.evaluation.metrics import NAMES, Interval, intervals
from docindex_dagster.evaluation.questions import random_number
from docindex_dagster.evaluation.retrieval_runs import QuestionResult

ALL = "all"


@dataclass(frozen=True, slots=True)
class Figures:
    """The metrics of a group of questions, in the order of `metrics.NAMES`."""

    name: str
    questions: int
    metrics: Sequence[Interval]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form: each metric with its mean and the bounds of its interval."""
        metrics = {name: metric._asdict() for name, metric in zip(NAMES, self.metrics, strict=True)}
        return {"name": self.name, "questions": self.questions, **metrics}


@dataclass(frozen=True, slots=True)
class Report:
    """The metrics of a search, and its worst answers."""

    total: Figures
    by_source: Sequence[Figures]
    by_language: Sequence[Figures]
    worst: Sequence[QuestionResult]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "total": self.total.as_dict(),
            "by_source": [one.as_dict() for one in self.by_source],
            "by_language": [one.as_dict() for one in self.by_language],
            "worst": [answer_as_dict(answer) for answer in self.worst],
        }


def report(answers: Sequence[QuestionResult], worst: int = 10) -> Report:
    """Return the figures of the answers, and the `worst` worst ones.

    Raises:
        ValueError: There are no answers.
    """
    if not answers:
        raise ValueError("no answers to report on")
    return Report(
        figures(ALL, answers),
        [figures(name, some) for name, some in grouped(answers, lambda answer: answer.question.source)],
        [figures(name, some) for name, some in grouped(answers, lambda answer: answer.question.language)],
        sorted(answers, key=_goodness)[:worst],
    )


def figures(name: str, answers: Sequence[QuestionResult]) -> Figures:
    """Return the figures of at least one answer."""
    return Figures(name, len(answers), intervals([answer.scores for answer in answers]))


def grouped(
    answers: Sequence[QuestionResult], key: Callable[[QuestionResult], str]
) -> Iterable[tuple[str, list[QuestionResult]]]:
    """Group answers by a key, the largest group first."""
    found: dict[str, list[QuestionResult]] = {}
    for answer in answers:
        found.setdefault(key(answer), []).append(answer)
    return sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))


def answer_as_dict(answer: QuestionResult) -> dict[str, Any]:
    """Return the JSON form of an answer: the question, the expected targets with their ranks, and what was found."""
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


def _goodness(answer: QuestionResult) -> tuple[float, float, bytes]:
    """Sort by score; break ties pseudorandomly, so that no source comes first."""
    return answer.scores.ndcg_10, answer.scores.mrr, random_number(answer.question)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The figures of the second configuration, and their difference from the first."""

    total: Figures  # of the second configuration
    difference: Figures
    by_source: Sequence[Figures]  # differences
    changed: Sequence[
        tuple[QuestionResult, QuestionResult]
    ]  # the pairs that differ most: the first and the second answer

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "total": self.total.as_dict(),
            "difference": self.difference.as_dict(),
            "verdict": {name: verdict(one) for name, one in zip(NAMES, self.difference.metrics, strict=True)},
            "by_source": [one.as_dict() for one in self.by_source],
            "changed": [
                {"first": answer_as_dict(before), "second": answer_as_dict(after)} for before, after in self.changed
            ],
        }


def compare(first: Sequence[QuestionResult], second: Sequence[QuestionResult], shown: int = 10) -> Comparison:
    """Compare the answers of two configurations to the same questions, and list the `shown` pairs that differ most.

    Raises:
        ValueError: The questions differ, or there are none.
    """
    if not first or [answer.question for answer in first] != [answer.question for answer in second]:
        raise ValueError("both configurations must answer the same questions")
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
    """Return the verdict on a difference. An interval that contains zero shows no difference."""
    if not difference.excludes_zero:
        return "no difference is shown"
    return "better" if difference.mean > 0 else "worse"


def _difference(name: str, pairs: Sequence[tuple[QuestionResult, QuestionResult]]) -> Figures:
    rows = [[after - before for before, after in zip(one.scores, two.scores, strict=True)] for one, two in pairs]
    return Figures(name, len(pairs), intervals(rows))


def _gain(pair: tuple[QuestionResult, QuestionResult]) -> float:
    before, after = pair
    return after.scores.ndcg_10 - before.scores.ndcg_10
