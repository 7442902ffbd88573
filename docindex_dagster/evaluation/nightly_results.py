"""Nightly scores of the questions, and whether answers have become worse.

Each question is compared with the mean of its own scores in the last nights, so it does not matter that another night
asked other questions. A search is deterministic, so a difference comes from the search or the repository. The mean of
these differences has an interval like any mean (see `metrics`). Answers are worse if the interval is below zero and
the mean is not negligible. After a week, the lower scores are the new normal and no longer cause a warning.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from docindex_dagster.core.files import atomic_write
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings
from docindex_dagster.evaluation.configuration import Configuration
from docindex_dagster.evaluation.metrics import Interval, intervals
from docindex_dagster.evaluation.questions import Question, sample
from docindex_dagster.evaluation.report import ALL, Report, grouped, report
from docindex_dagster.evaluation.retrieval_runs import QuestionResult, ask
from docindex_dagster.evaluation.run import QuestionSelection, questions_of_file, questions_of_history
from docindex_dagster.search.scope import without_branches
from docindex_dagster.stores.reader import Reader, open_reader

NIGHTS = 7  # remembered per question
MIN_QUESTIONS = 20  # questions in common; an interval of fewer means little
NEGLIGIBLE = 0.01  # a negligible change of NDCG@10
_FORMAT = 1
_DIGITS = 4
Scores = Mapping[str, Sequence[float]]  # NDCG@10 of the last nights by question, the newest last
_MAX_QUESTIONS = 2000  # questions of all sources, which take half a minute
_WORST = 20


@dataclass(frozen=True, slots=True)
class Change:
    """How NDCG@10 differs from the last nights, over the shared questions; None if there are too few."""

    name: str
    questions: int
    difference: Interval | None

    @property
    def is_drop(self) -> bool:
        """Whether answers are worse."""
        return self.difference is not None and self.difference.high < 0 and self.difference.mean <= -NEGLIGIBLE


def changes(answers: Sequence[QuestionResult], before: Scores) -> Iterator[Change]:
    """Yield the change over all answers since the last nights, then that of each source."""
    yield _change(ALL, answers, before)
    for key, some in grouped(answers, lambda answer: answer.question.source):
        yield _change(key, some, before)


def _change(name: str, answers: Sequence[QuestionResult], before: Scores) -> Change:
    differences = [
        [answer.scores.ndcg_10 - sum(past) / len(past)]
        for answer in answers
        if (past := before.get(identity(answer.question)))
    ]
    enough = len(differences) >= MIN_QUESTIONS
    return Change(name, len(differences), intervals(differences)[0] if enough else None)


def identity(question: Question) -> str:
    """Return a key of a question that does not depend on its line in a file."""
    parts = [question.text, *(f"{target.source}/{target}" for target in question.targets)]
    return blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()


def merged_scores(answers: Sequence[QuestionResult], before: Scores) -> dict[str, list[float]]:
    """Return the scores to remember after a night: those of the last nights, for the questions that it asked."""
    found = {}
    for answer in answers:
        key = identity(answer.question)
        found[key] = [*before.get(key, ()), round(answer.scores.ndcg_10, _DIGITS)][-NIGHTS:]
    return found


def read(file: Path) -> dict[str, list[float]]:
    """Read the remembered scores; empty if the file is missing, damaged or of another version."""
    try:
        found: Any = json.loads(file.read_text(encoding="utf-8"))
        if found["format"] != _FORMAT:
            return {}
        return {str(key): [float(value) for value in values] for key, values in found["ndcg_10"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def write(file: Path, scores: Scores) -> None:
    """Replace the remembered scores.

    Raises:
        FullDiskError: The disk is full.
    """
    text = json.dumps({"format": _FORMAT, "ndcg_10": dict(sorted(scores.items()))})
    with atomic_write(file) as temporary:
        temporary.write_text(text, encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Night:
    """The results of a night; without a report if there was nothing to ask."""

    report: Report | None
    changes: Sequence[Change]
    answers: Sequence[QuestionResult] = ()


def evaluate_night(settings: Settings, warn: Callable[[str], None]) -> Night:
    """Ask the questions of the published index, and remember the scores.

    Raises:
        QuestionError: The user's question file is invalid.
        EmbeddingError: As for `ask`.
        StoreError: The published index cannot be read.
        FullDiskError: The disk is full.
    """
    layout = Layout(settings.home)
    if not settings.evaluation.questions or not layout.current.exists():
        return Night(None, ())
    reader = open_reader(layout)
    sources = without_branches(reader.generation.sources)
    questions = sample(_questions(settings, reader, sources, warn), _MAX_QUESTIONS)
    if not questions:
        return Night(None, ())
    answers = ask(Configuration(settings), reader, questions, sources=sources, warn=warn)
    before = read(layout.evaluation)
    write(layout.evaluation, merged_scores(answers, before))
    return Night(report(answers, _WORST), tuple(changes(answers, before)), answers)


def _questions(
    settings: Settings, reader: Reader, sources: tuple[str, ...], warn: Callable[[str], None]
) -> list[Question]:
    """Return questions from the history of each source, and the user's. Branches are skipped, since they share it."""
    section = settings.evaluation
    wanted = QuestionSelection(sources, section.commits, section.questions)
    found = [*questions_of_history(settings, reader, wanted, warn).questions]
    if section.file is not None:
        file = settings.root / section.file
        found += questions_of_file(settings, reader, wanted, file, warn).questions
    return found
