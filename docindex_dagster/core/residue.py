"""Residue: bytes of erased texts that are still in a file, whether or not a reader shows them.

Texts are searched for by their windows, which are all runs of 12 bytes. A file holds residue where five windows follow
each other, so 16 bytes: one alone may be the end of a text that stays and the byte behind it. Files are read byte by
byte, and the values of Parquet files, which are compressed, are decoded. What LanceDB and Tantivy compress is found
where they store it as literals.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from docindex_dagster.core.errors import ErasureError
from docindex_dagster.core.files import replacing

RESIDUE = 16  # bytes in a row that are found
_WINDOW = 12  # bytes
BREAK = b"\xff"  # between values that are not adjacent: no text holds it
_MOST = 1 << 21  # windows of a set
_PIECE = 1 << 20  # bytes of a file that are hashed at once, which takes 20 times the memory
_WORD = 8
_FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))
_SPARSE = 3  # bits: of eight slots and more, a window takes one
_IN_A_ROW = RESIDUE - _WINDOW + 1
_OWNER_ALONE = 0o600

Hashes = NDArray[np.uint64]


class Windows:
    """A set of windows, as hashes of 64 bits. It takes two million, and leaves out those that are added later."""

    def __init__(self, hashes: Hashes | None = None) -> None:
        self._hashes = np.empty(0, np.uint64) if hashes is None else np.unique(hashes)
        self._added: list[Hashes] = []
        self._added_size = 0
        self._slots = np.zeros(0, np.bool_)

    @property
    def hashes(self) -> Hashes:
        """Return the hashes, sorted."""
        if self._added:
            self._hashes = np.unique(np.concatenate([self._hashes, *self._added]))
            self._added, self._added_size, self._slots = [], 0, np.zeros(0, np.bool_)
        return self._hashes

    def add(self, data: bytes) -> None:
        """Add the windows of a text."""
        if self._added_size > _MOST:
            _ = self.hashes
        if len(self._hashes) < _MOST:
            for hashes in _hashes(data):
                self._added.append(hashes)
                self._added_size += len(hashes)

    def discard(self, data: bytes) -> None:
        """Remove the windows that occur in data."""
        for hashes in _hashes(data):
            found = hashes[self._are_found(hashes)]
            if len(found):
                self._hashes = np.setdiff1d(self._hashes, found)

    def occur_in(self, data: bytes) -> bool:
        """Return whether data holds residue: `RESIDUE` bytes in a row that consist of the windows."""
        for hashes in _hashes(data):
            found = self._are_found(hashes)
            if found.any() and np.lib.stride_tricks.sliding_window_view(found, _IN_A_ROW).all(axis=1).any():
                return True
        return False

    def _are_found(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Return which of the hashes are in the set."""
        found = np.zeros(len(hashes), np.bool_)
        if len(self.hashes):
            if not len(self._slots):  # a lookup here rules out nearly all hashes, and takes a tenth of a search
                self._slots = np.zeros(1 << len(self._hashes).bit_length() + _SPARSE, np.bool_)
                self._slots[_places(self._hashes, self._slots)] = True
            likely = np.flatnonzero(self._slots[_places(hashes, self._slots)])
            places = np.searchsorted(self._hashes[:-1], hashes[likely])
            found[likely] = self._hashes[places] == hashes[likely]
        return found


def _places(hashes: Hashes, slots: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the slot of each hash, by its first bits."""
    return (hashes >> np.uint64(65 - len(slots).bit_length())).view(np.int64)


def _hashes(data: bytes) -> Iterator[Hashes]:
    """Yield a hash of each window of data, in pieces that each hold all windows of `RESIDUE` bytes in a row."""
    for start in range(0, len(data) - RESIDUE + 1, _PIECE):
        piece = data[start : start + _PIECE + RESIDUE - 1]
        words = np.empty(len(piece) - _WORD + 1, np.uint64)  # one that begins at each byte
        for offset in range(_WORD):
            begun = words[offset::_WORD]
            begun[:] = np.frombuffer(piece, "<u8", len(begun), offset)
        rest = _WINDOW - _WORD  # the second word overlaps the first
        yield words[:-rest] * _FACTORS[0] + words[rest:] * _FACTORS[1]


@dataclass(frozen=True, slots=True)
class Erased:
    """What no file may hold after an erasure.

    Attributes:
        ids: of chunks and messages that are gone. No file may hold them, not even as a value.
        texts: the windows that occur only in texts that are gone.
    """

    ids: Windows = field(default_factory=Windows)
    texts: Windows = field(default_factory=Windows)

    @classmethod
    def load(cls, file: Path) -> "Erased":
        """Read what an unfinished erasure saved; empty where there is none, or the file is damaged."""
        try:
            with file.open("rb") as opened, np.load(opened, allow_pickle=False) as arrays:
                return cls(Windows(arrays["ids"]), Windows(arrays["texts"]))
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            return cls()

    def save(self, file: Path) -> None:
        """Save it for the next erasure, should this one be stopped. The file is as confidential as the texts."""
        with replacing(file, _OWNER_ALONE) as temporary, temporary.open("wb") as out:
            np.savez(out, ids=self.ids.hashes, texts=self.texts.hashes)

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to search for."""
        return not (len(self.ids.hashes) or len(self.texts.hashes))

    def search(self, files: Iterable[Path]) -> tuple[int, int]:
        """Read files to the end, and return how many there are, and their bytes. Files that disappear do not count.

        Raises:
            ErasureError: a file holds an id or a text that was erased, or cannot be read.
        """
        wanted = Windows(np.concatenate([self.ids.hashes, self.texts.hashes]))
        number, size = 0, 0
        for file in files:
            try:
                size += sum(_search(file, wanted))
                number += 1
            except FileNotFoundError:
                continue
            except (OSError, pa.ArrowException) as error:
                raise ErasureError(f"cannot search {file} for erased texts: {error}") from error
        return number, size


def _search(file: Path, wanted: Windows) -> Iterator[int]:
    """Yield the size of each piece of a file, once nothing was found in it."""
    with file.open("rb") as opened:
        end = b""
        while piece := opened.read(_PIECE):
            _check(file, end + piece, wanted)
            end = (end + piece)[1 - RESIDUE :]
            yield len(piece)
    if file.suffix == ".parquet":
        for batch in _batches(file):
            _check(file, BREAK.join(strings(batch)), wanted)


def _check(file: Path, data: bytes, wanted: Windows) -> None:
    if wanted.occur_in(data):
        raise ErasureError(f"{file} still holds erased text; delete it if docindex did not write it, then erase again")


def batches_of(file: Path) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file, as far as it is there and can be read."""
    with suppress(FileNotFoundError, pa.ArrowException):
        yield from _batches(file)


def _batches(file: Path) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(file) as opened:
        yield from opened.iter_batches()


def strings(batch: pa.RecordBatch | pa.Table) -> Iterator[bytes]:
    """Yield the strings of all columns, also of nested ones, column by column."""
    for column in batch.columns:
        for array in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            yield from _strings(array)


def _strings(array: pa.Array) -> Iterator[bytes]:
    if pa.types.is_struct(array.type):
        for child in array.flatten():
            yield from _strings(child)
    elif pa.types.is_list(array.type):
        yield from _strings(array.flatten())
    elif pa.types.is_string(array.type):
        yield from array.cast(pa.binary()).drop_null().to_pylist()
