"""The vectors of a generation in memory.

Comparing all of them is exact, and takes a tenth of the time in which a store finds some of them: 1 ms for 20,000
vectors of 256 values, where LanceDB needs 11.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from docindex_dagster.core.background import in_two_threads
from docindex_dagster.stores.signs import BYTES, signs, singles

SIGNS = "signs"  # the column of the signs of vectors
# Columns by which rows are chosen, besides their id.
COLUMNS = ("source", "path", "language", "human_language", "source_type", "symbol_kind")
_MOST_BYTES = 128 << 20  # as 32-bit numbers: 131,072 vectors of 256 values
_BYTES_A_VALUE = 4
BLOCK = 16_384  # rows that a thread compares before it takes the next ones
_RUN = 64  # values of which first the largest alone is looked at
_OTHER_SIGNS = 0.01  # of all
_MOST_CHOICES = 32  # of filters whose answers are remembered
# Picks rows of a table by a mask of shape (rows,).
Choose = Callable[[pa.Table], NDArray[np.bool_]]


def fits(rows: int, dimension: int) -> bool:
    """Whether so many vectors are held in memory."""
    return rows * dimension * _BYTES_A_VALUE <= _MOST_BYTES


@dataclass(frozen=True, eq=False)
class Part:
    """The rows of one version of a source, with `COLUMNS` and chunk_id, and their vectors as they are stored."""

    rows: pa.Table
    stored: NDArray[np.float16]  # shape (rows, dimension)
    signed: NDArray[np.uint64] | None = None  # the signs of the vectors, as `signs` gives them, where they are stored
    _chosen: dict[Hashable, NDArray[np.int64]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, table: pa.Table, vector: str) -> "Part":
        """Take them from a table; `vector` is the column of the vectors, fixed_size_list of float16."""
        column = _in_one(table[vector])
        values = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, column.type.list_size)
        rows = table.drop_columns([name for name in (vector, SIGNS) if name in table.column_names])
        return cls(rows.combine_chunks(), values, _signed(table))

    @cached_property
    def ids(self) -> pa.Array:
        """The ids of the rows."""
        return _in_one(self.rows["chunk_id"])

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """Of unit length: float32, shape (rows, dimension)."""
        return units(self.stored)

    @cached_property
    def signs(self) -> NDArray[np.uint64]:
        """The signs of the vectors: shape (rows, 8)."""
        return signs(self.stored) if self.signed is None else self.signed

    def choose(self, key: Hashable, choose: Choose) -> NDArray[np.int64]:
        """The positions of the rows that `choose` picks, int64 (chosen,); the same key has the same answer."""
        chosen = self._chosen.get(key)
        if chosen is None:
            if len(self._chosen) >= _MOST_CHOICES:
                self._chosen.clear()
            chosen = np.flatnonzero(choose(self.rows))
            self._chosen[key] = chosen = self._all if len(chosen) == len(self._all) else chosen
        return chosen

    @cached_property
    def _all(self) -> NDArray[np.int64]:
        return np.arange(self.rows.num_rows)


Chosen = Sequence[tuple[Part, NDArray[np.int64]]]
"""Parts, each with the positions of the rows that are looked at."""


@dataclass(frozen=True, eq=False, slots=True)
class Matrix:
    """The vectors of all sources, by their key and version, or by the pack that has those of many.

    `published` says which rows of a pack are, where not all are: one boolean a row.
    """

    parts: dict[tuple[str, str], Part]
    published: dict[tuple[str, str], NDArray[np.bool_]] = field(default_factory=dict)

    def nearest(self, query: NDArray[np.float32], key: Hashable, choose: Choose, limit: int) -> list[tuple[str, float]]:
        """So many of the ids nearest to a unit vector of shape (dimension,), in no order, and their cosines.

        Those that are as near as the last one come with it. Only rows that `choose` picks are looked at; the same key
        has the same answer.
        """
        chosen = self.chosen(key, choose)
        cosines = _cosines(query, chosen)
        best = largest(cosines, limit)
        return list(zip(ids_at(chosen, best), cosines[best].tolist(), strict=True))

    def chosen(self, key: Hashable, choose: Choose) -> Chosen:
        """The rows that `choose` picks among those that are published, of each part that has any."""
        found = [(part, self._published(name, part.choose(key, choose))) for name, part in self.parts.items()]
        return [(part, rows) for part, rows in found if len(rows)]

    def _published(self, name: tuple[str, str], positions: NDArray[np.int64]) -> NDArray[np.int64]:
        mask = self.published.get(name)
        return positions if mask is None else positions[mask[positions]]


def has_own_signs(part: Part) -> bool:
    """Whether the signs that are stored, if there are any, are those of the vectors, but for a few.

    Of a vector that lies in a plane, another processor may find the other sign.
    """
    if part.signed is None:
        return True
    differing = int(np.bitwise_count(part.signed ^ signs(part.stored)).sum(dtype=np.int64))
    return differing <= part.signed.nbytes * 8 * _OTHER_SIGNS


def units(stored: NDArray[np.float16]) -> NDArray[np.float32]:
    """Vectors as they are stored, (vectors, dimension), of unit length: float32, the same shape."""
    vectors = singles(stored)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def ids_at(chosen: Chosen, places: NDArray[np.int64]) -> list[str]:
    """The ids at places, int64 (places,), in rising order, among the rows that are looked at, end to end."""
    ids: list[str] = []
    start = 0
    bounds = np.searchsorted(places, np.cumsum([0, *(len(rows) for _, rows in chosen)])).tolist()
    for (part, rows), (first, end) in zip(chosen, pairwise(bounds), strict=True):
        if first < end:
            ids += [part.ids[row].as_py() for row in rows[places[first:end] - start].tolist()]
        start += len(rows)
    return ids


def largest(values: NDArray[np.float32], limit: int) -> NDArray[np.int64]:
    """Where the largest of values, (values,), stand: so many, and all that equal the least of them, int64 (found,).

    They are in rising order.
    """
    if limit >= len(values):
        return np.arange(len(values))
    # The least of so many maxima of runs is no larger than the least value that is looked for: few are left to sort.
    runs = values[: len(values) // _RUN * _RUN].reshape(-1, _RUN).max(axis=1)
    if limit < len(runs):
        likely = np.flatnonzero(values >= np.partition(runs, -limit)[-limit])
    else:
        likely = np.arange(len(values))
    least = np.partition(values[likely], -limit)[-limit]
    found: NDArray[np.int64] = likely[values[likely] >= least]
    return found


def _in_one(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array; where it is one in a file that is mapped, nothing is read."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _signed(table: pa.Table) -> NDArray[np.uint64] | None:
    """The signs in a table; None where it has none, or not of all rows."""
    if SIGNS not in table.column_names or table[SIGNS].null_count:
        return None
    column = _in_one(table[SIGNS])
    held = np.frombuffer(column.buffers()[1], np.uint64).reshape(-1, BYTES // 8)
    return held[column.offset : column.offset + len(column)]


def _cosines(query: NDArray[np.float32], chosen: Chosen) -> NDArray[np.float32]:
    """Between a vector and those that are looked at, end to end."""
    cosines = np.empty(sum(len(rows) for _, rows in chosen), np.float32)
    blocks: list[Callable[[], None]] = []
    start = 0
    for part, rows in chosen:
        vectors = part.vectors  # which is made here, if it has to be, and not by both threads
        picked = None if len(rows) == len(vectors) else rows
        for first in range(0, len(rows), BLOCK):
            end = min(first + BLOCK, len(rows))
            blocks.append(partial(_compare, query, vectors, picked, slice(first, end), cosines[start:][first:end]))
        start += len(rows)
    in_two_threads(blocks)
    return cosines


def _compare(
    query: NDArray[np.float32],
    vectors: NDArray[np.float32],
    picked: NDArray[np.int64] | None,
    within: slice,
    out: NDArray[np.float32],
) -> None:
    """Write into `out` the cosines of a slice of the vectors, or of those that are picked."""
    # Not `@`: the threads of BLAS wait for each other in a loop, 8 ms and more where other processes are at work.
    np.vecdot(vectors[within if picked is None else picked[within]], query, out=out)
