"""Rows of a generation, memory-mapped from its files."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from docindex_dagster.documents.model import is_converted
from docindex_dagster.stores import matrix
from docindex_dagster.stores.matrix import BITS, BYTES, signs, to_float32

VECTOR, SIGNS = "vector", "signs"
# Columns that filters use, besides the id.
COLUMNS = ("source", "path", "language", "human_language", "source_type", "symbol_kind")
_MAX_CACHED_CHOICES = 32  # cached filter results per part
_SIGN_TOLERANCE = 0.01  # tolerated fraction of differing sign bits
_TESTS = "test"
# Sort key of a chunk: whether it is from a test, path, chunk_index and chunk_id.
Place = tuple[bool, str, int, str]
# Returns a mask of shape (rows,) that selects rows of a table.
Choose = Callable[[pa.Table], NDArray[np.bool_]]


class File(NamedTuple):
    """A file whose chunks make up its text: rows `start` to `end` (exclusive) of a part."""

    part: "Part"
    start: int
    end: int

    @property
    def text(self) -> bytes:
        """The text in UTF-8, without repeating the overlap of chunks."""
        ends, data = self.part.ends[self.start : self.end + 1], memoryview(self.part.batch["text"].buffers()[2])
        first, last = (self.part.spans[name][self.start : self.end] for name in ("start_byte", "end_byte"))
        repeated = last[:-1] - first[1:]
        if not repeated.any():
            return bytes(data[ends[0] : ends[-1]])
        starts = ends[:-1] + np.append(0, repeated)
        joined = b"".join(data[start:end] for start, end in zip(starts.tolist(), ends[1:].tolist(), strict=True))
        return joined.decode(errors="replace").encode()

    def value(self, column: str) -> Any:
        """Return the value of a column in the first chunk."""
        return self.part.batch[column][self.start].as_py()


@dataclass(frozen=True, eq=False)
class Part:
    """A batch of rows with their vectors, sorted by source, path and chunk_index.

    A row without a text marks the deletion of a chunk from an earlier file.
    """

    batch: pa.RecordBatch
    _chosen: dict[Hashable, NDArray[np.int64]] = field(default_factory=dict, repr=False)

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """The positions of the rows with a text, int64 (rows,)."""
        return np.flatnonzero(self.batch["text"].is_valid())

    @cached_property
    def sources(self) -> frozenset[str]:
        """The keys of the sources in this part."""
        return frozenset(self.batch["source"].unique().to_pylist())

    @cached_property
    def ids(self) -> pa.Array:
        """The ids of all rows, including deletions."""
        return self.batch["chunk_id"]

    @cached_property
    def stored(self) -> NDArray[np.float16]:
        """The vectors of all rows as stored: float16, shape (rows, dimension)."""
        column = self.batch[VECTOR]
        size = column.type.list_size
        values = column.values.slice(column.offset * size, len(column) * size)
        found: NDArray[np.float16] = values.to_numpy(zero_copy_only=False).reshape(-1, size)
        return found

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """The vectors at unit length: float32, shape (rows, dimension)."""
        return to_unit_vectors(self.stored)

    @cached_property
    def signs(self) -> NDArray[np.uint64]:
        """The sign bits of all vectors, from the file or else computed: shape (rows, 8)."""
        if SIGNS not in self.batch.schema.names:
            return signs(self.stored)
        column = self.batch[SIGNS]
        held = np.frombuffer(column.buffers()[1], np.uint64).reshape(-1, BYTES // 8)
        return held[column.offset : column.offset + len(column)]

    def has_own_signs(self, rows: NDArray[np.int64]) -> bool:
        """Return whether the sign bits of rows, int64 (rows,), match their vectors, apart from a few.

        For a vector very close to a plane, another processor may compute the opposite sign.
        """
        differing = int(np.bitwise_count(self.signs[rows] ^ signs(self.stored[rows])).sum(dtype=np.int64))
        return differing <= len(rows) * BITS * _SIGN_TOLERANCE

    def choose(self, key: Hashable, choose: Choose) -> NDArray[np.int64]:
        """Return the positions of the rows that `choose` selects, int64 (chosen,); cached by `key`."""
        chosen = self._chosen.get(key)
        if chosen is None:
            if len(self._chosen) >= _MAX_CACHED_CHOICES:
                self._chosen.clear()
            columns = pa.Table.from_batches([self.batch.select(["chunk_id", *COLUMNS])])
            if len(self.rows) < self.batch.num_rows:
                columns = columns.take(pa.array(self.rows))
            chosen = self.rows[choose(columns)]
            self._chosen[key] = chosen = self.rows if len(chosen) == len(self.rows) else chosen
        return chosen

    def places(self, positions: NDArray[np.int64]) -> list[Place]:
        """Return the sort keys of the rows at these positions, int64 (rows,)."""
        values = self.values(("path", "chunk_index", "chunk_id"), positions)
        return [(is_test, *place) for is_test, place in zip(self.is_test[positions].tolist(), values, strict=True)]

    def values(self, names: Sequence[str], positions: NDArray[np.int64]) -> Iterator[tuple[Any, ...]]:
        """Return the values of columns in the rows at these positions, int64 (rows,)."""
        return zip(*(self.batch[name].take(pa.array(positions)).to_pylist() for name in names), strict=True)

    @cached_property
    def ends(self) -> NDArray[np.int32]:
        """The byte offsets of the texts of all rows: int32, shape (rows + 1,)."""
        text = self.batch["text"]
        return np.frombuffer(text.buffers()[1], np.int32)[text.offset : text.offset + len(text) + 1]

    @cached_property
    def begins(self) -> NDArray[np.int64]:
        """The positions at which a new source starts, except the first: int64, shape (sources - 1,)."""
        sources = self.batch["source"].take(pa.array(self.rows))
        is_other: NDArray[np.bool_] = np.asarray(pc.not_equal(sources[1:], sources[:-1]))
        return self.rows[1:][is_other]

    def files(self, live: NDArray[np.bool_] | None) -> Iterator[tuple[tuple[str, str], File | None]]:
        """Yield the files of the rows, or of those that a boolean mask of shape (rows,) keeps, by source and path.

        Yield None for a file whose text its chunks do not make up.
        """
        rows = live_rows(self.rows, live)
        if not len(rows):
            return
        sources, paths = (self.batch[name].take(pa.array(rows)) for name in ("source", "path"))
        is_other = np.asarray(pc.or_(*(pc.not_equal(names[1:], names[:-1]) for names in (sources, paths))))
        is_first = np.concatenate([[True], is_other])
        firsts = np.flatnonzero(is_first)
        is_plain = np.logical_and.reduceat(self._continues(rows, is_first), firsts)
        last = rows[np.append(firsts[1:], len(rows)) - 1]
        names = (values.take(pa.array(firsts)).to_pylist() for values in (sources, paths))
        languages = self.batch["language"].take(pa.array(rows[firsts])).to_pylist()
        columns = (*names, languages, rows[firsts].tolist(), last.tolist(), is_plain.tolist())
        for source, path, language, start, end, plain in zip(*columns, strict=True):
            is_text = plain and not is_converted(language)
            yield (source, path), File(self, start, end + 1) if is_text else None

    def _continues(self, rows: NDArray[np.int64], is_first: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which rows are spans of their file that continue the previous row without a gap: shape (rows,)."""
        starts, ends = (self.spans[name][rows] for name in ("start_byte", "end_byte"))
        is_span = (starts >= 0) & (ends - starts == np.diff(self.ends)[rows])
        is_next = np.zeros(len(starts), np.bool_)
        is_next[1:] = (starts[1:] <= ends[:-1]) & (ends[:-1] <= ends[1:]) & (np.diff(rows) == 1)
        continues: NDArray[np.bool_] = is_span & (is_first | is_next)
        return continues

    @cached_property
    def spans(self) -> dict[str, NDArray[np.int64]]:
        """The byte ranges of the chunks in their files, by column, -1 if unknown: int64 (rows,)."""
        return {name: np.asarray(pc.fill_null(self.batch[name], -1)) for name in ("start_byte", "end_byte")}

    @cached_property
    def is_test(self) -> NDArray[np.bool_]:
        """Which rows are from tests: booleans of shape (rows,)."""
        found: NDArray[np.bool_] = np.asarray(
            pc.fill_null(pc.equal(self.batch["source_type"], _TESTS), fill_value=False)
        )
        return found


Held = tuple[Part, NDArray[np.bool_] | None]
"""A part, and a mask of shape (rows,) of the rows that belong to the generation; None for all."""
Chosen = Sequence[tuple[Part, NDArray[np.int64]]]
"""Parts, each with the positions of the selected rows."""


class Piece(NamedTuple):
    """Rows of one source in a part, and the smallest sort key among them."""

    first: Place
    part: Part
    positions: NDArray[np.int64]

    @property
    def batch(self) -> pa.RecordBatch:
        """The rows; a slice of the part without copying if they are consecutive."""
        start, end = int(self.positions[0]), int(self.positions[-1]) + 1
        if end - start == len(self.positions):
            return self.part.batch.slice(start, end - start)
        return self.part.batch.take(pa.array(self.positions))


@dataclass(frozen=True, eq=False)
class Parts:
    """The rows of all sources of a generation.

    Attributes:
        held: its parts, with masks of the rows that belong to the generation.
        by_file: the parts by file, to be reused by the reader of the next generation.
    """

    held: Sequence[Held]
    by_file: Mapping[str, tuple[Part, ...]] = field(default_factory=dict)

    def chosen(self, key: Hashable, choose: Choose) -> Chosen:
        """Return the rows that `choose` selects in each part; cached by `key`."""
        found = [(part, live_rows(part.choose(key, choose), live)) for part, live in self.held]
        return [(part, rows) for part, rows in found if len(rows)]

    def of_source(self, key: str) -> Chosen:
        """Return the rows of a source."""
        selected = Parts([(part, live) for part, live in self.held if key in part.sources])
        return selected.chosen(("source", key), lambda rows: np.asarray(pc.equal(rows["source"], key)))

    def nearest(self, query: NDArray[np.float32], key: Hashable, choose: Choose, limit: int) -> list[tuple[str, float]]:
        """Return the `limit` ids nearest to a unit vector of shape (dimension,), unordered, and their cosines.

        Ties with the last one are included. Only rows that `choose` selects are compared; the selection is cached by
        `key`.
        """
        is_exact = matrix.fits_in_memory(sum(len(part.rows) for part, _ in self.held), len(query))
        return matrix.nearest(query, self.chosen(key, choose), limit, is_exact=is_exact)

    def values(self, chunk_ids: Sequence[str], names: Sequence[str]) -> dict[str, tuple[Any, ...]]:
        """Return the values of columns in chunks, by id."""
        found = self._rows_of(chunk_ids)
        return {row[0]: row[1:] for part, rows in found for row in part.values(("chunk_id", *names), rows)}

    def vectors(self, chunk_ids: Sequence[str]) -> NDArray[np.float32]:
        """Return the unit vectors of chunks, unordered: float32, (found, dimension)."""
        return np.concatenate([to_unit_vectors(part.stored[rows]) for part, rows in self._rows_of(chunk_ids)])

    def _rows_of(self, chunk_ids: Sequence[str]) -> Chosen:
        wanted = pa.array(chunk_ids, pa.string())
        return [(part, live_rows(np.flatnonzero(pc.is_in(part.ids, wanted)), live)) for part, live in self.held]

    @cached_property
    def files(self) -> dict[tuple[str, str], File | None]:
        """Return each file by source and path; None if its chunks do not make up its text, or are in several parts."""
        found: dict[tuple[str, str], File | None] = {}
        for part, live in self.held:
            for name, file in part.files(live):
                found[name] = None if name in found else file
        return found

    def pieces(self, key: Hashable, choose: Choose, rows: int) -> Iterator[Piece]:
        """Yield the rows that `choose` selects in pieces of up to `rows` rows; the selection is cached by `key`."""
        for part, chosen in self.chosen(key, choose):
            for of_source in np.split(chosen, np.searchsorted(chosen, part.begins)):
                for start in range(0, len(of_source), rows):
                    positions = of_source[start : start + rows]
                    yield Piece(_first(part, positions), part, positions)


def to_unit_vectors(stored: NDArray[np.float16]) -> NDArray[np.float32]:
    """Return stored vectors, (vectors, dimension), at unit length: float32, same shape."""
    vectors = to_float32(stored)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    return vectors


def live_rows(rows: NDArray[np.int64], live: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    """Return the positions, int64 (rows,), that a mask keeps."""
    return rows if live is None else rows[live[rows]]


def _first(part: Part, positions: NDArray[np.int64]) -> Place:
    """Return the smallest sort key of rows, which are sorted by path except that tests come last."""
    at = int(positions[np.argmin(part.is_test[positions])])
    path, index, chunk_id = (part.batch[name][at].as_py() for name in ("path", "chunk_index", "chunk_id"))
    return bool(part.is_test[at]), path, index, chunk_id
