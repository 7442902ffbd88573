"""The files of a log: a folder with a segment for each process that wrote. No symbolic link is followed.

A sealed segment is read-only. Its writer goes on in another one, so a fold can remove it as a whole. Older versions
took records out by copying the others into a folder with a higher number: the highest one counts.

A segment begins with a header. A frame is a head and a payload; the head has a mark, the payload's length, its CRC, and
the CRC of these three. So each flipped bit and each torn write is noticed. The mark's bytes occur in no UTF-8: so the
next frame is found behind a damaged one, and no text can imitate one.
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
# Not all systems have it; it leaves out what a file's size does not hang on.
sync_data = getattr(os, "fdatasync", os.fsync)
_MAGIC = b"docindex"
_VERSION = 1  # also of the records: a field more is another version
_PREAMBLE = struct.Struct("<8sI")
_CRC = struct.Struct("<I")
_MARK = b"\xff\xfe"
_FIELDS = struct.Struct("<2sII")
_HEAD_BYTES = _FIELDS.size + _CRC.size


class Segments:
    """The segments of the log of a domain."""

    def __init__(self, home: Layout) -> None:
        """Those of the domain whose home this is."""
        self.home = home
        self._log = home.log

    def path(self, segment: str) -> Path:
        """The file of a segment."""
        return self._log / segment

    def folder(self) -> str | None:
        """The name of the folder that counts; None where nothing was written yet.

        Raises:
            LogError: it lies in a symbolic link.
        """
        self._check()
        try:
            entries = list(os.scandir(self._log))
        except FileNotFoundError:
            return None
        names = (each.name for each in entries if _FOLDER.fullmatch(each.name) and each.is_dir(follow_symlinks=False))
        return max(names, default=None)

    def sizes(self) -> dict[str, int]:
        """The segments and their bytes, in the order of their making.

        Raises:
            LogError: the folder is a symbolic link.
        """
        while (folder := self.folder()) is not None:
            try:
                entries = list(os.scandir(self._log / folder))
                found = {f"{folder}/{each.name}": _size(each) for each in entries if _SEGMENT.fullmatch(each.name)}
            except FileNotFoundError:  # a removal came between
                continue
            return {name: size for name, size in sorted(found.items()) if size is not None}
        return {}

    def read(self, segment: str, start: int, end: int) -> bytes:
        """Bytes of a segment.

        Raises:
            FileNotFoundError: it was removed.
        """
        descriptor = os.open(self.path(segment), os.O_RDONLY | _NO_LINK)
        try:
            return os.pread(descriptor, end - start, start)
        finally:
            os.close(descriptor)

    def create(self) -> tuple[str, int]:
        """Make a segment, and give its name and a descriptor to append to; nothing of it is synced.

        Raises:
            LogError: the folder is a symbolic link.
        """
        folder = self.folder() or _FIRST
        self._make(self._log / folder)
        name = f"{folder}/{time.time_ns() // 1000:016x}-{os.getpid()}-{secrets.token_hex(8)}.seg"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | _NO_LINK
        return name, os.open(self.path(name), flags, _USER_FILE | self._of_group() & _GROUP_FILE)

    def seal(self) -> dict[str, int]:
        """Let nobody append to the segments that there are; returns their bytes. It takes the lock for one alone.

        Raises:
            LogError: the folder is a symbolic link.
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
        """Let nobody seal or remove segments. Many may append together.

        Raises:
            LogError: the folder is a symbolic link.
        """
        self._check()
        self._make(self.home.home)
        with locks.shared(self.home.log_lock):
            yield

    @contextmanager
    def alone(self, owner: str) -> Iterator[None]:
        """Let none append, or do what needs the same.

        Raises:
            LogError: the folder is a symbolic link.
        """
        self._check()
        self._make(self.home.home)
        with locks.alone(self.home.log_lock, owner, lambda _: None):
            yield

    def sync_names(self, folder: str) -> None:
        """Put on the disk the names of the segments in a folder, and of the folders that lead to it."""
        path = self._log / folder
        files.sync([path, *path.parents[: len(path.relative_to(self._project_home).parts)]])

    def remove(self, segments: list[str]) -> None:
        """Remove segments, and what older versions left. It takes the lock for one alone.

        Raises:
            LogError: the folder is a symbolic link.
        """
        for segment in segments:
            self.path(segment).unlink(missing_ok=True)
        last = self.folder()
        for left in sorted(self._log.iterdir()):
            if left.is_symlink() or left.is_file():
                left.unlink()
            elif left.name != last:
                shutil.rmtree(left)
        if last is not None:
            self.sync_names(last)

    def _check(self) -> None:
        if os.path.islink(self.home.home) or os.path.islink(self._log):  # noqa: PTH114 each read looks, and a path is slow
            raise LogError(
                f"{self._log} is, or lies in, a symbolic link: remove the link, or put a folder in its place"
            )

    def _make(self, folder: Path) -> None:
        """Make a folder and those around it, for whoever may read the home of the project."""
        if folder.is_dir():
            return
        self._make(folder.parent)
        folder.mkdir(_USER_DIRECTORY | self._of_group() & _GROUP_DIRECTORY, exist_ok=True)

    def _of_group(self) -> int:
        """What the home of the project lets its group do."""
        return self._project_home.stat().st_mode if self._project_home.is_dir() else 0

    @property
    def _project_home(self) -> Path:
        """The home in which that of the domain lies, as `Layout.domain` says."""
        return self.home.home.parent.parent


def _size(entry: "os.DirEntry[str]") -> int | None:
    """The bytes of a regular file; None of anything else."""
    found = entry.stat(follow_symlinks=False)
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _sealed(data: bytes) -> bytes:
    """Bytes and their CRC."""
    return data + _CRC.pack(zlib.crc32(data))


HEADER = _sealed(_PREAMBLE.pack(_MAGIC, _VERSION))


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame whose bytes are those that were written."""

    start: int
    end: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Flaw:
    """Bytes that are no frame."""

    start: int
    end: int
    is_torn: bool  # a write at the end that is not complete, or not yet; else damage


@dataclass(frozen=True, slots=True)
class Decoded:
    """What bytes of a segment hold, and from where to go on."""

    frames: tuple[Frame, ...]
    flaws: tuple[Flaw, ...]
    end: int


def encode(payload: bytes) -> bytes:
    """The frame of a payload, which is UTF-8."""
    return _sealed(_FIELDS.pack(_MARK, len(payload), zlib.crc32(payload))) + payload


def decode(data: bytes, start: int = 0) -> Decoded:
    """What the bytes of a segment from `start` on hold. Damage costs the frame in which it is, and no other.

    Raises:
        LogError: a later version of docindex wrote them.
    """
    frames: list[Frame] = []
    flaws: list[Flaw] = []
    place = 0 if start else _after_header(data, flaws)
    while place < len(data):
        head = _head(data, place)
        if head is None:
            behind = _next_head(data, place + 1)
            if behind is None:
                flaws.append(Flaw(start + place, start + len(data), _is_torn(data[place:])))
                break
            flaws.append(Flaw(start + place, start + behind, is_torn=False))
            place = behind
            continue
        length, crc = head
        end = place + _HEAD_BYTES + length
        if end > len(data):
            flaws.append(Flaw(start + place, start + len(data), is_torn=True))
            break
        payload = data[place + _HEAD_BYTES : end]
        if zlib.crc32(payload) == crc:
            frames.append(Frame(start + place, start + end, payload))
        else:
            flaws.append(Flaw(start + place, start + end, is_torn=False))
        place = end
    return Decoded(tuple(frames), tuple(flaws), start + place)


def _after_header(data: bytes, flaws: list[Flaw]) -> int:
    """Where the frames begin: at the start of a header that is not complete, else after it, whatever it holds."""
    if len(data) < len(HEADER):
        return 0
    if data.startswith(HEADER):
        return len(HEADER)
    preamble = data[: _PREAMBLE.size]
    magic, version = _PREAMBLE.unpack(preamble)
    if magic == _MAGIC and data.startswith(_sealed(preamble)):
        raise LogError(f"the log has format {version}, and this docindex reads {_VERSION}: install a newer one")
    flaws.append(Flaw(0, len(HEADER), is_torn=False))
    return len(HEADER)


def _head(data: bytes, place: int) -> tuple[int, int] | None:
    """The length and the CRC of the payload, as the head at a place says; None where none stands there."""
    head = data[place : place + _HEAD_BYTES]
    if len(head) < _HEAD_BYTES or _sealed(head[: _FIELDS.size]) != head:
        return None
    mark, length, crc = _FIELDS.unpack_from(head)
    return (length, crc) if mark == _MARK else None


def _next_head(data: bytes, place: int) -> int | None:
    """The next place at which a head stands."""
    while (place := data.find(_MARK, place)) >= 0:
        if _head(data, place) is not None:
            return place
        place += 1
    return None


def _is_torn(rest: bytes) -> bool:
    """Whether the last bytes are what remains of one write: part of a header or head, or zeros after a power cut."""
    is_part = len(rest) < _HEAD_BYTES and (rest.startswith(_MARK) or _MARK.startswith(rest))
    return is_part or HEADER.startswith(rest) or not rest.strip(b"\0")
