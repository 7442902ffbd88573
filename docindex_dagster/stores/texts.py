"""The texts of a generation as its files have them: mapped, so that they take no memory that others could not have."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_MOST_CHOICES = 32  # of filters whose answers are remembered
_TESTS = "test"
# Picks rows of a table by a mask of shape (rows,).
Choose = Callable[[pa.Table], NDArray[np.bool_]]
# By what chunks are ordered: whether it is of a test, path, chunk_index and chunk_id.
Place = tuple[bool, str, int, str]


@dataclass(frozen=True, eq=False)
class Part:
    """Rows by path and chunk_index, as one batch of a file has them.

    Attributes:
        batch: with rows that a later file has, or says to be gone.
        rows: the positions of the others: int64, shape (rows,).
    """

    batch: pa.RecordBatch
    rows: NDArray[np.int64]
    _chosen: dict[Hashable, NDArray[np.int64]] = field(default_factory=dict, repr=False)

    def choose(self, key: Hashable, choose: Choose) -> NDArray[np.int64]:
        """The positions of the rows that `choose` picks, int64 (chosen,); the same key has the same answer."""
        chosen = self._chosen.get(key)
        if chosen is None:
            if len(self._chosen) >= _MOST_CHOICES:
                self._chosen.clear()
            about = pa.Table.from_batches([self.batch.drop_columns(["text"])])
            if len(self.rows) < self.batch.num_rows:
                about = about.take(pa.array(self.rows))
            chosen = self._chosen[key] = self.rows[choose(about)]
        return chosen

    def places(self, positions: NDArray[np.int64]) -> list[Place]:
        """Where rows are among all chunks."""
        names = ("path", "chunk_index", "chunk_id")
        columns = (self.batch[name].take(pa.array(positions)).to_pylist() for name in names)
        return list(zip(self.is_test[positions].tolist(), *columns, strict=True))

    @cached_property
    def is_test(self) -> NDArray[np.bool_]:
        """Which rows of the batch are of tests: shape (rows of the batch,)."""
        found: NDArray[np.bool_] = np.asarray(pc.fill_null(pc.equal(self.batch["source_type"], _TESTS), fill_value=False))
        return found


class Piece(NamedTuple):
    """Some rows of a part, and the first place that one of them has among all chunks."""

    first: Place
    part: Part
    positions: NDArray[np.int64]

    @property
    def batch(self) -> pa.RecordBatch:
        """The rows, as they lie in the file where all that lie between the first and the last are of the piece."""
        start, end = int(self.positions[0]), int(self.positions[-1]) + 1
        if end - start == len(self.positions):
            return self.part.batch.slice(start, end - start)
        return self.part.batch.take(pa.array(self.positions))


@dataclass(frozen=True, eq=False)
class Texts:
    """The rows of all sources."""

    parts: tuple[Part, ...]

    def pieces(self, key: Hashable, choose: Choose, rows: int) -> Iterator[Piece]:
        """The rows that `choose` picks, so many in a piece, by part; the same key has the same answer."""
        for part in self.parts:
            chosen = part.choose(key, choose)
            for start in range(0, len(chosen), rows):
                positions = chosen[start : start + rows]
                yield Piece(_first(part, positions), part, positions)


def _first(part: Part, positions: NDArray[np.int64]) -> Place:
    """The first place of rows, which are by path but for those of tests."""
    at = np.argmin(part.is_test[positions])
    return part.places(positions[at : at + 1])[0]
