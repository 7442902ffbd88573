"""Locks between processes. They use `flock`, so the kernel releases the locks of a process that dies.

A run records its progress in the locks that it holds, so a dead process never appears to be running.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from docindex_dagster.core import events
from docindex_dagster.core.confinement import open_file
from docindex_dagster.core.platforms import refusal

try:
    import fcntl
except ModuleNotFoundError as error:
    raise ImportError(refusal() or "docindex requires POSIX file locks (fcntl)") from error

# Waiting polls, because a signal that arrives just before a blocking `flock` would be handled only once it returns.
_POLL_S = 0.05
_SHORT_POLL_S = 0.001  # for locks that are held only during a write
_MAX_BYTES = 4000
_PAUSE_S = 0.5  # between two notes
_LINES = 4  # of a lock file: owner, process ID, start time, current activity

Note = Callable[[str], None]
"""Callback that writes the owner's current activity to the lock file, as one line."""


class Held(Protocol):
    """A lock that this process holds. Call it with a line of text to show others its owner's current activity."""

    def __call__(self, text: str, /) -> None:
        """Record the owner's current activity."""

    def check(self) -> None:
        """Check that the lock is still held. Call this before making anything visible to others.

        Raises:
            LostLockError: The lock was lost.
        """


class Locks(Protocol):
    """Named locks between machines, implemented in `objects/postgres_locks.py`."""

    def exclusive(self, name: str, owner: str, on_wait: Callable[[str], None]) -> AbstractContextManager[Held]:
        """Hold a lock. If another owner holds it, call `on_wait` once with that `owner` text, then wait.

        Raises:
            LockError: The lock server is unreachable.
        """
        ...

    def is_held(self, name: str) -> bool:
        """Return whether a lock has an owner that sent a heartbeat recently.

        Raises:
            LockError: The lock server is unreachable.
        """
        ...

    def end_silent(self) -> None:
        """Release the locks of all owners that have not sent a heartbeat recently.

        Raises:
            LockError: The lock server is unreachable.
        """
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """The current step of a run; `done` and `total` are None if it has no count."""

    stage: str
    done: int | None = None
    total: int | None = None
    unit: str = ""

    def __str__(self) -> str:
        """Return the step as text."""
        stage = self.stage.replace("_", " ")
        return stage if not self.total else f"{stage}, {self.done:,} of {self.total:,} {self.unit}"


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds a lock, as described in the lock file."""

    owner: str
    pid: int
    since: str  # UTC in ISO 8601
    step: Step | None = None


@contextmanager
def exclusive(path: Path, owner: str, on_wait: Callable[[str], None]) -> Iterator[Note]:
    """Hold the lock at `path`. If another process holds it, call `on_wait` once with its `owner` text, then wait.

    The lock file is never removed: otherwise two processes could lock two different files with the same name.
    """
    with _opened(path) as descriptor:
        if not _take(descriptor, owner):
            on_wait(_first_line(descriptor))
            while not _take(descriptor, owner):
                pass
        head = _text(descriptor).rstrip("\n")
        yield lambda text: _write(descriptor, f"{head}\n{text}")
        _write(descriptor, "")


@contextmanager
def exclusive_if_free(path: Path, owner: str) -> Iterator[bool]:
    """Try to hold the lock at `path` without waiting, and yield whether that succeeded."""
    with _opened(path) as descriptor:
        yield _take(descriptor, owner)


@contextmanager
def shared(path: Path) -> Iterator[None]:
    """Hold a shared lock at `path`; wait while another process holds it `alone`, or waits to do so."""
    with _opened(path) as descriptor:
        with _opened(_gate(path)) as gate:
            _wait_for(gate, fcntl.LOCK_SH)
            _wait_for(descriptor, fcntl.LOCK_SH)
        yield


@contextmanager
def exclusive_of_shared(path: Path, owner: str, on_wait: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock at `path` while nobody shares it; `on_wait` works as in `exclusive`.

    Processes that share the lock first pass a gate, which this closes. Otherwise overlapping shared holders could
    starve it.
    """
    with exclusive(_gate(path), owner, on_wait), _opened(path) as descriptor:
        _wait_for(descriptor, fcntl.LOCK_EX)
        yield


def _gate(path: Path) -> Path:
    return path.with_suffix(".gate")


def _wait_for(descriptor: int, kind: int) -> None:
    while not _lock(descriptor, kind):
        time.sleep(_SHORT_POLL_S)


def hold_until_exit(path: Path, owner: str) -> str | None:
    """Hold the lock until this process ends, even across `exec`; child processes do not inherit it.

    Returns:
        None, or the `owner` text of the process that already holds the lock.
    """
    with _opened(path) as descriptor:
        if not _take(descriptor, owner):
            return _first_line(descriptor)
        os.set_inheritable(os.dup(descriptor), True)  # noqa: FBT003 positional only
    return None


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open the lock file and yield its descriptor; closing it releases the lock.

    Raises:
        LinkError: The file is a symlink.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = open_file(path, os.O_RDWR | os.O_CREAT)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def holder(path: Path) -> Holder | None:
    """Return the process that holds a lock; None if nobody does, or the file is unreadable. Writes nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        owner, pid, since, note, *_ = (_text(descriptor) + "\n" * _LINES).split("\n")
        return Holder(owner, int(pid) if pid.isdecimal() else 0, since, _step_of(note))
    except OSError:  # the file system locks only writable files
        return None
    else:
        return None
    finally:
        os.close(descriptor)


def was_abandoned(path: Path) -> bool:
    """Return whether the last `exclusive` holder of a lock died or failed while it held it. Writes nothing."""
    try:
        return path.stat().st_size > 0 and holder(path) is None
    except OSError:
        return False


@contextmanager
def recording_step(note: Note, stage: str) -> Iterator[None]:
    """Record in a lock that the block runs a stage, and its progress."""
    due = 0.0

    def listen(event: events.Event) -> None:
        nonlocal due
        if isinstance(event, events.Progress) and time.monotonic() >= due:
            due = time.monotonic() + _PAUSE_S
            note(json.dumps(asdict(Step(stage, event.done, event.total, event.unit))))

    note(json.dumps(asdict(Step(stage))))
    with events.listening(listen):
        yield


def _step_of(note: str) -> Step | None:
    try:
        return Step(**json.loads(note))
    except (ValueError, TypeError):  # empty, or partially written
        return None


def _take(descriptor: int, owner: str) -> bool:
    if not _lock(descriptor):
        time.sleep(_POLL_S)  # `holder` locks the file briefly while it reads
        if not _lock(descriptor):
            return False
    _write(descriptor, f"{owner}\n{os.getpid()}\n{datetime.now(UTC).isoformat(timespec='seconds')}")
    return True


def _lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(descriptor: int, text: str) -> None:
    data = text.encode("utf-8", "replace")[:_MAX_BYTES]
    with suppress(OSError):  # the text is informational, so a full disk must not prevent holding the lock
        os.pwrite(descriptor, data, 0)
        os.ftruncate(descriptor, len(data))


def _text(descriptor: int) -> str:
    return os.pread(descriptor, _MAX_BYTES, 0).decode("utf-8", "replace")


def _first_line(descriptor: int) -> str:
    return _text(descriptor).partition("\n")[0]
