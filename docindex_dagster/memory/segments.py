"""Files of a log: a folder with one segment for each process that wrote to it. Symbolic links are never followed.

A sealed segment is read-only. Its writer continues in another one, so that a fold can remove the entire segment. Older
versions removed records by copying the others into a folder with a higher number; the folder with the highest number
is current.

A segment begins with a header. A frame is a head and a payload; the head has a mark, the length and the CRC of the
payload, and a CRC of these three. So every flipped bit and torn write is detected. The bytes of the mark never occur in
UTF-8, so the next frame can be found after a damaged one, and no text can imitate a frame.
"""

import os
import re
import secrets
import shutil
import stat
import struct
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from docindex_dagster.core import files, locks
from docindex_dagster.core.errors import LogError
from docindex_dagster.core.layout import Layout

_FIRST = "00000000"
_FOLDER = re.compile(r"\d{8}")
_SEGMENT = re.compile(r"[0-9a-f]{16}-\d+-[0-9a-f]{16}\.seg")
_USER_DIRECTORY, _USER_FILE, _GROUP_DIRECTORY, _GROUP_FILE = 0o700, 0o600, 0o050, 0o040
_ALL_MAY_WRITE = 0o222
_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC
# Not available on all systems; it skips metadata that is unrelated to the file size.
sync_data = getattr(os, "fdatasync", os.fsync)
_MAGIC = b"docindex"
_VERSION = 1  # also the version of records: adding a field changes it
_PREAMBLE = struct.Struct("<8sI")
_CRC = struct.Struct("<I")
_MARK = b"\xff\xfe"
_FIELDS = struct.Struct("<2sII")
_HEAD_BYTES = _FIELDS.size + _CRC.size


class Segments:
    """Segments of a domain's log."""

    def __init__(self, home: Layout) -> None:
        """Use the log of the domain with this home."""
        self.home = home
        self._log = home.log

    def path(self, segment: str) -> Path:
        """Return the file of a segment."""
        return self._log / segment

    def folder(self) -> str | None:
        """Return the name of the current folder, or None if nothing was written yet.

        Raises:
            LogError: The log is in a symbolic link.
        """
        self._check()
        try:
            entries = list(os.scandir(self._log))
        except FileNotFoundError:
            return None
        names = (each.name for each in entries if _FOLDER.fullmatch(each.name) and each.is_dir(follow_symlinks=False))
        return max(names, default=None)

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the segments, in order of creation.

        Raises:
            LogError: The folder is a symbolic link.
        """
        while (folder := self.folder()) is not None:
            try:
                entries = list(os.scandir(self._log / folder))
                found = {f"{folder}/{each.name}": _size(each) for each in entries if _SEGMENT.fullmatch(each.name)}
            except FileNotFoundError:  # a segment was removed in the meantime
                continue
            return {name: size for name, size in sorted(found.items()) if size is not None}
        return {}

    def read(self, segment: str, start: int, end: int) -> bytes:
        """Read bytes of a segment.

        Raises:
            FileNotFoundError: The segment was removed.
        """
        descriptor = os.open(self.path(segment), os.O_RDONLY | _NO_LINK)
        try:
            return os.pread(descriptor, end - start, start)
        finally:
            os.close(descriptor)

    def create(self) -> tuple[str, int]:
        """Create a segment, without syncing it, and return its name and a descriptor for appending.

        Raises:
            LogError: The folder is a symbolic link.
        """
        folder = self.folder() or _FIRST
        self._make(self._log / folder)
        name = f"{folder}/{time.time_ns() // 1000:016x}-{os.getpid()}-{secrets.token_hex(8)}.seg"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | _NO_LINK
        return name, os.open(self.path(name), flags, _USER_FILE | self._home_mode() & _GROUP_FILE)

    def seal(self) -> dict[str, int]:
        """Make the existing segments read-only, and return their sizes. The caller holds the exclusive lock.

        Raises:
            LogError: The folder is a symbolic link.
        """
        sizes = self.sizes()
        for segment in sizes:
            descriptor = os.open(self.path(segment), os.O_RDONLY | _NO_LINK)
            try:
                os.fchmod(descriptor, stat.S_IMODE(os.fstat(descriptor).st_mode) & ~_ALL_MAY_WRITE)
            finally:
                os.close(descriptor)
        return sizes

    @contextmanager
    def appending(self) -> Iterator[None]:
        """Hold the shared lock for appending, which prevents sealing and removal of segments.

        Raises:
            LogError: The folder is a symbolic link.
        """
        self._check()
        self._make(self.home.home)
        with locks.shared(self.home.log_lock):
            yield

    @contextmanager
    def alone(self, owner: str) -> Iterator[None]:
        """Hold the exclusive lock, which prevents appending, sealing and removal by others.

        Raises:
            LogError: The folder is a symbolic link.
        """
        self._check()
        self._make(self.home.home)
        with locks.exclusive_of_shared(self.home.log_lock, owner, lambda _: None):
            yield

    def sync_names(self, folder: str) -> None:
        """Sync the directory entries of the segments in a folder, and of its parent folders."""
        path = self._log / folder
        files.sync([path, *path.parents[: len(path.relative_to(self._project_home).parts)]])

    def remove(self, segments: list[str]) -> None:
        """Remove segments, and leftovers of older versions. The caller holds the exclusive lock.

        Raises:
            LogError: The folder is a symbolic link.
        """
        for segment in segments:
            self.path(segment).unlink(missing_ok=True)
        last = self.folder()
        for leftover in sorted(self._log.iterdir()):
            if leftover.is_symlink() or leftover.is_file():
                leftover.unlink()
            elif leftover.name != last:
                shutil.rmtree(leftover)
        if last is not None:
            self.sync_names(last)

    def _check(self) -> None:
        if os.path.islink(self.home.home) or os.path.islink(self._log):  # noqa: PTH114 faster than Path, on each read
            raise LogError(f"{self._log} is, or is inside, a symbolic link: replace the link with a folder")

    def _make(self, folder: Path) -> None:
        """Create a folder and its parents, with the access rights of the project's home."""
        if folder.is_dir():
            return
        self._make(folder.parent)
        folder.mkdir(_USER_DIRECTORY | self._home_mode() & _GROUP_DIRECTORY, exist_ok=True)

    def _home_mode(self) -> int:
        """Return the mode of the project's home, for its group permissions."""
        return self._project_home.stat().st_mode if self._project_home.is_dir() else 0

    @property
    def _project_home(self) -> Path:
        """The project's home, which contains the domain's home, see `Layout.domain`."""
        return self.home.home.parent.parent


def _size(entry: "os.DirEntry[str]") -> int | None:
    """Return the size of a regular file; None for anything else."""
    found = entry.stat(follow_symlinks=False)
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _with_crc(data: bytes) -> bytes:
    """Append a CRC to bytes."""
    return data + _CRC.pack(zlib.crc32(data))


HEADER = _with_crc(_PREAMBLE.pack(_MAGIC, _VERSION))


@dataclass(frozen=True, slots=True)
class Frame:
    """Intact frame."""

    start: int
    end: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Flaw:
    """Bytes that are not a frame."""

    start: int
    end: int
    is_torn: bool  # an incomplete write at the end, rather than damage


@dataclass(frozen=True, slots=True)
class Decoded:
    """Decoded bytes of a segment, and the position at which to continue."""

    frames: tuple[Frame, ...]
    flaws: tuple[Flaw, ...]
    end: int


def encode(payload: bytes) -> bytes:
    """Return the frame of a payload, which is UTF-8."""
    return _with_crc(_FIELDS.pack(_MARK, len(payload), zlib.crc32(payload))) + payload


def decode(data: bytes, start: int = 0) -> Decoded:
    """Decode the bytes of a segment from `start` on. Damage affects only the frame that contains it.

    Raises:
        LogError: A later version of docindex wrote the segment.
    """
    frames: list[Frame] = []
    flaws: list[Flaw] = []
    position = 0 if start else _after_header(data, flaws)
    while position < len(data):
        head = _head(data, position)
        if head is None:
            next_head = _next_head(data, position + 1)
            if next_head is None:
                flaws.append(Flaw(start + position, start + len(data), _is_torn(data[position:])))
                break
            flaws.append(Flaw(start + position, start + next_head, is_torn=False))
            position = next_head
            continue
        length, crc = head
        end = position + _HEAD_BYTES + length
        if end > len(data):
            flaws.append(Flaw(start + position, start + len(data), is_torn=True))
            break
        payload = data[position + _HEAD_BYTES : end]
        if zlib.crc32(payload) == crc:
            frames.append(Frame(start + position, start + end, payload))
        else:
            flaws.append(Flaw(start + position, start + end, is_torn=False))
        position = end
    return Decoded(tuple(frames), tuple(flaws), start + position)


def _after_header(data: bytes, flaws: list[Flaw]) -> int:
    """Return where the frames begin: 0 if the header is incomplete, else after the header, even if it is damaged."""
    if len(data) < len(HEADER):
        return 0
    if data.startswith(HEADER):
        return len(HEADER)
    preamble = data[: _PREAMBLE.size]
    magic, version = _PREAMBLE.unpack(preamble)
    if magic == _MAGIC and data.startswith(_with_crc(preamble)):
        raise LogError(f"the log has format {version}, but this docindex reads format {_VERSION}: upgrade docindex")
    flaws.append(Flaw(0, len(HEADER), is_torn=False))
    return len(HEADER)


def _head(data: bytes, position: int) -> tuple[int, int] | None:
    """Return the length and the CRC of the payload from the head at a position, or None if there is no head."""
    head = data[position : position + _HEAD_BYTES]
    if len(head) < _HEAD_BYTES or _with_crc(head[: _FIELDS.size]) != head:
        return None
    mark, length, crc = _FIELDS.unpack_from(head)
    return (length, crc) if mark == _MARK else None


def _next_head(data: bytes, position: int) -> int | None:
    """Return the next position with a head."""
    while (position := data.find(_MARK, position)) >= 0:
        if _head(data, position) is not None:
            return position
        position += 1
    return None


def _is_torn(rest: bytes) -> bool:
    """Return whether trailing bytes come from one torn write: part of a header or head, or zeros after a power cut."""
    is_part = len(rest) < _HEAD_BYTES and (rest.startswith(_MARK) or _MARK.startswith(rest))
    return is_part or HEADER.startswith(rest) or not rest.strip(b"\0")
