"""Conversion of file names between kernel bytes and table text, and safe access to files.

Paths in tables are text: POSIX paths relative to their source. Bytes that are not UTF-8 are written as %XX. To make
this reversible, a '%' followed by two hexadecimal digits is written as %25; every other '%' stays as it is.
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
# Opens a folder to traverse it without listing it, on systems that distinguish the two.
_TRAVERSE = os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY)
_MAX_PATH_BYTES = 4096  # neither git nor a user can name a longer path
_AMBIGUOUS = re.compile(r"%(?=[0-9A-Fa-f]{2})|[\udc80-\udcff]")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")


def path_to_name(path: bytes) -> str:
    """Return a path as tables store it. `name_to_path` is the inverse."""
    if path.isascii() and b"%" not in path:
        return path.decode("ascii")
    return _AMBIGUOUS.sub(_escape, path.decode("utf-8", "surrogateescape"))


def name_to_path(name: str) -> bytes:
    """Return the bytes of the path that a table calls `name`."""
    path = name.encode("utf-8")
    return _ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), path) if b"%" in path else path


def spellings(path: str) -> list[str]:
    """Return a path as written, and with accents composed and decomposed: macOS and keyboards differ in this."""
    if path.isascii():
        return [path]
    return [*dict.fromkeys((path, unicodedata.normalize("NFC", path), unicodedata.normalize("NFD", path)))]


def _escape(match: re.Match[str]) -> str:
    return f"%{ord(match[0]) & 0xFF:02X}"  # surrogateescape maps byte 0xNN to U+DCNN


def join(root: bytes, path: bytes) -> bytes:
    """Return the absolute path of `path` below `root`."""
    return b"%b/%b" % (root.rstrip(b"/"), path)


def folders_around(paths: Iterable[bytes]) -> set[bytes]:
    """Return all parent folders of paths, each with a trailing slash; the root is the empty path."""
    found = {b""}
    for path in paths:
        folder = path[: path.rfind(b"/", 0, -1) + 1]
        while folder not in found:
            found.add(folder)
            folder = folder[: folder.rfind(b"/", 0, -1) + 1]
    return found


def read_beneath(root: bytes, path: bytes, limit: int | None = None) -> bytes:
    """Read at most `limit` bytes of a regular file below `root`.

    No component of `root` and `path` may be a symlink. Nothing outside `root` can be read, even if a folder is replaced
    by a symlink meanwhile. Never blocks on a FIFO.

    Raises:
        OSError: The file is missing, unreadable, not a regular file, or reached through a symlink; or `path` is
                absolute or has empty, "." or ".." components.
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
    """Open the folder with this path below `start`. No part may be a symlink or ".."."""
    folder = os.open(start, _TRAVERSE) if isinstance(start, bytes) else os.dup(start)
    for part in parts:
        try:
            if part == b"..":
                raise OSError(errno.EINVAL, "not a path inside the source")
            inner = os.open(part, _TRAVERSE | os.O_NOFOLLOW, dir_fd=folder)
        finally:
            os.close(folder)
        folder = inner
    return folder


class Root:
    """Folder below which no symlink is followed, like Go's `os.Root`. Use it as a context manager.

    It keeps the last folder open, so access the files of one folder after another.

    Raises:
        OSError: The folder is missing, or its path contains a symlink.
    """

    def __init__(self, path: bytes) -> None:
        self._top = _descend(b"/", filter(None, path.split(b"/")))
        self._path, self._folder = b"", os.dup(self._top)
        self._max_bytes = _MAX_PATH_BYTES - len(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._folder)
        os.close(self._top)

    def lstat(self, path: bytes) -> os.stat_result:
        """Return the status of a path.

        Raises:
            OSError: The path does not exist, or a folder in it is a symlink.
        """
        folder, name = self._parent(path)
        return os.stat(name, dir_fd=folder, follow_symlinks=False)

    def readlink(self, path: bytes) -> bytes:
        """Return the target of the symlink at a path, as written in it.

        Raises:
            OSError: The path is not a symlink, or goes through one.
        """
        folder, name = self._parent(path)
        return os.readlink(name, dir_fd=folder)

    def may_read(self, path: bytes) -> bool:
        """Return whether this process may read the regular file at a path."""
        folder, name = self._parent(path)
        return os.access(name, os.R_OK, dir_fd=folder)

    def scan(self, folder: bytes) -> list[tuple[bytes, bool]]:
        """Return the names in a folder, each with whether it is a folder. The path ends in a slash; b"" is the root's.

        Raises:
            OSError: The folder cannot be listed, or its path contains a symlink.
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
            if len(folder) > self._max_bytes:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
            opened = _descend(self._top, filter(None, folder.split(b"/")))
            os.close(self._folder)
            self._path, self._folder = folder, opened
        return self._folder


def read_complete(root: bytes, path: bytes, most: int) -> bytes:
    """Read a file as `read_beneath` does, but fail if it has more than `most` bytes.

    Raises:
        OSError: As `read_beneath` does, or the file has grown past the limit since its size was checked.
    """
    data = read_beneath(root, path, most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, "grew past max_file_bytes while it was read")
    return data


def read_regular(path: str | os.PathLike[str], limit: int) -> bytes:
    """Read at most `limit` bytes of a regular file, following symlinks. Never blocks on a FIFO.

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
    remaining = sys.maxsize if limit is None else limit
    while remaining > 0 and (block := os.read(file, min(remaining, _BLOCK))):
        blocks.append(block)
        remaining -= len(block)
    return b"".join(blocks)


def error_reason(error: OSError) -> str:
    """Return the skip reason for a file that cannot be read."""
    return f"unreadable: {error.strerror or error}"


def expand_user(argument: str | Path) -> Path:
    """Return the path that a user means: `~` is a home folder unless a file here has that name, as after a glob."""
    if os.path.lexists(argument):
        return Path(argument)
    return Path(os.path.expanduser(argument))  # noqa: PTH111 leaves paths alone that it cannot expand


def normal(path: Path | str) -> Path:
    """Return the absolute path without `.` and `..` components; symlinks are not resolved."""
    return Path(os.path.normpath(Path(path).absolute()))


def check_redirection(path: Path, *, is_output: bool = False) -> None:
    """Refuse a path that a symlink in a checkout redirects: the author of the checkout may have chosen the target.

    Args:
        path: The path that the user passed. Without a checkout around it, the working directory counts as one.
        is_output: Whether the path will be written. No symlink of the checkout may redirect it: git obeys files in
            `.git`.

    Raises:
        LinkError: The symlink points out of the checkout, or the path is an output.
    """
    named, real, here = normal(path), Path(os.path.realpath(path)), Path.cwd()
    around = named.parents[:-1]
    for top in [folder for folder in around if _is_checkout(folder)] or [folder for folder in around if folder == here]:
        allowed = top.resolve() / named.relative_to(top) if is_output else top.resolve()
        if not real.is_relative_to(allowed) and not trust_in(top).is_full:
            raise LinkError(f"{path}: a symlink in {top} redirects it to {real}; pass that path if you mean it")


def is_in_checkout(path: Path) -> bool:
    """Return whether a path is in a checkout, whose author may have written the file there."""
    return any(map(_is_checkout, normal(path).parents))


def _is_checkout(folder: Path) -> bool:
    return any(os.path.lexists(folder / name) for name in (".git", CONFIG_NAME))
