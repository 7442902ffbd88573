"""Which folders show changes of a source: those that discovery enters, and those in which git notes commits.

Each of them is watched by itself, not with all that lies below it: `node_modules`, `.git/objects` and the index have
more folders than everything else, change all the time, and mean nothing.
"""

import os
import stat
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from docindex_dagster.core import git_folders
from docindex_dagster.core.errors import SourceError
from docindex_dagster.sources import git, guard, noise
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import folders_around, join
from docindex_dagster.sources.rules import Pruned, path_rules

# HEAD and the index lie in git's folder itself; a commit on the branch that is checked out shows in its log.
_OF_GIT = ("", "logs", "refs/heads", "reftable")
_IGNORED = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")

Place = tuple[int, int]  # device and number: two folders that follow each other at one path mostly differ in it


def place_of(path: Path | str) -> Place | None:
    """Which folder is at a path now; None if there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 there may be thousands
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def folders_of(source: Source, home: Path) -> frozenset[str]:
    """Return the folders to watch, by their paths without links; none where the source's own is missing.

    Args:
        source: a library or a work tree.
        home: where the index lies, which may be in the source, and whose changes are no source's.
    """
    entered = list(_entered(source, os.path.realpath(os.fsencode(home))))
    repositories = [folder for folder in entered if os.path.lexists(os.path.join(folder, b".git"))]  # noqa: PTH118 bytes
    if source.kind != "git":
        repositories = []
    elif not source.submodules:
        repositories = repositories[:1]  # the work tree itself is entered first
    of_git = (folder for root in repositories for folder in _of_git(Path(os.fsdecode(root))))
    # Names that are not UTF-8 cannot be watched.
    return frozenset([folder.decode() for folder in entered if _is_text(folder)]).union(of_git)


def _entered(source: Source, home: bytes) -> Iterator[bytes]:
    """The folders that discovery would enter, the outermost first."""
    tracked = cache(lambda: _tracked(source))
    rules = path_rules(source, lambda folder: source.kind == "git" and folder in tracked())
    real = os.path.realpath(rules.root)
    ignored = _ignored_by_git(rules.root) if source.kind == "git" else frozenset[bytes]()
    folders = [b""]
    while folders:
        folder = folders.pop()
        place = join(real, folder).rstrip(b"/") or b"/"
        if folder in ignored or place == home or isinstance(rules.scope(folder), Pruned):
            continue
        try:
            with os.scandir(place) as children:
                inner = [child.name for child in children if child.is_dir(follow_symlinks=False)]
        except OSError:  # it is gone, or may not be read
            continue
        folders += [folder + name + b"/" for name in inner if not noise.is_version_control(name)]
        yield place


def _tracked(source: Source) -> frozenset[bytes]:
    """The folders in which git tracks files; each ends in a slash."""
    root, more = os.fsencode(source.path), ("--recurse-submodules",) if source.submodules else ()
    try:
        listed = git.attempt(root, *guard.options(root), "ls-files", "-z", *more)
    except SourceError:  # as below
        return frozenset()
    return frozenset(folders_around((listed or b"").split(b"\0")))


def _ignored_by_git(root: bytes) -> frozenset[bytes]:
    """The folders that git ignores whole; each ends in a slash."""
    try:
        listed = git.attempt(root, *guard.options(root), *_IGNORED)
    except SourceError:  # it is no work tree, or not yet: who looks at it says so
        return frozenset()
    return frozenset(path for path in (listed or b"").split(b"\0") if path.endswith(b"/"))


def _of_git(root: Path) -> Iterator[str]:
    folder = git_folders.git_folder(root).resolve()
    return (str(place) for name in _OF_GIT if (place := folder / name).is_dir())


def _is_text(path: bytes) -> bool:
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return True
