"""The vectors of a generation in memory.

Comparing all of them is exact, and takes a tenth of the time in which a store finds some of them: 1 ms for 20,000
vectors of 256 values, where LanceDB needs 11.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from docindex_dagster.core.beside import beside

# Columns by which rows are chosen, besides their id.
COLUMNS = ("source", "path", "language", "human_language", "source_type", "symbol_kind")
_MOST_BYTES = 128 << 20  # as 32-bit numbers: 131,072 vectors of 256 values
_BYTES_A_VALUE = 4
_BLOCK = 16_384  # rows that a thread compares before it takes the next ones
_RUN = 64  # values of which first the largest alone is looked at
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
    _chosen: dict[Hashable, NDArray[np.int64]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, table: pa.Table, vector: str) -> "Part":
        """Take them from a table; `vector` is the column of the vectors, fixed_size_list of float16."""
        column = table[vector].combine_chunks()
        values = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, column.type.list_size)
        return cls(table.drop_columns([vector]).combine_chunks(), values)

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """Of unit length: float32, shape (rows, dimension)."""
        vectors: NDArray[np.float32] = self.stored.astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def choose(self, key: Hashable, choose: Choose) -> NDArray[np.int64]:
        """The positions of the rows that `choose` picks, int64 (chosen,); the same key has the same answer."""
        chosen = self._chosen.get(key)
        if chosen is None:
            if len(self._chosen) >= _MOST_CHOICES:
                self._chosen.clear()
            chosen = self._chosen[key] = np.flatnonzero(choose(self.rows))
        return chosen


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
        chosen = [(part, self._published(name, part.choose(key, choose))) for name, part in self.parts.items()]
        cosines = _cosines(query, chosen)
        best = _largest(cosines, limit)
        ids: list[str] = []
        start = 0
        for part, rows in chosen:
            first, end = np.searchsorted(best, (start, start + len(rows)))
            if first < end:
                ids += part.rows["chunk_id"].take(pa.array(rows[best[first:end] - start])).to_pylist()
            start += len(rows)
        return list(zip(ids, cosines[best].tolist(), strict=True))

    def _published(self, name: tuple[str, str], positions: NDArray[np.int64]) -> NDArray[np.int64]:
        mask = self.published.get(name)
        return positions if mask is None else positions[mask[positions]]


def _cosines(query: NDArray[np.float32], chosen: Sequence[tuple[Part, NDArray[np.int64]]]) -> NDArray[np.float32]:
    """Between a vector and those at some positions of each part, end to end: two threads take one block after another.

    Many bytes are read for few operations, so that more threads would wait for memory.
    """
    cosines = np.empty(sum(len(rows) for _, rows in chosen), np.float32)
    blocks: list[Callable[[], None]] = []
    start = 0
    for part, rows in chosen:
        vectors = part.vectors  # which is made here, if it has to be, and not by both threads
        picked = None if len(rows) == len(vectors) else rows
        for first in range(0, len(rows), _BLOCK):
            end = min(first + _BLOCK, len(rows))
            blocks.append(partial(_compare, query, vectors, picked, slice(first, end), cosines[start:][first:end]))
        start += len(rows)
    left = iter(blocks)

    def work() -> None:
        for compare in left:
            compare()

    other = beside(work) if len(blocks) > 1 else None
    work()
    if other is not None:
        other()
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


def _largest(values: NDArray[np.float32], limit: int) -> NDArray[np.int64]:
    """Where the largest values stand, so many, and all that equal the least of them; in their order."""
    if limit >= len(values):
        return np.arange(len(values))
    # The least of so many maxima of runs is no larger than the least value that is looked for: few are left to sort.
    runs = values[: len(values) // _RUN * _RUN].reshape(-1, _RUN).max(axis=1)
    if limit < len(runs):
        likely = np.flatnonzero(values >= np.partition(runs, -limit)[-limit])
    else:
        likely = np.arange(len(values))
    least = np.partition(values[likely], -limit)[-limit]
    return likely[values[likely] >= least]
