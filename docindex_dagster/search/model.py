"""Requests and results of a search."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

CHANGED = "changed since it was indexed"
"""The text every interface shows for a file or source that differs from the index."""


class Mode(StrEnum):
    """How a query is answered: with retrievers, or (the last two) by scanning every text."""

    HYBRID = "hybrid"
    VECTOR = "vector"
    BM25 = "bm25"
    GRAPH = "graph"
    LITERAL = "literal"
    REGEX = "regex"


ModeName = Literal["hybrid", "vector", "bm25", "graph", "literal", "regex"]
# Modes that rank by meaning and words, as opposed to exact text.
RETRIEVING = (Mode.HYBRID, Mode.VECTOR, Mode.BM25, Mode.GRAPH)


class Intent(StrEnum):
    """The purpose of a query, which decides how results are ranked."""

    NAME = "name"  # look up a symbol or a path
    ERROR = "error"  # find the origin of an error message
    EXPLAIN = "explain"  # read how something works; documentation answers
    EXAMPLE = "example"  # see how something is used; tests answer, too
    CHANGE = "change"  # find the code to change, from a bug report or a feature request
    TOPIC = "topic"  # find whatever is about some words


IntentName = Literal["name", "error", "explain", "example", "change", "topic"]


class Granularity(StrEnum):
    """The unit of results: chunks, or files, each represented by its best chunk."""

    CHUNK = "chunk"
    FILE = "file"


GranularityName = Literal["chunk", "file"]
SourceType = Literal["doc", "code", "test", "config", "commit"]  # the purpose of a file, or a commit


@dataclass(frozen=True, slots=True)
class Signal:
    """The contribution of one signal to a chunk's score; a retriever also reports its rank (from 1) and score."""

    name: str
    contribution: float
    rank: int | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """A chunk and its signals; the score is the sum of their contributions."""

    chunk_id: str
    signals: tuple[Signal, ...]
    score: float

    @classmethod
    def of(cls, chunk_id: str, signals: Iterable[Signal]) -> "Scored":
        """Create a scored chunk from its first signals."""
        first = tuple(signals)
        return cls(chunk_id, first, sum(signal.contribution for signal in first))

    def plus(self, name: str, contribution: float) -> "Scored":
        """Return a copy with another signal, or the object itself if the contribution is zero."""
        if not contribution:
            return self
        return Scored(self.chunk_id, (*self.signals, Signal(name, contribution)), self.score + contribution)


@dataclass(frozen=True, slots=True)
class Snippet:
    """Consecutive lines of a chunk and the matches in them.

    `offset` is the number of lines of the chunk before the snippet. `highlights` are [start, end) in characters of
    `text`. `line` is the number of lines of the chunk before the best matching line; `column` is the position of the
    first match in that line, from 1.
    """

    text: str
    offset: int
    highlights: tuple[tuple[int, int], ...]
    line: int = 0
    column: int = 1


def title(qualified_name: str | None, heading_path: Sequence[str] | None) -> str:
    """Return the name of a chunk: its symbol, or its headings from the outermost, or an empty string."""
    return qualified_name or " > ".join(heading_path or ())


@dataclass(frozen=True, slots=True)
class Hit:
    """A search result: a chunk, its score, and the signals whose contributions add up to the score.

    `line` and `column` locate the best match in the file, from 1; `symbol` is the innermost definition at that line.
    `file` is the path on disk, None for a commit. `stale` says whether the file on disk differs from the indexed one;
    None if unknown. `page` is the page of a PDF; `line` then refers to the extracted text. `human_language` is the
    language in which a document is written. `is_weak` and `intent` have the same value for all hits of a search:
    whether nothing found is close to the query, and what the query is for.
    """

    chunk_id: str
    source: str
    path: str
    start_line: int
    end_line: int
    start_byte: int | None
    end_byte: int | None
    score: float
    text: str
    snippet: Snippet
    chunk_type: str
    source_type: str
    language: str | None
    symbol_name: str | None
    symbol_kind: str | None
    qualified_name: str | None
    heading_path: tuple[str, ...]
    signature: str | None
    token_count: int
    content_hash: str
    is_uncommitted: bool
    signals: tuple[Signal, ...]
    line: int
    column: int
    symbol: str | None
    summary: str | None = None
    file: str | None = None
    stale: bool | None = None
    is_weak: bool = False
    page: int | None = None
    human_language: str | None = None
    intent: Intent | None = None

    @property
    def title(self) -> str:
        """The name of the location: the symbol at its line, or its headings; see `title`."""
        return title(self.symbol, self.heading_path)
