"""Folders to watch for changes of a source, and debounced file system events in them.

They are the folders that discovery enters, and those where git records commits. Each is watched individually, not
recursively: `node_modules`, `.git/objects` and the index have more folders than everything else, change all the time,
and are irrelevant. `Watched` tracks the folders of a source, whether it needs a run, and when to retry a failed one.
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

# `watchfiles.watch` has a fixed timeout, and cannot change the set of watched folders.
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

# The git folder itself contains HEAD and the index; its logs change with commits to the checked-out branch.
_GIT_SUBFOLDERS = ("", "logs", "refs/heads", "reftable")
_LIST_IGNORED = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")

_FolderId = tuple[int, int]  # device and inode, which usually differ when a folder is replaced
_FIRST_RETRY_S, _LAST_RETRY_S = 60.0, 3600.0
# Debounce interval: editors write a file in several steps within milliseconds, and bulk changes pause less than this.
_PAUSE_MS = 50
# Events without a pause are reported after this time, since the changes so far are worth a run.
_LONGEST_MS = 400
_POLL_MS = 1000
_ATTEMPTS = 5


def _folder_id(path: Path | str) -> _FolderId | None:
    """Return the identity of the folder at a path; None if there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 faster than pathlib for thousands of folders
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def folders_of(source: Source, home: Path) -> frozenset[str]:
    """Return the folders to watch, with symlinks resolved; empty if the source's folder is missing.

    Args:
        source: A library or a working tree.
        home: The folder of the index, which is ignored even inside the source.
    """
    try:
        entered = list(_entered(source, os.path.realpath(os.fsencode(home))))
    except (OSError, SourceError):  # missing, or has become a symlink, which discovery reports
        return frozenset()
    repositories = [folder for folder in entered if os.path.lexists(os.path.join(folder, b".git"))]  # noqa: PTH118 bytes
    if source.kind != "git":
        repositories = []
    elif not source.submodules:
        repositories = repositories[:1]  # the working tree itself is entered first
    git_subfolders = (folder for root in repositories for folder in _git_subfolders(Path(os.fsdecode(root))))
    # Names that are not UTF-8 cannot be watched.
    return frozenset([folder.decode() for folder in entered if _is_text(folder)]).union(git_subfolders)


def _entered(source: Source, home: bytes) -> Iterator[bytes]:
    """Yield the folders that discovery would enter, outermost first."""
    tracked = cache(lambda: _tracked(source))
    rules = path_rules(source, lambda folder: source.kind == "git" and folder in tracked())
    ignored = _ignored_by_git(rules.root) if source.kind == "git" else frozenset[bytes]()
    folders = [b""]
    with Root(rules.root) as root:
        while folders:
            folder = folders.pop()
            path = join(rules.root, folder).rstrip(b"/") or b"/"
            if folder in ignored or path == home or isinstance(rules.scope(folder), Pruned):
                continue
            try:
                children = root.scan(folder)
            except OSError:  # the folder is gone or not readable
                continue
            folders += [
                folder + name + b"/" for name, is_folder in children if is_folder and not noise.is_version_control(name)
            ]
            yield path


def _tracked(source: Source) -> frozenset[bytes]:
    """Return the folders in which git tracks files; each ends in a slash."""
    root, options = os.fsencode(source.path), ("--recurse-submodules",) if source.submodules else ()
    try:
        listed = git.attempt(root, *git.safe_options(root), "ls-files", "-z", *options)
    except SourceError:  # see `_ignored_by_git`
        return frozenset()
    return frozenset(folders_around((listed or b"").split(b"\0")))


def _ignored_by_git(root: bytes) -> frozenset[bytes]:
    """Return the folders that git ignores completely; each ends in a slash."""
    try:
        listed = git.attempt(root, *git.safe_options(root), *_LIST_IGNORED)
    except SourceError:  # not a working tree, at least not yet; the code that lists its files reports it
        return frozenset()
    return frozenset(path for path in (listed or b"").split(b"\0") if path.endswith(b"/"))


def _git_subfolders(root: Path) -> Iterator[str]:
    folder = real_path(git_folders.git_folder(root))
    if not folder.is_relative_to(root.resolve()):
        try:
            git.safe_options(os.fsencode(root))  # raises if `.git` belongs to another folder
        except SourceError:
            return iter(())
    return (str(path) for name in _GIT_SUBFOLDERS if (path := folder / name).is_dir())


def _is_text(path: bytes) -> bool:
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return True


@dataclass(slots=True)
class Watched:
    """A watched source and its state."""

    source: Source
    folders: frozenset[str] = frozenset()  # the folders to watch
    place: _FolderId | None = None  # its folder; None while it is missing
    seen: str | None = None  # its fingerprint before its last run; None: it may not be up to date
    failures: int = 0  # failed runs since the last successful one
    retry_at: float = math.inf
    problem: str = ""  # why it cannot be listed, as reported to the user

    def has_moved(self) -> bool:
        """Return whether its folder was created, deleted or replaced."""
        return _folder_id(self.source.path) != self.place

    def list_folders(self, home: Path) -> None:
        """Update its folder and the folders to watch; `home` is the folder of the index."""
        self.place = _folder_id(self.source.path)
        self.folders = folders_of(self.source, home)

    def look(self, settings: Settings) -> str | None:
        """Return the current fingerprint of the source if it needs a run, else None.

        Raises:
            SourceError: The source cannot be listed.
            OSError: The source cannot be read.
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
        """Record that this fingerprint is indexed."""
        self.seen, self.failures, self.retry_at, self.problem = seen, 0, math.inf, ""

    def note_failure(self, seen: str | None) -> float:
        """Record a failed run; return the wait in seconds until the next retry, which doubles each time."""
        self.seen = seen
        wait = min(_FIRST_RETRY_S * (1 << self.failures), _LAST_RETRY_S)
        self.failures, self.retry_at = self.failures + 1, time.monotonic() + wait
        return wait

    def note_problem(self, problem: str) -> bool:
        """Record why the source cannot be listed; return whether the problem is new."""
        is_new = problem != self.problem
        self.seen, self.retry_at, self.problem = None, math.inf, problem
        return is_new


def _is_current(settings: Settings, source: Source, found: str) -> bool:
    """Return whether another process or an earlier run has already indexed this fingerprint."""
    try:
        return is_current(settings, source, found)
    except DocindexError:  # a damaged store, which the run reports
        return False


class PathEvent(NamedTuple):
    """A change of a path."""

    path: str
    is_modification: bool  # neither created nor deleted


class Notifier:
    """Reports changes in a set of folders, not recursively.

    The system watches a folder, not its path. So when a folder is replaced, the new one must be watched explicitly.
    """

    def __init__(self, *, poll: bool) -> None:
        """Create a notifier. With `poll`, it checks all files once a second, as network file systems require."""
        self._poll = poll
        self._folders: AbstractSet[str] = frozenset()
        self._ids: dict[str, _FolderId] = {}  # of watched folders; empty once one may have been replaced
        self._open: RustNotify | None = None
        self._missed: set[tuple[int, str]] = set()

    def watch(self, folders: AbstractSet[str]) -> bool:
        """Replace the set of watched folders; earlier events are still reported.

        Returns:
            Whether anything changed. If so, earlier events in new or replaced folders are not reported.

        Raises:
            WatchError: The system cannot watch that many folders.
        """
        if self._open is not None and folders == self._folders and _folder_ids(folders) == self._ids:
            return False
        before, self._open = self._open, self._opened(folders)
        self._folders = folders
        if before is not None:
            found = _read_events(before, 1, 1, 1)
            self._missed |= found or set()
            before.close()
        return True

    def wait(self, timeout_s: float, unless: Event) -> list[PathEvent] | None:
        """Return the next events: an empty list after the timeout or once `unless` is set, None if events were lost.

        Raises:
            KeyboardInterrupt: A signal arrived.
            WatchError: The system cannot watch that many folders.
        """
        if self._open is None:
            raise AssertionError("nothing is watched")
        timeout_ms = 1 if self._missed else max(1, round(timeout_s * 1000))
        found = _read_events(self._open, _LONGEST_MS, _PAUSE_MS, timeout_ms, _Stop(unless))
        if found is None:
            self._open.close()
            self._open = self._opened(self._folders)
            return None
        found |= self._missed
        self._missed = set()
        events = [PathEvent(path, change == Change.modified) for change, path in sorted(found)]
        if any(not event.is_modification and event.path in self._folders for event in events):
            self._ids = {}  # inode numbers are reused, so a new folder may have that of the old one
        return events

    def close(self) -> None:
        """Stop watching."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _opened(self, folders: AbstractSet[str]) -> RustNotify:
        for _ in range(_ATTEMPTS):
            self._ids = _folder_ids(folders)
            try:
                return RustNotify(sorted(self._ids), False, self._poll, _POLL_MS, False, True)  # noqa: FBT003 positional only
            except FileNotFoundError:  # a folder was deleted in the meantime
                continue
            except (OSError, WatchfilesRustInternalError) as error:
                raise WatchError(_explain(error, len(self._ids))) from error
        raise WatchError("cannot watch folders that are created and deleted too quickly; try again, or use --poll")


def _folder_ids(folders: AbstractSet[str]) -> dict[str, _FolderId]:
    """Return the identities of the folders that exist."""
    found = {folder: _folder_id(folder) for folder in folders}
    return {folder: identity for folder, identity in found.items() if identity is not None}


class _StoppedError(Exception):
    """A wait was interrupted."""


class _Stop:
    """Stop event for watchfiles that raises instead of returning True, after which watchfiles would drop events."""

    def __init__(self, event: Event) -> None:
        self._event = event

    def is_set(self) -> bool:
        """Raise `_StoppedError` if the event is set; otherwise return False."""
        if self._event.is_set():
            raise _StoppedError
        return False


def _read_events(
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
            f"cannot watch {folders:,} folders: system limit reached; raise fs.inotify.max_user_watches and "
            "fs.inotify.max_user_instances with `sysctl`, name fewer sources, or use --poll"
        )
    return f"cannot watch for changes ({text}); use --poll to check the files instead"
