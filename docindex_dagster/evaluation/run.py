"""An evaluation from start to end: collect the questions, ask them, and report."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docindex_dagster.core.errors import QuestionError, SourceError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings
from docindex_dagster.evaluation import COMMITS, QUESTIONS, history
from docindex_dagster.evaluation.configuration import Configuration
from docindex_dagster.evaluation.question_file import read_questions
from docindex_dagster.evaluation.questions import Question, indexed_files, sample
from docindex_dagster.evaluation.report import Comparison, Report, compare, report
from docindex_dagster.evaluation.retrieval_runs import ask
from docindex_dagster.sources import registry
from docindex_dagster.stores.reader import Reader, open_reader


@dataclass(frozen=True, slots=True)
class QuestionSelection:
    """Selection of the questions to ask.

    Attributes:
        sources: the sources to ask about; empty for all.
        commits: the number of recent commits to read per source.
        questions: the maximum number of questions per source; None for all.
        seed: the seed of the sample.
        file: a file with the user's questions, which replace those from history.
    """

    sources: tuple[str, ...] = ()
    commits: int = COMMITS
    questions: int | None = QUESTIONS
    seed: int = 0
    file: Path | None = None

    def keys(self, reader: Reader) -> tuple[str, ...]:
        """Return the selected sources of an index."""
        return self.sources or tuple(sorted(reader.generation.sources))


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The questions of an evaluation, and a sentence about the origin of those of each source."""

    questions: Sequence[Question]
    origins: Sequence[str]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The results of an evaluation. `left_out` counts questions whose answers are not in the second index."""

    origins: Sequence[str]
    report: Report
    comparison: Comparison | None = None
    left_out: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form. The same questions and index give the same result, byte for byte."""
        compared = (
            {} if self.comparison is None else {"comparison": self.comparison.as_dict(), "left_out": self.left_out}
        )
        return {"questions_from": list(self.origins), **self.report.as_dict(), **compared}


def find_questions(
    settings: Settings, reader: Reader, wanted: QuestionSelection, warn: Callable[[str], None]
) -> QuestionSet:
    """Return the questions to ask of an index.

    Raises:
        QuestionError: There are none, or the given file is invalid.
        DamagedStoreError: The table cannot be read.
    """
    if wanted.file is not None:
        return questions_of_file(settings, reader, wanted, wanted.file, warn)
    found = questions_of_history(settings, reader, wanted, warn)
    if not found.origins:
        raise QuestionError(f"the sources have no git history to make questions from: {_advice(settings)}")
    if not found.questions:
        raise QuestionError(
            f"no commit makes a usable question: {_advice(settings)}, or read more commits with --commits"
        )
    return found


def _advice(settings: Settings) -> str:
    """Return what to do instead."""
    collected = Layout(settings.home).questions
    such_as = f", such as {collected} with the collected ones" if collected.exists() else ""
    return f"pass a file of questions{such_as}"


def questions_of_file(
    settings: Settings, reader: Reader, wanted: QuestionSelection, file: Path, warn: Callable[[str], None]
) -> QuestionSet:
    """Return the questions of a user's file.

    Raises:
        QuestionError: The file is invalid, or none of its paths is indexed.
        DamagedStoreError: The table cannot be read.
    """
    files = {key: indexed_files(reader, key) for key in wanted.keys(reader)}
    found = read_questions(settings, file, files, warn)
    return QuestionSet(
        found, [f"{len(found):,} question{'' if len(found) == 1 else 's'} from {file}{_collected(found)}"]
    )


def _collected(questions: Sequence[Question]) -> str:
    """Describe how questions were collected, most frequent first. A question may count for several origins."""
    counts = Counter(origin for question in questions for origin in question.origins)
    most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return f" (collected by {', '.join(f'{origin} {count:,}' for origin, count in most)})" if most else ""


def questions_of_history(
    settings: Settings, reader: Reader, wanted: QuestionSelection, warn: Callable[[str], None]
) -> QuestionSet:
    """Return the questions from the histories of git sources. Other sources have no history.

    Raises:
        DamagedStoreError: The table cannot be read.
    """
    questions: list[Question] = []
    origins: list[str] = []
    for key in wanted.keys(reader):
        of_source = _of_history(settings, reader, key, wanted, warn)
        if of_source is not None:
            chosen = sample(of_source.questions, wanted.questions, wanted.seed)
            questions += chosen
            origins.append(history.sentence(of_source, len(chosen)))
    return QuestionSet(questions, origins)


def _of_history(
    settings: Settings, reader: Reader, key: str, wanted: QuestionSelection, warn: Callable[[str], None]
) -> history.History | None:
    """Return the history of a source; None if it has none, or it is not on this machine."""
    source = registry.sources(settings).get(key)
    if source is None or source.kind != "git":
        return None
    try:
        head = history.indexed_commit(source, reader.generation.sources[key].revision)
        if head is None:
            warn(f"{key}: skipping its history, since the indexed commit is not in {source.path}")
            return None
        return history.read_history(source, head, indexed_files(reader, key), wanted.commits)
    except SourceError as error:
        warn(f"{key}: {error}")
        return None


def evaluate(
    configuration: Configuration,
    reader: Reader,
    asked: QuestionSet,
    *,
    other: Configuration | None = None,
    sources: tuple[str, ...] = (),
    worst: int = 10,
    warn: Callable[[str], None],
) -> Evaluation:
    """Ask the questions with one configuration or two.

    Raises:
        QuestionError: The second configuration's index has the answers to none of them.
        QueryError: As for `ask`.
        EmbeddingError: As for `ask`.
        StoreError: The second configuration's index cannot be opened, or a store cannot be read.
    """
    if other is None:
        return Evaluation(
            asked.origins, report(ask(configuration, reader, asked.questions, sources=sources, warn=warn), worst)
        )
    other_reader, questions = reader, asked.questions
    if other.settings.home != configuration.settings.home:
        other_reader = open_reader(Layout(other.settings.home))
        questions = _in_both(other_reader, asked.questions)
    first = ask(configuration, reader, questions, sources=sources, warn=warn)
    second = ask(other, other_reader, questions, sources=sources, warn=lambda text: warn(f"second index: {text}"))
    left_out = len(asked.questions) - len(questions)
    return Evaluation(asked.origins, report(first, worst), compare(first, second, worst), left_out)


def _in_both(reader: Reader, questions: Sequence[Question]) -> list[Question]:
    """Return the questions whose answers are all in another index too."""
    keys = {target.source for question in questions for target in question.targets}
    files = {key: indexed_files(reader, key) for key in keys & reader.generation.sources.keys()}
    found = [
        question
        for question in questions
        if all(target.path in files.get(target.source, ()) for target in question.targets)
    ]
    if not found:
        raise QuestionError(f"the index in {reader.layout.home} contains none of the answers to the questions")
    return found
