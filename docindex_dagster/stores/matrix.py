"""The vectors of a generation in memory.

Comparing all of them is exact, and takes a tenth of the time in which a store finds some of them: 1 ms for 20,000
vectors of 256 values, where LanceDB needs 11.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

# Columns by which rows are chosen, besides their id.
COLUMNS = ("source", "path", "language", "human_language", "source_type", "symbol_kind")
_MOST_BYTES = 128 << 20  # as 32-bit numbers: 131,072 vectors of 256 values
_BYTES_A_VALUE = 4
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

    def cosines(self, query: NDArray[np.float32], positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Between a unit vector of shape (dimension,) and the vectors at some positions: shape (positions,)."""
        is_whole = len(positions) == len(self.vectors)
        # Not `@`: the threads of BLAS wait for each other in a loop, 8 ms and more where other processes are at work.
        cosines: NDArray[np.float32] = np.vecdot(self.vectors if is_whole else self.vectors[positions], query)
        return cosines


@dataclass(frozen=True, eq=False, slots=True)
class Matrix:
    """The vectors of all sources, by their key and version, or by the pack that has those of many.

    `published` says which rows of a pack are, where not all are: one boolean a row.
    """

    parts: dict[tuple[str, str], Part]
    published: dict[tuple[str, str], NDArray[np.bool_]] = field(default_factory=dict)

    def nearest(self, query: NDArray[np.float32], key: Hashable, choose: Choose, limit: int) -> list[tuple[str, float]]:
        """So many of the ids nearest to a unit vector of shape (dimension,), in no order, and their cosines.

        Only rows that `choose` picks are looked at; the same key has the same answer.
        """
        chosen = [(part, self._published(name, part.choose(key, choose))) for name, part in self.parts.items()]
        cosines = np.concatenate([np.empty(0, np.float32), *(part.cosines(query, rows) for part, rows in chosen)])
        best = np.sort(np.argpartition(-cosines, limit)[:limit]) if limit < len(cosines) else np.arange(len(cosines))
        ids: list[str] = []
        start = 0
        for part, rows in chosen:
            first, end = np.searchsorted(best, (start, start + len(rows)))
            ids += part.rows["chunk_id"].take(pa.array(rows[best[first:end] - start])).to_pylist()
            start += len(rows)
        return list(zip(ids, cosines[best].tolist(), strict=True))

    def _published(self, name: tuple[str, str], positions: NDArray[np.int64]) -> NDArray[np.int64]:
        mask = self.published.get(name)
        return positions if mask is None else positions[mask[positions]]
