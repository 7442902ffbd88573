"""The evaluation of a night: a bounded sample, compared with the last nights."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings
from docindex_dagster.evaluation import nights
from docindex_dagster.evaluation.asking import Answer, ask
from docindex_dagster.evaluation.configuration import Configuration
from docindex_dagster.evaluation.nights import Change
from docindex_dagster.evaluation.questions import Question
from docindex_dagster.evaluation.report import Report, report
from docindex_dagster.evaluation.run import Wanted, questions_of_file, questions_of_history
from docindex_dagster.evaluation.sampling import sample
from docindex_dagster.search.scope import without_branches
from docindex_dagster.stores.reader import Reader, open_reader

_MOST = 2000  # questions of all sources: half a minute
_WORST = 20


@dataclass(frozen=True, slots=True)
class Night:
    """What a night found; without a report where there was nothing to ask."""

    report: Report | None
    changes: Sequence[Change]
    answers: Sequence[Answer] = ()


def evaluate_night(settings: Settings, warn: Callable[[str], None]) -> Night:
    """Ask what is published now, and remember how well it answered.

    Raises:
        QuestionError: the user's file of questions is wrong.
        EmbeddingError: as `ask`.
        StoreError: what is published cannot be read.
        FullDiskError: there is no space left.
    """
    layout = Layout(settings.home)
    if not settings.evaluation.questions or not layout.current.exists():
        return Night(None, ())
    reader = open_reader(layout)
    sources = without_branches(reader.generation.sources)
    questions = sample(_questions(settings, reader, sources, warn), _MOST)
    if not questions:
        return Night(None, ())
    answers = ask(Configuration(settings), reader, questions, sources=sources, warn=warn)
    before = nights.read(layout.evaluation)
    nights.write(layout.evaluation, nights.remembered(answers, before))
    return Night(report(answers, _WORST), tuple(nights.changes(answers, before)), answers)


def _questions(
    settings: Settings, reader: Reader, sources: tuple[str, ...], warn: Callable[[str], None]
) -> list[Question]:
    """Those of the history of each source, but of further branches, which share most of it; and the user's."""
    section = settings.evaluation
    wanted = Wanted(sources, section.commits, section.questions)
    found = [*questions_of_history(settings, reader, wanted, warn).questions]
    if section.file is not None:
        file = settings.root / section.file
        found += questions_of_file(settings, reader, wanted, file, warn).questions
    return found
