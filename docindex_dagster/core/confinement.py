"""Confinement to a home: docindex follows no symbolic link below it.

A checkout, or an archive that is unpacked over one, may bring a home with links such as `stores/tantivy -> ~/projects`.
LanceDB, Tantivy, SQLite and PyArrow open files by path. So a home that contains a link is refused before anything in it
is read, written or deleted; `core/layout.py`, which makes all paths, asks for that.

The path of the home itself may contain links, and work trees of followed repositories keep theirs: only git and
discovery, which do not follow links either, look into those.

This protects from what a home contains, not from a process of the same user that swaps files during the check.
"""

import errno
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from docindex_dagster.core.errors import AccessError, LinkError

# A full scan takes 0.6 ms for 400 files and 11 ms for 10,000. Servers repeat it, since a `git pull` may bring links.
_MAX_AGE_S = 10.0
# Folders below a home that are not scanned: work trees, and the many folders of git's loose objects.
_UNSCANNED = re.compile(r"/checkouts/[^/]+|/repositories/[^/]+/objects/[0-9a-f]{2}")
# While git creates a repository, it makes such a link for a moment to probe for support of symbolic links.
_GIT_PROBE, _PROBE_TARGET = re.compile(r"/repositories/.+/t[A-Za-z0-9]{6}", re.DOTALL), "testing"
# Of a submodule that a pull put there; it stays when a later pull takes it out of git's index.
_GIT = ".git"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

HIDDEN = re.compile(r"[0-9a-f]{32}")  # the name of a home in a project

_checked: dict[Path, float] = {}  # when this process last found no link in a home


def check(home: Path, max_age_s: float = _MAX_AGE_S) -> None:
    """Refuse a home that contains a symbolic link, unless this process checked it less than `max_age_s` ago.

    Raises:
        LinkError: it does.
        AccessError: a folder can be entered but not listed.
    """
    if HIDDEN.fullmatch(home.name) and home.parent.is_symlink():  # a pull of the project has put it there
        raise _refusal(home.parent, home)
    now = time.monotonic()
    if now - _checked.get(home, -max_age_s) < max_age_s:
        return
    link = next(_links(str(home)), None)
    if link is not None:
        raise _refusal(Path(link), home)
    if home.is_dir():
        _checked[home] = now


def check_path(home: Path, path: Path) -> None:
    """Refuse a path below a home if it, or a folder between the two, is a symbolic link.

    Raises:
        LinkError: it is.
    """
    place = home
    for part in path.relative_to(home).parts:
        place /= part
        if place.is_symlink():
            raise _refusal(place, home)


def entries(home: Path, folder: Path) -> list[Path]:
    """List a folder below a home, sorted; empty if it does not exist.

    Each component of its path is opened without following links, so nothing outside of the home is ever listed for
    deletion.

    Raises:
        LinkError: a component is a symbolic link.
    """
    try:
        descriptor = os.open(home, _FOLDER)
    except (FileNotFoundError, NotADirectoryError):
        return []
    place = home
    try:
        for part in folder.relative_to(home).parts:
            place /= part
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        with os.scandir(descriptor) as found:
            return sorted(folder / entry.name for entry in found)
    except FileNotFoundError:
        return []
    except OSError as error:
        if error.errno not in {errno.ELOOP, errno.ENOTDIR}:  # systems differ in which one a link gives
            raise
        if _is_link(place.name, descriptor):
            raise _refusal(place, home) from error
        return []
    finally:
        os.close(descriptor)


def open_file(path: Path, flags: int, mode: int = 0o600) -> int:
    """Open a file like `os.open`, but not through a symbolic link.

    Raises:
        LinkError: the file is one.
    """
    try:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            raise LinkError(f"{path} is a symbolic link, which docindex does not follow: remove it") from error
        raise


def _links(home: str) -> Iterator[str]:
    """The symbolic links below a home, and work trees of git where docindex makes none."""
    folders = [home]
    while folders:
        for entry in _scan(folders.pop()):
            if entry.name == _GIT:
                yield entry.path
            elif entry.is_symlink():
                if not _is_git_probe(entry.path, home):
                    yield entry.path
            elif entry.is_dir(follow_symlinks=False) and not _UNSCANNED.fullmatch(entry.path, len(home)):
                folders.append(entry.path)


def _scan(folder: str) -> list["os.DirEntry[str]"]:
    """The entries of a folder; none if it was removed meanwhile, or nobody can enter it."""
    try:
        with os.scandir(folder) as found:
            return list(found)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except PermissionError as error:
        if os.access(folder, os.X_OK):
            raise AccessError(f"cannot list {folder}: permission denied; ask its owner") from error
        return []


def _is_git_probe(link: str, home: str) -> bool:
    try:
        return _GIT_PROBE.fullmatch(link, len(home)) is not None and str(Path(link).readlink()) == _PROBE_TARGET
    except FileNotFoundError:  # it is gone
        return True


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _refusal(link: Path, home: Path) -> LinkError:
    if link.name == _GIT:
        return LinkError(f"{link} is part of another repository: delete {home} and run `docindex index`")
    return LinkError(
        f"{link} is a symbolic link. docindex follows no links inside its home: remove it, or delete {home} and run "
        "`docindex index`"
    )
