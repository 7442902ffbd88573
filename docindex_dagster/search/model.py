"""What a search is asked and what it answers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

CHANGED = "changed since it was indexed"
"""What every surface says of a file or source that differs from the index."""


class Mode(StrEnum):
    """Which retrievers answer; the last two read every text."""

    HYBRID = "hybrid"
    VECTOR = "vector"
    BM25 = "bm25"
    GRAPH = "graph"
    LITERAL = "literal"
    REGEX = "regex"


ModeName = Literal["hybrid", "vector", "bm25", "graph", "literal", "regex"]
# Those that rank by meaning and words, not by an exact text.
RETRIEVING = (Mode.HYBRID, Mode.VECTOR, Mode.BM25, Mode.GRAPH)


class Granularity(StrEnum):
    """What a result is: the best chunks, or of each file its best one."""

    CHUNK = "chunk"
    FILE = "file"


GranularityName = Literal["chunk", "file"]
SourceType = Literal["doc", "code", "test", "config", "commit"]  # what a file is for, or a commit


@dataclass(frozen=True, slots=True)
class Signal:
    """What one signal did to the score of a chunk; a retriever also says its rank, from 1, and its own score."""

    name: str
    contribution: float
    rank: int | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """A chunk with the signals that make its score, which is the sum of their contributions."""

    chunk_id: str
    signals: tuple[Signal, ...]
    score: float

    @classmethod
    def of(cls, chunk_id: str, signals: Iterable[Signal]) -> "Scored":
        """A chunk with its first signals."""
        found = tuple(signals)
        return cls(chunk_id, found, sum(signal.contribution for signal in found))

    def plus(self, name: str, contribution: float) -> "Scored":
        """The same with a further signal, if it makes a difference."""
        if not contribution:
            return self
        return Scored(self.chunk_id, (*self.signals, Signal(name, contribution)), self.score + contribution)


@dataclass(frozen=True, slots=True)
class Snippet:
    """Some lines of a chunk, as a text, and the parts of it that matched.

    `offset` is the number of the chunk's lines before it. `highlights` are [start, end) in characters of `text`. `line`
    is the number of the chunk's lines before the one that matches best, `column` where its first match is, from 1.
    """

    text: str
    offset: int
    highlights: tuple[tuple[int, int], ...]
    line: int = 0
    column: int = 1


def title(qualified_name: str | None, heading_path: Sequence[str] | None) -> str:
    """What a chunk is called: its symbol, else its headings from the outermost; empty where it has none."""
    return qualified_name or " > ".join(heading_path or ())


@dataclass(frozen=True, slots=True)
class Hit:
    """One result: a chunk, its score, and the signals whose contributions add up to it.

    `line` and `column` are the best match in the file, from 1; `symbol` is the innermost definition at the line. `file`
    is the path on disk, None for a commit. `stale` says whether the file on disk differs from what was indexed; None
    where that is unknown. `page` is the one of a PDF, in whose text `line` counts;
    `human_language` is the one in which a document is written.
    `is_weak` is the same for all hits of an answer: nothing that was found is close to the query.
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

    @property
    def title(self) -> str:
        """What the place is called: the symbol at its line, else its headings; see `title`."""
        return title(self.symbol, self.heading_path)
