"""Residue: bytes of erased texts that remain in a file, whether or not a reader shows them.

The search uses windows, which are all runs of 12 bytes in a text. Five consecutive windows in a file, so 16 bytes, are
residue; a single one may be the end of a remaining text plus the byte after it. Files are scanned as raw bytes. The
values of Parquet files, which are compressed, are also decoded. Data that LanceDB and Tantivy compress is found where
they store it as literals.
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
from docindex_dagster.core.files import atomic_write

RESIDUE = 16  # consecutive bytes that count as residue
_WINDOW = 12  # bytes
BREAK = b"\xff"  # separates values that are not adjacent; never occurs in UTF-8 text
_MAX_WINDOWS = 1 << 21  # in a set
_BLOCK = 1 << 20  # bytes of a file that are hashed at a time, which takes 20 times the memory
_WORD = 8
_FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))
_SPARSE = 3  # bits: at least eight slots per window
_CONSECUTIVE = RESIDUE - _WINDOW + 1
_OWNER_ONLY = 0o600

Hashes = NDArray[np.uint64]


class Windows:
    """A set of windows, as 64-bit hashes. Once it holds two million, it ignores further ones."""

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
        if self._added_size > _MAX_WINDOWS:
            _ = self.hashes
        if len(self._hashes) < _MAX_WINDOWS:
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
        """Return whether data contains residue: `RESIDUE` consecutive bytes covered by the windows."""
        for hashes in _hashes(data):
            found = self._are_found(hashes)
            if found.any() and np.lib.stride_tricks.sliding_window_view(found, _CONSECUTIVE).all(axis=1).any():
                return True
        return False

    def _are_found(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Return which of the hashes are in the set."""
        found = np.zeros(len(hashes), np.bool_)
        if len(self.hashes):
            if not len(self._slots):  # a slot lookup rules out nearly all hashes in a tenth of the time of a search
                self._slots = np.zeros(1 << len(self._hashes).bit_length() + _SPARSE, np.bool_)
                self._slots[_slot_indices(self._hashes, self._slots)] = True
            likely = np.flatnonzero(self._slots[_slot_indices(hashes, self._slots)])
            positions = np.searchsorted(self._hashes[:-1], hashes[likely])
            found[likely] = self._hashes[positions] == hashes[likely]
        return found


def _slot_indices(hashes: Hashes, slots: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the slot of each hash, which its leading bits select."""
    return (hashes >> np.uint64(65 - len(slots).bit_length())).view(np.int64)


def _hashes(data: bytes) -> Iterator[Hashes]:
    """Yield the hashes of all windows of data, block by block. Blocks overlap, so no residue is split between them."""
    for start in range(0, len(data) - RESIDUE + 1, _BLOCK):
        block = data[start : start + _BLOCK + RESIDUE - 1]
        words = np.empty(len(block) - _WORD + 1, np.uint64)  # one starting at each byte
        for offset in range(_WORD):
            aligned = words[offset::_WORD]
            aligned[:] = np.frombuffer(block, "<u8", len(aligned), offset)
        rest = _WINDOW - _WORD  # the second word overlaps the first
        yield words[:-rest] * _FACTORS[0] + words[rest:] * _FACTORS[1]


@dataclass(frozen=True, slots=True)
class Erased:
    """The data that no file may contain after an erasure.

    Attributes:
        ids: The windows of the IDs of erased chunks and messages. No file may contain them, not even as a value.
        texts: The windows that occur only in erased texts.
    """

    ids: Windows = field(default_factory=Windows)
    texts: Windows = field(default_factory=Windows)

    @classmethod
    def load(cls, file: Path) -> "Erased":
        """Load the state of an unfinished erasure; empty if the file is missing or damaged."""
        try:
            with file.open("rb") as opened, np.load(opened, allow_pickle=False) as arrays:
                return cls(Windows(arrays["ids"]), Windows(arrays["texts"]))
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            return cls()

    def save(self, file: Path) -> None:
        """Save the state, in case this erasure is interrupted. The file is as confidential as the texts."""
        with atomic_write(file, _OWNER_ONLY) as temporary, temporary.open("wb") as out:
            np.savez(out, ids=self.ids.hashes, texts=self.texts.hashes)

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to search for."""
        return not (len(self.ids.hashes) or len(self.texts.hashes))

    def search(self, files: Iterable[Path]) -> tuple[int, int]:
        """Search files completely, and return their number and total bytes, not counting files that disappear.

        Raises:
            ErasureError: A file contains an erased ID or text, or cannot be read.
        """
        windows = Windows(np.concatenate([self.ids.hashes, self.texts.hashes]))
        number, size = 0, 0
        for file in files:
            try:
                size += sum(_search(file, windows))
                number += 1
            except FileNotFoundError:
                continue
            except (OSError, pa.ArrowException) as error:
                raise ErasureError(f"cannot search {file} for erased texts: {error}") from error
        return number, size


def _search(file: Path, windows: Windows) -> Iterator[int]:
    """Yield the size of each block of a file after checking it."""
    with file.open("rb") as opened:
        tail = b""
        while block := opened.read(_BLOCK):
            _check(file, tail + block, windows)
            tail = (tail + block)[1 - RESIDUE :]
            yield len(block)
    if file.suffix == ".parquet":
        for batch in _batches(file):
            _check(file, BREAK.join(strings(batch)), windows)


def _check(file: Path, data: bytes, windows: Windows) -> None:
    if windows.occur_in(data):
        raise ErasureError(
            f"{file} still contains erased text; delete it if docindex did not write it, then erase again"
        )


def batches_of(file: Path) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file; stop early if it is missing or damaged."""
    with suppress(FileNotFoundError, pa.ArrowException):
        yield from _batches(file)


def _batches(file: Path) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(file) as opened:
        yield from opened.iter_batches()


def strings(batch: pa.RecordBatch | pa.Table) -> Iterator[bytes]:
    """Yield the strings of all columns, including nested ones, column by column."""
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
