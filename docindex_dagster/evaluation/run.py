"""An evaluation from beginning to end: which questions there are in an index, asking them, and what comes of it."""

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
class Wanted:
    """Which questions to ask.

    Attributes:
        sources: of these; none for all.
        commits: so many of the newest are read of each source.
        questions: so many are asked of each source at most; None: all.
        seed: of the choice among them.
        file: questions of the user's, in place of those of history.
    """

    sources: tuple[str, ...] = ()
    commits: int = COMMITS
    questions: int | None = QUESTIONS
    seed: int = 0
    file: Path | None = None

    def keys(self, reader: Reader) -> tuple[str, ...]:
        """The sources that are meant, of an index."""
        return self.sources or tuple(sorted(reader.generation.sources))


@dataclass(frozen=True, slots=True)
class Asked:
    """The questions of an evaluation, and where they are from, a sentence a source."""

    questions: Sequence[Question]
    origins: Sequence[str]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an evaluation found; `left_out` counts questions whose answers the second index does not have."""

    origins: Sequence[str]
    report: Report
    comparison: Comparison | None = None
    left_out: int = 0

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it; the same questions and index give the same, byte for byte."""
        compared = (
            {} if self.comparison is None else {"comparison": self.comparison.as_dict(), "left_out": self.left_out}
        )
        return {"questions_from": list(self.origins), **self.report.as_dict(), **compared}


def find_questions(settings: Settings, reader: Reader, wanted: Wanted, warn: Callable[[str], None]) -> Asked:
    """The questions that an index can be asked.

    Raises:
        QuestionError: there are none, or the file that is named is wrong.
        DamagedStoreError: the table cannot be read.
    """
    if wanted.file is not None:
        return questions_of_file(settings, reader, wanted, wanted.file, warn)
    found = questions_of_history(settings, reader, wanted, warn)
    if not found.origins:
        raise QuestionError(f"these sources have no git history to ask by: {_advice(settings)}")
    if not found.questions:
        raise QuestionError(
            f"no commit of these sources makes a question: {_advice(settings)}, or read more by --commits"
        )
    return found


def _advice(settings: Settings) -> str:
    """What else can be asked."""
    noted = Layout(settings.home).questions
    such_as = f", as {noted}, which has those that were noted" if noted.exists() else ""
    return f"name a file of questions{such_as}"


def questions_of_file(
    settings: Settings, reader: Reader, wanted: Wanted, file: Path, warn: Callable[[str], None]
) -> Asked:
    """The questions of a file of the user's.

    Raises:
        QuestionError: the file is wrong, or nothing of it is indexed.
        DamagedStoreError: the table cannot be read.
    """
    files = {key: indexed_files(reader, key) for key in wanted.keys(reader)}
    found = read_questions(settings, file, files, warn)
    return Asked(found, [f"{len(found):,} question{'' if len(found) == 1 else 's'} of {file}{_collected(found)}"])


def _collected(questions: Sequence[Question]) -> str:
    """How questions were collected, most first; a question that was noted in two ways counts for both."""
    counts = Counter(origin for question in questions for origin in question.origins)
    most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return f" (noted by {', '.join(f'{origin} {count:,}' for origin, count in most)})" if most else ""


def questions_of_history(settings: Settings, reader: Reader, wanted: Wanted, warn: Callable[[str], None]) -> Asked:
    """The questions of the histories of git sources; those of others have none.

    Raises:
        DamagedStoreError: the table cannot be read.
    """
    questions: list[Question] = []
    origins: list[str] = []
    for key in wanted.keys(reader):
        of_source = _of_history(settings, reader, key, wanted, warn)
        if of_source is not None:
            asked = sample(of_source.questions, wanted.questions, wanted.seed)
            questions += asked
            origins.append(history.sentence(of_source, len(asked)))
    return Asked(questions, origins)


def _of_history(
    settings: Settings, reader: Reader, key: str, wanted: Wanted, warn: Callable[[str], None]
) -> history.History | None:
    """The history of a source; None where it has none, or it is not on this machine."""
    source = registry.sources(settings).get(key)
    if source is None or source.kind != "git":
        return None
    try:
        head = history.indexed_commit(source, reader.generation.sources[key].revision)
        if head is None:
            warn(f"{key}: the commit that is indexed is not in {source.path}, so that its history asks nothing")
            return None
        return history.read_history(source, head, indexed_files(reader, key), wanted.commits)
    except SourceError as error:
        warn(f"{key}: {error}")
        return None


def evaluate(
    configuration: Configuration,
    reader: Reader,
    asked: Asked,
    *,
    other: Configuration | None = None,
    sources: tuple[str, ...] = (),
    worst: int = 10,
    warn: Callable[[str], None],
) -> Evaluation:
    """Ask the questions by one configuration or two.

    Raises:
        QuestionError: the index of the second configuration has the answers to none of them.
        QueryError: as `ask`.
        EmbeddingError: as `ask`.
        StoreError: the second configuration's index cannot be opened, or a store cannot be read.
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
    second = ask(other, other_reader, questions, sources=sources, warn=lambda text: warn(f"the second: {text}"))
    left_out = len(asked.questions) - len(questions)
    return Evaluation(asked.origins, report(first, worst), compare(first, second, worst), left_out)


def _in_both(reader: Reader, questions: Sequence[Question]) -> list[Question]:
    """The questions all of whose answers another index has as well."""
    keys = {target.source for question in questions for target in question.targets}
    files = {key: indexed_files(reader, key) for key in keys & reader.generation.sources.keys()}
    found = [
        question
        for question in questions
        if all(target.path in files.get(target.source, ()) for target in question.targets)
    ]
    if not found:
        raise QuestionError(f"the index in {reader.layout.home} has none of the files that answer the questions")
    return found
