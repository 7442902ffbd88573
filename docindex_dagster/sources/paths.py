"""File names: between bytes, which the kernel knows, and text, which the tables hold; and opening them safely.

A path in a table is POSIX, relative to its source, and text. Bytes that are not UTF-8 are written %XX. So that this can
be undone, a '%' that two hexadecimal digits follow is written %25; every other '%' stays as it is.
"""

import errno
import os
import re
import stat
import sys
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from docindex_dagster.core.errors import LinkError
from docindex_dagster.core.settings import CONFIG_NAME
from docindex_dagster.core.trust import trust_in

_BLOCK = 1 << 20
# To pass through a folder that may be entered, where the system knows the difference, but not listed.
_PASS = os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY)
_LONGEST_PATH = 4096  # bytes; no file with a longer path can be named to git, or by a user
_AMBIGUOUS = re.compile(r"%(?=[0-9A-Fa-f]{2})|[\udc80-\udcff]")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")


def path_to_name(path: bytes) -> str:
    """Write a path as a table holds it. `name_to_path` gives it back."""
    if path.isascii() and b"%" not in path:
        return path.decode("ascii")
    return _AMBIGUOUS.sub(_escape, path.decode("utf-8", "surrogateescape"))


def name_to_path(name: str) -> bytes:
    """Return the bytes of the path that a table calls `name`."""
    path = name.encode("utf-8")
    return _ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), path) if b"%" in path else path


def spellings(path: str) -> list[str]:
    """A path as it is given, and with accents composed and decomposed: macOS writes some, keyboards the others."""
    if path.isascii():
        return [path]
    return [*dict.fromkeys((path, unicodedata.normalize("NFC", path), unicodedata.normalize("NFD", path)))]


def _escape(match: re.Match[str]) -> str:
    return f"%{ord(match[0]) & 0xFF:02X}"  # surrogateescape maps byte 0xNN to U+DCNN


def join(root: bytes, path: bytes) -> bytes:
    """Return the absolute path of what lies at `path` below `root`."""
    return b"%b/%b" % (root.rstrip(b"/"), path)


def folders_around(paths: Iterable[bytes]) -> set[bytes]:
    """Return the folders that paths lie in and those around them: each ends in a slash, but for the root, empty."""
    found = {b""}
    for path in paths:
        folder = path[: path.rfind(b"/", 0, -1) + 1]
        while folder not in found:
            found.add(folder)
            folder = folder[: folder.rfind(b"/", 0, -1) + 1]
    return found


def read_beneath(root: bytes, path: bytes, limit: int | None = None) -> bytes:
    """Read a regular file below `root`, at most `limit` bytes of it.

    No component of `root` and `path` may be a symbolic link, so nothing elsewhere can be read, not even when a folder
    is replaced by a link meanwhile. Never blocks on a FIFO.

    Raises:
        OSError: The file is missing, unreadable, not a regular file, or reached through a link; or `path` is absolute
            or has empty, "." or ".." components.
    """
    *folders, name = path.split(b"/")
    if b"\0" in path or any(part in {b"", b".", b".."} for part in (*folders, name)):
        raise OSError(errno.EINVAL, "not a path inside the source")
    folder = _descend(b"/", (*filter(None, root.split(b"/")), *folders))
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        return _read(file, limit)
    finally:
        os.close(file)


def _descend(start: bytes | int, parts: Iterable[bytes]) -> int:
    """Open a folder by the parts of its path below `start`, none of which may be a symbolic link or ".."."""
    folder = os.open(start, _PASS) if isinstance(start, bytes) else os.dup(start)
    for part in parts:
        try:
            if part == b"..":
                raise OSError(errno.EINVAL, "not a path inside the source")
            inner = os.open(part, _PASS | os.O_NOFOLLOW, dir_fd=folder)
        finally:
            os.close(folder)
        folder = inner
    return folder


class Root:
    """A folder below which no symbolic link is followed, like Go's `os.Root`; use it as a context manager.

    It keeps the folder open in which it last looked, so look at the files of one folder after another.

    Raises:
        OSError: The folder is missing, or reached through a link.
    """

    def __init__(self, path: bytes) -> None:
        self._top = _descend(b"/", filter(None, path.split(b"/")))
        self._path, self._folder = b"", os.dup(self._top)
        self._longest = _LONGEST_PATH - len(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._folder)
        os.close(self._top)

    def lstat(self, path: bytes) -> os.stat_result:
        """Return what the file system says of a path.

        Raises:
            OSError: Nothing is there, or a folder on the way is a link.
        """
        folder, name = self._parent(path)
        return os.stat(name, dir_fd=folder, follow_symlinks=False)

    def may_read(self, path: bytes) -> bool:
        """Return whether this process may read the regular file at a path."""
        folder, name = self._parent(path)
        return os.access(name, os.R_OK, dir_fd=folder)

    def scan(self, folder: bytes) -> list[tuple[bytes, bool]]:
        """Return the names in a folder, each with whether it is a folder. The path ends in a slash; b"" is the root's.

        Raises:
            OSError: It cannot be listed, or it or a folder on the way is a link.
        """
        listed = os.open(b".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._open(folder))
        try:
            with os.scandir(listed) as found:
                return [(os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in found]
        finally:
            os.close(listed)

    def _parent(self, path: bytes) -> tuple[int, bytes]:
        end = path.rfind(b"/") + 1
        return self._open(path[:end]), path[end:]

    def _open(self, folder: bytes) -> int:
        if folder != self._path:
            if len(folder) > self._longest:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
            opened = _descend(self._top, filter(None, folder.split(b"/")))
            os.close(self._folder)
            self._path, self._folder = folder, opened
        return self._folder


def read_whole(root: bytes, path: bytes, most: int) -> bytes:
    """Read a file as `read_beneath` does, unless it has more than `most` bytes.

    Raises:
        OSError: As `read_beneath` does, or it grew past the limit since its size was read at its size.
    """
    data = read_beneath(root, path, most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, "grew past max_file_bytes while it was read")
    return data


def read_regular(path: str | os.PathLike[str], limit: int) -> bytes:
    """Read a regular file, also one that a link leads to, at most `limit` bytes of it. Never blocks on a FIFO.

    Raises:
        OSError: The file is missing, unreadable, or not a regular file.
    """
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return _read(file, limit)
    finally:
        os.close(file)


def _read(file: int, limit: int | None) -> bytes:
    if not stat.S_ISREG(os.fstat(file).st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    blocks: list[bytes] = []
    left = sys.maxsize if limit is None else limit
    while left > 0 and (block := os.read(file, min(left, _BLOCK))):
        blocks.append(block)
        left -= len(block)
    return b"".join(blocks)


def error_reason(error: OSError) -> str:
    """Why a file that cannot be read is skipped."""
    return f"unreadable: {error.strerror or error}"


def expanded(argument: str | Path) -> Path:
    """The path that a user means: `~` is a home folder, unless something here has that name, as after a glob."""
    if os.path.lexists(argument):
        return Path(argument)
    return Path(os.path.expanduser(argument))  # noqa: PTH111 it keeps what it cannot expand


def normal(path: Path | str) -> Path:
    """A path from the root, without dots; links stay as they are."""
    return Path(os.path.normpath(Path(path).absolute()))


def check_way(path: Path, *, is_output: bool = False) -> None:
    """Refuse a path that a link in a checkout leads elsewhere: the author of the checkout may have chosen where to.

    Args:
        path: What the user names. Without a checkout around it, the working directory counts as one.
        is_output: Whether something is to be written there, which no link of the checkout may lead to: git obeys files
            in `.git`.

    Raises:
        LinkError: The link leads out of the checkout, or the file is to be written.
    """
    named, real, here = normal(path), Path(os.path.realpath(path)), Path.cwd()
    around = named.parents[:-1]
    for top in [folder for folder in around if _is_top(folder)] or [folder for folder in around if folder == here]:
        allowed = top.resolve() / named.relative_to(top) if is_output else top.resolve()
        if not real.is_relative_to(allowed) and not trust_in(top).is_full:
            raise LinkError(f"a link in {top} leads {path} elsewhere: if you mean {real}, name it so")


def _is_top(folder: Path) -> bool:
    return any(os.path.lexists(folder / name) for name in (".git", CONFIG_NAME))
