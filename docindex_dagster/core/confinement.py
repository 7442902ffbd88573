"""Confinement to a home: docindex follows no symlink below it.

A checkout, or an archive unpacked over one, may contain a home with symlinks such as `stores/tantivy -> ~/projects`.
LanceDB, Tantivy, SQLite and PyArrow open files by path. So docindex refuses a home that contains a symlink before it
reads, writes or deletes anything in it. `core/layout.py`, which builds all paths, triggers this check.

The path of the home itself may contain symlinks, and checkouts of followed repositories keep theirs. Only git and
discovery read these checkouts, and neither follows symlinks.

The check protects against the content of a home, not against a process of the same user that swaps files during it.
"""

import errno
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from docindex_dagster.core.errors import AccessError, LinkError

# A full scan takes 0.6 ms for 400 files and 11 ms for 10,000. Servers repeat it, since a `git pull` may add symlinks.
_MAX_AGE_S = 10.0
# Folders below a home that are not scanned: checkouts, and git's many folders of loose objects.
_UNSCANNED = re.compile(r"/checkouts/[^/]+|/repositories/[^/]+/objects/[0-9a-f]{2}")
# When git creates a repository, it briefly creates this symlink to probe for symlink support.
_GIT_PROBE, _PROBE_TARGET = re.compile(r"/repositories/.+/t[A-Za-z0-9]{6}", re.DOTALL), "testing"
# Left by a submodule that a pull added; it stays after a later pull removes the submodule from git's index.
_GIT = ".git"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

HIDDEN = re.compile(r"[0-9a-f]{32}")  # the name of a home in a project

_checked: dict[Path, float] = {}  # when this process last found each home free of symlinks


def check(home: Path, max_age_s: float = _MAX_AGE_S) -> None:
    """Refuse a home that contains a symlink, unless this process checked it less than `max_age_s` ago.

    Raises:
        LinkError: The home contains a symlink.
        AccessError: A folder can be entered but not listed.
    """
    if HIDDEN.fullmatch(home.name) and home.parent.is_symlink():  # a pull of the project put it there
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
    """Refuse a path below a home if it, or a folder between the two, is a symlink.

    Raises:
        LinkError: One of them is a symlink.
    """
    place = home
    for part in path.relative_to(home).parts:
        place /= part
        if place.is_symlink():
            raise _refusal(place, home)


def entries(home: Path, folder: Path) -> list[Path]:
    """List a folder below a home, sorted; empty if it does not exist.

    Each component of its path is opened without following symlinks, so nothing outside the home is ever listed for
    deletion.

    Raises:
        LinkError: A component is a symlink.
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
        if error.errno not in {errno.ELOOP, errno.ENOTDIR}:  # which of them a symlink causes depends on the system
            raise
        if _is_link(place.name, descriptor):
            raise _refusal(place, home) from error
        return []
    finally:
        os.close(descriptor)


def open_file(path: Path, flags: int, mode: int = 0o600) -> int:
    """Open a file like `os.open`, but not through a symlink.

    Raises:
        LinkError: The file is a symlink.
    """
    try:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            raise LinkError(f"{path} is a symbolic link, which docindex does not follow; remove it") from error
        raise


def _links(home: str) -> Iterator[str]:
    """Yield the symlinks below a home, and the `.git` entries of repositories that docindex did not create."""
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
    """Return the entries of a folder; empty if it no longer exists or cannot be entered."""
    try:
        with os.scandir(folder) as found:
            return list(found)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except PermissionError as error:
        if os.access(folder, os.X_OK):
            raise AccessError(f"cannot list {folder}: permission denied; ask its owner for read access") from error
        return []


def _is_git_probe(link: str, home: str) -> bool:
    try:
        return _GIT_PROBE.fullmatch(link, len(home)) is not None and str(Path(link).readlink()) == _PROBE_TARGET
    except FileNotFoundError:  # git has removed it
        return True


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _refusal(link: Path, home: Path) -> LinkError:
    if link.name == _GIT:
        return LinkError(f"{link} is part of another repository; delete {home} and run `docindex index`")
    return LinkError(
        f"{link} is a symbolic link, and docindex follows none inside its home; remove it, or delete {home} and run "
        "`docindex index`"
    )
