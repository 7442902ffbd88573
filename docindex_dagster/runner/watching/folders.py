"""Which folders show changes of a source, and the events of the file system in them, gathered until they pause.

They are those that discovery enters, and those in which git notes commits. Each of them is watched by itself, not with
all that lies below it: `node_modules`, `.git/objects` and the index have more folders than everything else, change all
the time, and mean nothing. `Watched` tracks the folders of a source, whether it needs a run, and when to retry a failed
one.
"""

import math
import os
import stat
import time
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Event
from typing import NamedTuple

# The loop of `watchfiles.watch` waits for the same time at each turn, and cannot change what it watches.
from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError
from watchfiles.main import Change

from docindex_dagster.core import git_folders
from docindex_dagster.core.errors import DocindexError, SourceError, WatchError
from docindex_dagster.core.files import real_path
from docindex_dagster.core.settings import Settings
from docindex_dagster.pipeline.up_to_date import is_current
from docindex_dagster.sources import git, noise
from docindex_dagster.sources.changes import fingerprint
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import Root, folders_around, join
from docindex_dagster.sources.rules import Pruned, path_rules

# HEAD and the index lie in git's folder itself; a commit on the branch that is checked out shows in its log.
_OF_GIT = ("", "logs", "refs/heads", "reftable")
_IGNORED = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")

_Place = tuple[int, int]  # device and number: two folders that follow each other at one path mostly differ in it
_FIRST_RETRY_S, _LAST_RETRY_S = 60.0, 3600.0
# An editor writes a file in several steps within milliseconds. A command that changes many files pauses less than this…
_PAUSE_MS = 50
# … and one that never pauses is interrupted: what it has done by then is worth a run.
_LONGEST_MS = 400
_POLL_MS = 1000
_ATTEMPTS = 5


def _place_of(path: Path | str) -> _Place | None:
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
    try:
        entered = list(_entered(source, os.path.realpath(os.fsencode(home))))
    except (OSError, SourceError):  # it is gone, or a link by now: who looks at it says so
        return frozenset()
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
    ignored = _ignored_by_git(rules.root) if source.kind == "git" else frozenset[bytes]()
    folders = [b""]
    with Root(rules.root) as root:
        while folders:
            folder = folders.pop()
            place = join(rules.root, folder).rstrip(b"/") or b"/"
            if folder in ignored or place == home or isinstance(rules.scope(folder), Pruned):
                continue
            try:
                children = root.scan(folder)
            except OSError:  # it is gone, or may not be read
                continue
            folders += [
                folder + name + b"/" for name, is_folder in children if is_folder and not noise.is_version_control(name)
            ]
            yield place


def _tracked(source: Source) -> frozenset[bytes]:
    """The folders in which git tracks files; each ends in a slash."""
    root, more = os.fsencode(source.path), ("--recurse-submodules",) if source.submodules else ()
    try:
        listed = git.attempt(root, *git.safe_options(root), "ls-files", "-z", *more)
    except SourceError:  # as below
        return frozenset()
    return frozenset(folders_around((listed or b"").split(b"\0")))


def _ignored_by_git(root: bytes) -> frozenset[bytes]:
    """The folders that git ignores whole; each ends in a slash."""
    try:
        listed = git.attempt(root, *git.safe_options(root), *_IGNORED)
    except SourceError:  # it is no work tree, or not yet: who looks at it says so
        return frozenset()
    return frozenset(path for path in (listed or b"").split(b"\0") if path.endswith(b"/"))


def _of_git(root: Path) -> Iterator[str]:
    folder = real_path(git_folders.git_folder(root))
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
    place: _Place | None = None  # its own folder; None while it is missing
    seen: str | None = None  # its fingerprint before its last run; None: it may not be up to date
    failures: int = 0  # runs since the last one that succeeded
    retry_at: float = math.inf
    problem: str = ""  # why it cannot be looked at, as it was shown to the user

    def has_moved(self) -> bool:
        """Whether its own folder came, went or was replaced."""
        return _place_of(self.source.path) != self.place

    def list_folders(self, home: Path) -> None:
        """Find out which folder is its own, and which ones show its changes; `home` is where the index lies."""
        self.place = _place_of(self.source.path)
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


class PathEvent(NamedTuple):
    """Something happened to a path."""

    path: str
    is_modification: bool  # it was there before and still is


class Notifier:
    """Tells what happens in some folders, each without those below it.

    The system watches a folder, not its path: when it is replaced, the new folder has to be watched as well.
    """

    def __init__(self, *, poll: bool) -> None:
        """With `poll`, look at all files once a second, as network file systems need."""
        self._poll = poll
        self._folders: AbstractSet[str] = frozenset()
        self._places: dict[str, _Place] = {}  # those that are watched; empty when one of them may be another by now
        self._open: RustNotify | None = None
        self._missed: set[tuple[int, str]] = set()

    def watch(self, folders: AbstractSet[str]) -> bool:
        """Watch these folders instead of those before; what happened until then is still reported.

        Returns:
            Whether this changed anything. If so, what happened in new or replaced folders before is not reported.

        Raises:
            WatchError: the system watches no more folders.
        """
        if self._open is not None and folders == self._folders and _places_of(folders) == self._places:
            return False
        before, self._open = self._open, self._opened(folders)
        self._folders = folders
        if before is not None:
            found = _taken(before, 1, 1, 1)
            self._missed |= found or set()
            before.close()
        return True

    def wait(self, timeout_s: float, unless: Event) -> list[PathEvent] | None:
        """Return what happened; nothing after the time-out, or once `unless` is set, and None where it is not known.

        Raises:
            KeyboardInterrupt: a signal came.
            WatchError: the system watches no more folders.
        """
        if self._open is None:
            raise AssertionError("nothing is watched")
        timeout_ms = 1 if self._missed else max(1, round(timeout_s * 1000))
        found = _taken(self._open, _LONGEST_MS, _PAUSE_MS, timeout_ms, _Stop(unless))
        if found is None:
            self._open.close()
            self._open = self._opened(self._folders)
            return None
        found |= self._missed
        self._missed = set()
        events = [PathEvent(path, change == Change.modified) for change, path in sorted(found)]
        if any(not event.is_modification and event.path in self._folders for event in events):
            self._places = {}  # numbers are used again: a folder that is made anew may have the one of the old
        return events

    def close(self) -> None:
        """Watch nothing any more."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _opened(self, folders: AbstractSet[str]) -> RustNotify:
        for _ in range(_ATTEMPTS):
            self._places = _places_of(folders)
            try:
                return RustNotify(sorted(self._places), False, self._poll, _POLL_MS, False, True)  # noqa: FBT003 it has no names
            except FileNotFoundError:  # a folder went away meanwhile
                continue
            except (OSError, WatchfilesRustInternalError) as error:
                raise WatchError(_explain(error, len(self._places))) from error
        raise WatchError("folders come and go too quickly to be watched; try again, or with --poll")


def _places_of(folders: AbstractSet[str]) -> dict[str, _Place]:
    """The folders that exist."""
    found = {folder: _place_of(folder) for folder in folders}
    return {folder: place for folder, place in found.items() if place is not None}


class _StoppedError(Exception):
    """What is waited for need not be waited for any more."""


class _Stop:
    """Ends a wait of the library's. Were it answered "yes", it would forget what has happened until then."""

    def __init__(self, event: Event) -> None:
        self._event = event

    def is_set(self) -> bool:
        """Whether the event is set; it never says so."""
        if self._event.is_set():
            raise _StoppedError
        return False


def _taken(
    notifier: RustNotify, longest_ms: int, pause_ms: int, timeout_ms: int, stop: _Stop | None = None
) -> set[tuple[int, str]] | None:
    try:
        found = notifier.watch(longest_ms, pause_ms, timeout_ms, stop)
    except _StoppedError:
        return set()
    except WatchfilesRustInternalError:  # such as a name that is not UTF-8
        return None
    if found == "signal":
        raise KeyboardInterrupt
    return found if isinstance(found, set) else set()


def _explain(error: Exception, folders: int) -> str:
    text = str(error)
    if "limit" in text or "too many open files" in text.lower():
        return (
            f"the system does not let us watch as many folders as needed ({folders:,}): raise "
            "fs.inotify.max_user_watches and max_user_instances with `sysctl`, name fewer sources, or use --poll"
        )
    return f"cannot watch for changes ({text}); --poll looks at the files instead"
