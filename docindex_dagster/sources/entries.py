"""What walking a folder and asking git have in common: the entries that they find."""

import errno
import os
import stat
from typing import NamedTuple

from docindex_dagster.sources.paths import join, path_to_name

_SPECIAL = {
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
}
_READ_BY_ALL = 0o444


class Entry(NamedTuple):
    """One file, or one folder that was not entered, whose path then ends in a slash.

    A named tuple because there are as many as files, and a frozen data class takes four times as long to make.
    """

    path: bytes  # relative to the source
    size: int  # 0 for a folder
    mtime_ns: int  # 0 for a folder
    reason: str | None = None  # why it is skipped, as far as that is known without reading it
    blob: str | None = None  # git: the id of its content there; None where the work tree differs from the index
    is_uncommitted: bool = False
    is_in_head: bool = False  # git: the path is part of the last commit
    commit_path: bytes | None = None  # git: the path whose commits count for this one, if another: its submodule's


def stamp(path: bytes) -> tuple[int, int] | None:
    """The size in bytes of a file and when it changed, in nanoseconds since 1970; None where it cannot be read."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    # Neither size nor time stamp says whether this process may read the file.
    if found.st_mode & _READ_BY_ALL != _READ_BY_ALL and not os.access(path, os.R_OK):
        return None
    return found.st_size, found.st_mtime_ns


def folder_entry(path: bytes, reason: str) -> Entry:
    """An entry for a folder that is not entered."""
    return Entry(path, 0, 0, reason)


def state_reason(root: bytes, path: bytes, mode: int) -> str | None:
    """Why an entry is skipped because it is no regular file, or one that may not be read, if so.

    `mode` is that of the entry, not of a target.
    """
    if stat.S_ISREG(mode):
        if mode & _READ_BY_ALL == _READ_BY_ALL or os.access(join(root, path), os.R_OK):
            return None
        return error_reason(PermissionError(errno.EACCES, os.strerror(errno.EACCES)))
    if stat.S_ISLNK(mode):
        return f"symlink: {_target(root, path)}"
    return f"special-file: {_SPECIAL.get(stat.S_IFMT(mode), 'unknown')}"


def error_reason(error: OSError) -> str:
    """Why an entry that cannot be read is skipped."""
    return f"unreadable: {error.strerror or error}"


def _target(root: bytes, path: bytes) -> str:
    """Say where a link leads, without naming anything outside of the source."""
    link = join(os.path.realpath(root), path)
    inside = join(os.path.realpath(root), b"")
    try:
        target = os.path.realpath(link, strict=True)
    except OSError as error:
        return "cycle" if error.errno == errno.ELOOP else "broken"
    if link.startswith(join(target, b"")):
        return "cycle, leads to a folder that holds it"
    if not target.startswith(inside):
        return "leads outside of the source"
    return f"to {path_to_name(target.removeprefix(inside))}"
