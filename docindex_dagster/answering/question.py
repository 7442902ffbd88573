"""A question with its options, and what the index has for it."""

from collections.abc import Callable
from dataclasses import dataclass

from docindex_dagster.answering.git_context import GitContext, git_context
from docindex_dagster.core.settings import Settings
from docindex_dagster.core.traces import spanned
from docindex_dagster.search.ask import Request, context_of
from docindex_dagster.search.context import Context
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.log import CommitFilters
from docindex_dagster.stores.reader import Reader

DEFAULT_TOKENS = 8000
"""Of passages: more bring little for what they cost (benchmarks/README.md)."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question.

    Attributes:
        text: in the user's words.
        filters: what all that is read for it must meet, by the generation that is searched.
        tokens: of passages, at most.
        is_for_agent: whether the model may look further by itself.
    """

    text: str
    filters: Callable[[Reader], Filters] = lambda _reader: Filters()
    tokens: int = DEFAULT_TOKENS
    is_for_agent: bool = False


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What the index has for a question."""

    context: Context
    history: GitContext | None
    generation: int
    warnings: tuple[str, ...]


@spanned("retrieve")
def retrieve(settings: Settings, reader: Reader, question: Question, query: str, tokens: int) -> Retrieved:
    """Search for a question, and read the history where it asks for that.

    Args:
        settings: of the project.
        reader: an open generation.
        question: what is asked.
        query: what to search for.
        tokens: of passages, at most.

    Raises:
        QueryError: as `context_of`.
        SourceError: a filter names a source that there is not.
        DamagedStoreError: a store cannot be read.
        EmbeddingError: as `context_of`.
        SettingsError: as `context_of`.
    """
    warnings: list[str] = []
    filters = question.filters(reader)
    context = context_of(settings, reader, Request(query, filters=filters), tokens, warnings.append)
    of_commits = CommitFilters(sources=filters.sources, path_glob=filters.path_glob)
    history = git_context(reader, question.text, of_commits)
    return Retrieved(context, history, reader.generation.number, tuple(warnings))
