"""The texts of a generation as its files have them: mapped, so that they take no memory that others could not have."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from docindex_dagster.documents.convert import is_converted
from docindex_dagster.stores.matrix import Choose

_MOST_CHOICES = 4  # of filters whose answers are remembered: of each, four bytes a row
_TESTS = "test"
# By what chunks are ordered: whether it is of a test, path, chunk_index and chunk_id.
Place = tuple[bool, str, int, str]


class File(NamedTuple):
    """The chunks of a file, where they make up its text: the rows of a part from `start` to before `end`."""

    part: "Part"
    start: int
    end: int

    @property
    def text(self) -> bytes:
        """The text, in UTF-8; what two chunks have stands in it once."""
        ends, data = self.part.ends[self.start : self.end + 1], memoryview(self.part.batch["text"].buffers()[2])
        first, last = (self.part.spans[name][self.start : self.end] for name in ("start_byte", "end_byte"))
        repeated = last[:-1] - first[1:]
        if not repeated.any():
            return bytes(data[ends[0] : ends[-1]])
        begins = ends[:-1] + np.append(0, repeated)
        joined = b"".join(data[begin:end] for begin, end in zip(begins.tolist(), ends[1:].tolist(), strict=True))
        return joined.decode(errors="replace").encode()

    def value(self, column: str) -> Any:
        """What stands in a column of the first chunk."""
        return self.part.batch[column][self.start].as_py()


@dataclass(frozen=True, eq=False)
class Part:
    """Rows by path and chunk_index, as one batch of a file has them.

    Attributes:
        batch: with rows that a later file has, or says to be gone.
        rows: the positions of the others: int32, shape (rows,).
    """

    batch: pa.RecordBatch
    rows: NDArray[np.int32]
    _chosen: dict[Hashable, NDArray[np.int32]] = field(default_factory=dict, repr=False)

    def choose(self, key: Hashable, choose: Choose) -> NDArray[np.int32]:
        """The positions of the rows that `choose` picks, int32 (chosen,); the same key has the same answer."""
        chosen = self._chosen.get(key)
        if chosen is None:
            if len(self._chosen) >= _MOST_CHOICES:
                self._chosen.clear()
            about = pa.Table.from_batches([self.batch.drop_columns(["text"])])
            if len(self.rows) < self.batch.num_rows:
                about = about.take(pa.array(self.rows))
            chosen = self._chosen[key] = self.rows[choose(about)]
        return chosen

    def places(self, positions: NDArray[np.int32]) -> list[Place]:
        """Where the rows at some positions, int32 (rows,), are among all chunks."""
        names = ("path", "chunk_index", "chunk_id")
        columns = (self.batch[name].take(pa.array(positions)).to_pylist() for name in names)
        return list(zip(self.is_test[positions].tolist(), *columns, strict=True))

    @cached_property
    def ends(self) -> NDArray[np.int32]:
        """Where the text of each row of the batch begins, and the last ends, in its bytes: int32, shape (rows + 1,)."""
        text = self.batch["text"]
        return np.frombuffer(text.buffers()[1], np.int32)[text.offset : text.offset + len(text) + 1]

    def files(self) -> Iterator[tuple[tuple[str, str], File | None]]:
        """The files of its rows, by source and path; None for one whose text they do not make up."""
        if not len(self.rows):
            return
        paths = self.batch["path"].take(pa.array(self.rows))
        is_other = np.asarray(pc.not_equal(paths[1:], paths[:-1]))
        firsts = np.flatnonzero(np.concatenate([[True], is_other]))
        is_plain = np.logical_and.reduceat(self._goes_on(np.concatenate([[True], is_other])), firsts)
        ends = np.append(firsts[1:], len(paths))
        source = self.batch["source"][int(self.rows[0])].as_py()
        names = paths.take(pa.array(firsts)).to_pylist()
        languages = self.batch["language"].take(pa.array(self.rows[firsts])).to_pylist()
        columns = (names, languages, self.rows[firsts].tolist(), self.rows[ends - 1].tolist(), is_plain.tolist())
        for path, language, first, last, plain in zip(*columns, strict=True):
            is_text = plain and not is_converted(language)
            yield (source, path), File(self, first, last + 1) if is_text else None

    def _goes_on(self, is_first: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which rows are parts of their files as these are, and go on where the row before ends: shape (rows,)."""
        starts, ends = (self.spans[name][self.rows] for name in ("start_byte", "end_byte"))
        is_span = (starts >= 0) & (ends - starts == np.diff(self.ends)[self.rows])
        is_next = np.zeros(len(starts), np.bool_)
        is_next[1:] = (starts[1:] <= ends[:-1]) & (ends[:-1] <= ends[1:]) & (np.diff(self.rows) == 1)
        goes_on: NDArray[np.bool_] = is_span & (is_first | is_next)
        return goes_on

    @cached_property
    def spans(self) -> dict[str, NDArray[np.int64]]:
        """Where the chunks of the batch begin and end in their files, by column, -1 where unknown: int64 (rows,)."""
        return {name: np.asarray(pc.fill_null(self.batch[name], -1)) for name in ("start_byte", "end_byte")}

    @cached_property
    def is_test(self) -> NDArray[np.bool_]:
        """Which rows of the batch are of tests: booleans of shape (rows,)."""
        found: NDArray[np.bool_] = np.asarray(
            pc.fill_null(pc.equal(self.batch["source_type"], _TESTS), fill_value=False)
        )
        return found


class Piece(NamedTuple):
    """Some rows of a part, and the first place that one of them has among all chunks."""

    first: Place
    part: Part
    positions: NDArray[np.int32]

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

    @cached_property
    def files(self) -> dict[tuple[str, str], File | None]:
        """Each file by source and path; None where its chunks do not make up its text, or lie in several parts."""
        found: dict[tuple[str, str], File | None] = {}
        for part in self.parts:
            for name, file in part.files():
                found[name] = None if name in found else file
        return found

    def pieces(self, key: Hashable, choose: Choose, rows: int) -> Iterator[Piece]:
        """The rows that `choose` picks, so many in a piece, by part; the same key has the same answer."""
        for part in self.parts:
            chosen = part.choose(key, choose)
            for start in range(0, len(chosen), rows):
                positions = chosen[start : start + rows]
                yield Piece(_first(part, positions), part, positions)


def _first(part: Part, positions: NDArray[np.int32]) -> Place:
    """The first place of rows, which are by path but for those of tests."""
    at = int(positions[np.argmin(part.is_test[positions])])
    path, index, chunk_id = (part.batch[name][at].as_py() for name in ("path", "chunk_index", "chunk_id"))
    return bool(part.is_test[at]), path, index, chunk_id
