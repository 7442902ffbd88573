"""The index of a git work tree, as far as it says whether git tracks files below a folder.

It is read here, in some microseconds, because every command asks. The format is git's `gitformat-index(5)`.
"""

import os
from functools import lru_cache
from pathlib import Path
from struct import unpack_from

from docindex_dagster.core.files import stamp

_SIGNATURE, _HEADER_BYTES = b"DIRC", 12
_COMPRESSED = 4  # the version whose paths leave out what they share with the path before
_STAT_BYTES, _FLAGS_BYTES, _HASH_BYTES = 40, 2, 20
_EXTENDED = 0x4000  # a flag: two more bytes of flags follow
_LONGEST_PATH = 1 << 12


def is_tracked(folder: Path) -> bool:
    """Whether git tracks files below a folder, in the innermost work tree around it."""
    top = next((parent for parent in folder.parents if (parent / ".git").exists()), None)
    if top is None:
        return False
    entry = top / ".git"
    git_folder = entry
    if entry.is_file():
        git_folder = top / os.fsdecode(entry.read_bytes()[:_LONGEST_PATH]).strip().removeprefix("gitdir: ")
    prefix = os.fsencode(folder.relative_to(top)) + b"/"
    # A split index keeps most of its entries in a file beside it.
    return any(_holds(file, stamp(file), prefix) for file in (git_folder / "index", *git_folder.glob("sharedindex.*")))


@lru_cache(maxsize=8)
def _holds(file: Path, _stamp: tuple[int, ...] | None, prefix: bytes) -> bool:
    try:
        data = file.read_bytes()
    except OSError:
        return False
    if data[: len(_SIGNATURE)] != _SIGNATURE or len(data) < _HEADER_BYTES:
        return False
    version, count = unpack_from(">II", data, len(_SIGNATURE))
    if version != _COMPRESSED:  # paths are whole, each between its length and a NUL
        return prefix in data
    return _holds_compressed(data, count, prefix)


def _holds_compressed(data: bytes, count: int, prefix: bytes) -> bool:
    """The same for paths that are sorted, each written as how much of the last one it drops, and what it adds."""
    path, at = b"", _HEADER_BYTES
    try:
        for _ in range(count):
            at += _STAT_BYTES + _HASH_BYTES
            (flags,) = unpack_from(">H", data, at)
            at += _FLAGS_BYTES * (2 if flags & _EXTENDED else 1)
            dropped, at = _offset(data, at)
            end = data.index(b"\0", at)
            path, at = path[: len(path) - dropped] + data[at:end], end + 1
            if path >= prefix:
                return path.startswith(prefix)
    except (IndexError, ValueError):  # it is cut off
        return True
    return False


def _offset(data: bytes, at: int) -> tuple[int, int]:
    """A number in git's encoding of offsets, and where it ends."""
    number = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        number = (number + 1) << 7 | data[at] & 0x7F
    return number, at + 1
