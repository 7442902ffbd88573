"""Searching an index that is split over cells as if it were one.

A search puts questions to an index. Where there are cells, each of them answers each question for its sources, and the
answers are put together; so a question is all that has to cross a network. The one statistic that a ranking needs of
all cells is asked first, and goes with the question (distributed information retrieval calls it global statistics).
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar

from docindex_dagster.stores import tantivy_index
from docindex_dagster.stores.generation import Generation
from docindex_dagster.stores.padding import Lengths
from docindex_dagster.stores.reader import Reader

if TYPE_CHECKING:
    from tantivy import Schema

_SEARCHES = 64  # that can ask cells at the same time

_Answer = TypeVar("_Answer")


class Question(Protocol[_Answer]):
    """What a search asks of an index."""

    def of(self, reader: Reader) -> _Answer:
        """The answer of one index."""

    def together(self, answers: Sequence[_Answer]) -> _Answer:
        """The answer of all cells, from that of each."""


class Cell(Protocol):
    """An index that holds some of the repositories, here or on another machine."""

    @property
    def generation(self) -> Generation:
        """What it has published."""

    def ask(self, question: Question[_Answer]) -> _Answer:
        """Its answer.

        Raises:
            StoreError: it does not answer, or has published another generation.
        """


@dataclass(frozen=True, slots=True)
class LocalCell:
    """A cell whose stores are here."""

    reader: Reader

    @property
    def generation(self) -> Generation:
        """What it has published."""
        return self.reader.generation

    def ask(self, question: Question[_Answer]) -> _Answer:
        """Its answer."""
        return question.of(self.reader)


@dataclass(frozen=True)
class Cells:
    """Cells that are searched together; `missing` says which do not answer, as a sentence, and of which sources."""

    cells: tuple[Cell, ...]
    generation: Generation
    missing: str = ""
    lost: frozenset[str] = field(default_factory=frozenset)

    def lacks(self, sources: Sequence[str]) -> bool:
        """Whether a cell does not answer that holds, or may hold, one of some sources; none for all."""
        return bool(self.missing) and (not sources or not self.lost.isdisjoint(sources))

    def ask(self, question: Question[_Answer]) -> _Answer:
        """The answer of all cells, which are asked at the same time."""
        asked = [_in_context(cell.ask) for cell in self.cells]
        return question.together(list(self._threads.map(lambda ask: ask(question), asked)))

    @cached_property
    def lengths(self) -> Lengths:
        """Of all documents; they are those of one generation of each cell, so that they are asked once."""
        return self.ask(AskLengths())

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        """As many as may be needed, which begin when they are: a slow question keeps no other one waiting."""
        return ThreadPoolExecutor(len(self.cells) * _SEARCHES, "docindex-cell")


Index = Reader | Cells


def schema_of(index: Index) -> "Schema":
    """The fields of an index; those of cells are of this version."""
    return index.index.schema if isinstance(index, Reader) else tantivy_index.schema()


@dataclass(frozen=True, slots=True)
class AskLengths:
    """How long the fields of documents are."""

    def of(self, reader: Reader) -> Lengths:
        """Those of one index."""
        return reader.padding.lengths

    def together(self, answers: Sequence[Lengths]) -> Lengths:
        """Their sums."""
        return Lengths.total(answers)


def ask(index: Index, question: Question[_Answer]) -> _Answer:
    """The answer of an index, or of all its cells."""
    return question.of(index) if isinstance(index, Reader) else index.ask(question)


def _in_context(call: Callable[..., _Answer]) -> Callable[..., _Answer]:
    """A call that another thread makes in the context of this one."""
    context = copy_context()
    return lambda *given: context.run(call, *given)
