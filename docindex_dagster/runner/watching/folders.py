"""Which folders show changes of a source: those that discovery enters, and those in which git notes commits.

Each of them is watched by itself, not with all that lies below it: `node_modules`, `.git/objects` and the index have
more folders than everything else, change all the time, and mean nothing. `Watched` tracks the folders of a source,
whether it needs a run, and when to retry a failed one.
"""

import math
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from docindex_dagster.core import git_folders
from docindex_dagster.core.errors import DocindexError, SourceError
from docindex_dagster.core.settings import Settings
from docindex_dagster.pipeline.current import is_current
from docindex_dagster.sources import git, guard, noise
from docindex_dagster.sources.fingerprint import fingerprint
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import folders_around, join
from docindex_dagster.sources.rules import Pruned, path_rules

# HEAD and the index lie in git's folder itself; a commit on the branch that is checked out shows in its log.
_OF_GIT = ("", "logs", "refs/heads", "reftable")
_IGNORED = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")

Place = tuple[int, int]  # device and number: two folders that follow each other at one path mostly differ in it
_FIRST_RETRY_S, _LAST_RETRY_S = 60.0, 3600.0


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


@dataclass(slots=True)
class Watched:
    """A source, and what is known of it."""

    source: Source
    folders: frozenset[str] = frozenset()  # those that show its changes
    place: Place | None = None  # its own folder; None while it is missing
    seen: str | None = None  # its fingerprint before its last run; None: it may not be up to date
    failures: int = 0  # runs since the last one that succeeded
    retry_at: float = math.inf
    problem: str = ""  # why it cannot be looked at, as it was shown to the user

    def has_moved(self) -> bool:
        """Whether its own folder came, went or was replaced."""
        return place_of(self.source.path) != self.place

    def list_folders(self, home: Path) -> None:
        """Find out which folder is its own, and which ones show its changes; `home` is where the index lies."""
        self.place = place_of(self.source.path)
        self.folders = folders_of(self.source, home)

    def look(self, settings: Settings) -> str | None:
        """The fingerprint of what is there now, if it is to be indexed; None if there is nothing to do.

        Raises:
            SourceError: the source cannot be listed.
            OSError: the same.
        """
        is_retry = self.retry_at <= time.monotonic()
        found = fingerprint(self.source)
        if found == self.seen and not is_retry:
            return None
        if _is_current(settings, self.source, found):
            self.note_success(found)
            return None
        return found

    def note_success(self, seen: str | None) -> None:
        """Remember that this is indexed."""
        self.seen, self.failures, self.retry_at, self.problem = seen, 0, math.inf, ""

    def note_failure(self, seen: str | None) -> float:
        """Remember what could not be indexed; returns in how many seconds it is tried again, ever less often."""
        self.seen = seen
        wait = min(_FIRST_RETRY_S * (1 << self.failures), _LAST_RETRY_S)
        self.failures, self.retry_at = self.failures + 1, time.monotonic() + wait
        return wait

    def note_problem(self, problem: str) -> bool:
        """Remember why it cannot be looked at; whether this is new."""
        is_new = problem != self.problem
        self.seen, self.retry_at, self.problem = None, math.inf, problem
        return is_new


def _is_current(settings: Settings, source: Source, found: str) -> bool:
    """Whether another process, or a run before our time, has indexed this already."""
    try:
        return is_current(settings, source, found)
    except DocindexError:  # a damaged store, of which the run will say what to do
        return False
