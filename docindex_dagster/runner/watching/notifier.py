"""The events of the file system: which paths changed in a set of folders, gathered until they pause."""

from collections.abc import Set as AbstractSet
from threading import Event
from typing import NamedTuple

# The loop of `watchfiles.watch` waits for the same time at each turn, and cannot change what it watches.
from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError
from watchfiles.main import Change

from docindex_dagster.core.errors import WatchError
from docindex_dagster.runner.watching.folders import Place, place_of

# An editor writes a file in several steps within milliseconds. A command that changes many files pauses less than this…
_PAUSE_MS = 50
# … and one that never pauses is interrupted: what it has done by then is worth a run.
_LONGEST_MS = 400
_POLL_MS = 1000
_ATTEMPTS = 5


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
        self._places: dict[str, Place] = {}  # those that are watched; empty when one of them may be another by now
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


def _places_of(folders: AbstractSet[str]) -> dict[str, Place]:
    """The folders that exist."""
    found = {folder: place_of(folder) for folder in folders}
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
