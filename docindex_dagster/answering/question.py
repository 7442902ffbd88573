"""A question with its options, and the index data retrieved for it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from docindex_dagster.answering import DEFAULT_TOKENS
from docindex_dagster.core.safe_text import make_visible, on_one_line
from docindex_dagster.core.settings import Settings
from docindex_dagster.core.traces import spanned
from docindex_dagster.search.context import Context
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.log import CommitFilters, newest
from docindex_dagster.search.service import Request, context_of
from docindex_dagster.stores.reader import Reader

_MAX_COMMITS = 5
_MAX_COMMITS_READ = 100  # commits to look at; merges among them are skipped, since they list no files
_MAX_CHANGE_CHARS = 1500  # for the latest change
_ELLIPSIS = "…"
_SHORT_HASH = 10
_CHANGE = r"(?:change|commit|edit|update|modification|revision|fix|work)(?:s|es)?"
_LATEST_WORD = r"(?:latest|last|newest|most\s+recent|recent)"
_LATEST = re.compile(
    rf"\b{_LATEST_WORD}\s+(?:\w+\s+){{0,2}}{_CHANGE}\b"
    r"|\b(?:what(?:'s|\s+has|\s+have|\s+was|\s+were)?|has\s+anything|did\s+anything)(?:\s+\w+)?\s+changed?\b"
    r"|\b(?:changed|updated|modified|edited|committed)\s+(?:recently|last|lately)\b|\brecently\s+\w+ed\b",
    re.IGNORECASE,
)
_HISTORY = re.compile(
    r"\b(?:commits?|committed|committers?|git\s+(?:log|history|blame))\b"
    r"|\bhistory\s+of\s+(?:the|this|our)\s+(?:repo(?:sitory)?|project|code(?:base)?|file|module|package)\b"
    r"|\b(?:repo(?:sitory)?|project|code|change)(?:'s)?\s+history\b"
    r"|\bwho\s+(?:\w+\s+)?(?:wrote|changed|added|removed|edited|introduced|committed|authored)\b"
    r"|\bwhen\s+(?:was|were|did)\b.*\b(?:changed?|added|removed|introduced|committed|fixed|released)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class GitContext:
    """Commits and a text about them."""

    commits: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its options.

    Attributes:
        text: the question in the user's words.
        filters: returns the filters for everything read, given the generation to search.
        tokens: the token limit of the passages.
        is_for_agent: whether the model may call tools.
    """

    text: str
    filters: Callable[[Reader], Filters] = lambda _reader: Filters()
    tokens: int = DEFAULT_TOKENS
    is_for_agent: bool = False


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The index data for a question."""

    context: Context
    history: GitContext | None
    generation: int
    warnings: tuple[str, ...]


@spanned("retrieve")
def retrieve(settings: Settings, reader: Reader, question: Question, query: str, tokens: int) -> Retrieved:
    """Search for a question, and read the history if the question is about it.

    Args:
        settings: the project's settings.
        reader: an open generation.
        question: the question.
        query: the search query.
        tokens: the token limit of the passages.

    Raises:
        QueryError: see `context_of`.
        SourceError: a filter names an unknown source.
        DamagedStoreError: a store cannot be read.
        EmbeddingError: see `context_of`.
        SettingsError: see `context_of`.
    """
    warnings: list[str] = []
    filters = question.filters(reader)
    context = context_of(settings, reader, Request(query, filters=filters), tokens, warnings.append)
    commit_filters = CommitFilters(sources=filters.sources, path_glob=filters.path_glob)
    history = git_context(reader, question.text, commit_filters)
    return Retrieved(context, history, reader.generation.number, tuple(warnings))


def is_about_history(question: str) -> bool:
    """Return whether a question is about commits. Only entire words match, so "uncommitted" does not."""
    return bool(_HISTORY.search(question)) or is_about_latest(question)


def is_about_latest(question: str) -> bool:
    """Return whether a question asks for the latest change."""
    return bool(_LATEST.search(question))


def git_context(reader: Reader, question: str, filters: CommitFilters | None = None) -> GitContext | None:
    """Return the newest commits for a question about the history; None for other questions or without commits.

    Merges are skipped, because their changes are in other commits.

    Args:
        reader: an open generation.
        question: the question in the user's words.
        filters: the filters that every commit must pass.

    Raises:
        QueryError: a filter is too complex.
        DamagedStoreError: a store cannot be read.
    """
    if not is_about_history(question):
        return None
    rows = newest(reader, top_k=_MAX_COMMITS_READ, filters=filters)
    shown = [row for row in rows if row["files"]][:_MAX_COMMITS]
    if not shown:
        return None
    lines = ["The newest commits, newest first:", *map(_line, shown)]
    if is_about_latest(question):
        lines += ["", "The latest change:", _truncate(_full_description(shown[0]))]
    return GitContext(tuple(row["commit"] for row in shown), "\n".join(lines))


def _line(row: Mapping[str, Any]) -> str:
    day = f"{row['committed_at']:%Y-%m-%d}" if row["committed_at"] else "no date"
    return f"{row['commit'][:_SHORT_HASH]} {day} {on_one_line(row['author'])}: {on_one_line(row['subject'])}"


def _full_description(row: Mapping[str, Any]) -> str:
    return f"{_line(row)}\n\n{make_visible(row['message']).strip()}\n\n{_stat(row, row['files'])}"


def _stat(row: Mapping[str, Any], files: Sequence[Mapping[str, Any]]) -> str:
    lines = [f"{one['status']} {on_one_line(one['path'])}{_counts(one)}" for one in files]
    return "\n".join([f"{row['file_count']:,} files{_counts(row)}", *lines])


def _counts(row: Mapping[str, Any]) -> str:
    return "" if row["insertions"] is None else f" +{row['insertions']:,} -{row['deletions']:,}"


def _truncate(text: str) -> str:
    return text if len(text) <= _MAX_CHANGE_CHARS else f"{text[: _MAX_CHANGE_CHARS - 1]}{_ELLIPSIS}"
