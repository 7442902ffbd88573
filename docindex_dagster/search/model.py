"""What a search is asked and what it answers."""

from dataclasses import dataclass
from enum import StrEnum


class Mode(StrEnum):
    """Which retrievers answer."""

    HYBRID = "hybrid"
    VECTOR = "vector"
    BM25 = "bm25"


@dataclass(frozen=True, slots=True)
class Signal:
    """What one signal did to the score of a chunk; a retriever also says its rank, from 1, and its own score."""

    name: str
    contribution: float
    rank: int | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """A chunk with the signals that make its score."""

    chunk_id: str
    signals: tuple[Signal, ...]

    @property
    def score(self) -> float:
        """The sum of the contributions."""
        return sum(signal.contribution for signal in self.signals)

    def plus(self, name: str, contribution: float) -> "Scored":
        """The same with a further signal, if it makes a difference."""
        return Scored(self.chunk_id, (*self.signals, Signal(name, contribution))) if contribution else self


@dataclass(frozen=True, slots=True)
class Hit:
    """One result: a chunk, its score, and the signals whose contributions add up to it."""

    chunk_id: str
    source: str
    path: str
    start_line: int
    end_line: int
    score: float
    text: str
    chunk_type: str
    source_type: str
    language: str | None
    symbol_name: str | None
    symbol_kind: str | None
    qualified_name: str | None
    heading_path: tuple[str, ...]
    is_uncommitted: bool
    signals: tuple[Signal, ...]
