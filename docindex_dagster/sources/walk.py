"""Entries of a folder, found by walking it or, in a work tree, listed by git."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from docindex_dagster.core import git_folders
from docindex_dagster.core.errors import SourceError
from docindex_dagster.sources import noise
from docindex_dagster.sources.paths import Root, error_reason, join, path_to_name
from docindex_dagster.sources.rules import PathRules, Pruned, Scope

_SPECIAL = {
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
}
_READABLE_BY_ALL = 0o444
_MAX_LINKS = 40  # followed for one path, as by Linux


class Entry(NamedTuple):
    """A file, or a folder that was not entered, whose path ends in a slash.

    A named tuple because there is one for each file, and a frozen dataclass takes four times as long to create.
    """

    path: bytes  # relative to the source
    size: int  # 0 for a folder
    mtime_ns: int  # 0 for a folder
    reason: str | None = None  # why it is skipped, as far as this is known without reading it
    blob: str | None = None  # git: the blob id; None if the work tree differs from the index
    is_uncommitted: bool = False
    is_in_head: bool = False  # git: whether the last commit contains the path
    commit_path: bytes | None = None  # git: the path whose commits count for this file, if another: its submodule's


def stamp(root: Root, path: bytes) -> tuple[int, int] | None:
    """Return the size in bytes and the mtime in nanoseconds since 1970 of a file; None if it cannot be read."""
    try:
        found = root.lstat(path)
    except OSError:
        return None
    # Size and timestamp do not tell whether this process may read the file.
    if found.st_mode & _READABLE_BY_ALL != _READABLE_BY_ALL and not root.may_read(path):
        return None
    return found.st_size, found.st_mtime_ns


def folder_entry(path: bytes, reason: str) -> Entry:
    """Return the entry of a folder that is not entered."""
    return Entry(path, 0, 0, reason)


def _state_reason(rules: PathRules, root: Root, path: bytes, mode: int) -> str | None:
    """Return why an entry is skipped if it is not a readable regular file.

    `mode` is that of the entry, not of a symlink's target.
    """
    if stat.S_ISREG(mode):
        if mode & _READABLE_BY_ALL == _READABLE_BY_ALL or root.may_read(path):
            return None
        return error_reason(PermissionError(errno.EACCES, os.strerror(errno.EACCES)))
    if stat.S_ISLNK(mode):
        return f"symlink: {_target(root, rules.root, path)}"
    return f"special-file: {_SPECIAL.get(stat.S_IFMT(mode), 'unknown')}"


def _target(root: Root, top: bytes, path: bytes) -> str:
    """Describe the target of a symlink. Nothing outside the source is looked up, not even whether it exists.

    Args:
        root: The root of the source.
        top: Its absolute path.
        path: The path of the symlink in it.
    """
    inside, target = join(top, b""), path
    for _ in range(_MAX_LINKS):
        try:
            followed = _follow(root, target)
        except OSError:
            return "broken"
        if followed is None:
            return f"to {path_to_name(target)}"
        real = os.path.normpath(os.path.join(top, followed))  # noqa: PTH118 bytes
        if join(top, path).startswith(join(real, b"")):
            return "cycle (points to a parent folder)"
        if not real.startswith(inside):
            return "points outside the source"
        target = real.removeprefix(inside)
    return "cycle"


def _follow(root: Root, path: bytes) -> bytes | None:
    """Replace the first symlink in a path by its target; return None if there is none.

    Raises:
        OSError: The path does not exist.
    """
    parts = path.split(b"/")
    for end in range(1, len(parts) + 1):
        link = b"/".join(parts[:end])
        if stat.S_ISLNK(root.lstat(link).st_mode):
            return os.path.join(*parts[: end - 1], root.readlink(link), *parts[end:])  # noqa: PTH118 bytes
    return None


def walk(rules: PathRules, top: bytes = b"") -> Iterator[Entry]:
    """Yield the files below the root in no particular order, and one entry for each folder that is not entered.

    With `top`, a folder whose path ends in a slash, yield only entries below it. Names are bytes, so that every name is
    preserved. Symlinks are reported but not followed, so cycles cannot occur.

    Raises:
        SourceError: The root cannot be listed.
    """
    folders = [top]
    with open_root(rules) as root:
        while folders:
            folder = folders.pop()
            scope = rules.scope(folder)
            if isinstance(scope, Pruned):
                yield folder_entry(scope.path, scope.reason)
                continue
            try:
                children = root.scan(folder)
            except OSError as error:
                if not folder:
                    raise SourceError(_unlistable_message(rules.root, error)) from error
                yield folder_entry(folder, error_reason(error))
                continue
            if folder and (b".git", False) in children and (reason := _work_tree_reason(rules, folder)):
                yield folder_entry(folder, reason)
                continue
            for name, is_folder in children:
                if noise.is_version_control(name):
                    continue
                if is_folder:
                    folders.append(folder + name + b"/")
                elif (entry := file_entry(rules, root, scope, folder + name)) is not None:
                    yield entry


def open_root(rules: PathRules) -> Root:
    """Open the folder of a source.

    Raises:
        SourceError: The folder cannot be opened, or has become a symlink.
    """
    try:
        return Root(rules.root)
    except OSError as error:
        raise SourceError(_unlistable_message(rules.root, error)) from error


def _work_tree_reason(rules: PathRules, folder: bytes) -> str | None:
    """Return why a folder is skipped as an additional work tree of a repository that the source already contains."""
    if rules.is_named(folder):
        return None
    source = Path(os.fsdecode(rules.root))
    other = git_folders.preceding_worktree(
        source / os.fsdecode(folder),
        source,
        lambda folder: isinstance(rules.scope(b"" if folder == Path() else os.fsencode(folder) + b"/"), Scope),
    )
    if other is None:
        return None
    return f"work-tree: another work tree of the repository at {path_to_name(os.fsencode(other))}, which is indexed"


def file_entry(rules: PathRules, root: Root, scope: Scope, path: bytes) -> Entry | None:
    """Return the entry of a file according to the file system and the rules; None if the file does not exist."""
    try:
        found = root.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return Entry(path, 0, 0, error_reason(error))
    if stat.S_ISDIR(found.st_mode):
        return None
    reason = rules.file_reason(scope, path[len(scope.path) :]) or _state_reason(rules, root, path, found.st_mode)
    return Entry(path, found.st_size, found.st_mtime_ns, reason)


def _unlistable_message(root: bytes, error: OSError) -> str:
    return f"{os.fsdecode(root)} cannot be listed ({error.strerror}); fix its path in docindex.toml or restore it"
