"""Locks between processes. They are the kernel's (`flock`), so that a process that dies leaves none behind.

A run notes its progress in the locks that it holds, so that no dead process seems to be running.
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
    raise ImportError(refusal() or "docindex needs the locks of a POSIX system") from error

# Waiting polls: a signal that comes just before a blocking `flock` would be answered only once the lock is free.
_POLL_S = 0.05
_SHORT_POLL_S = 0.001  # of a lock that is held for the time of a write
_MOST_BYTES = 4000
_PAUSE_S = 0.5  # between two notes
_LINES = 4  # of a lock's file: owner, process, since when it is held, what its owner is doing

Note = Callable[[str], None]
"""Writes into a lock's file what its owner is doing, in a line."""


class Held(Protocol):
    """A lock while it is held. Called with a line, it lets others see what its owner is doing."""

    def __call__(self, text: str, /) -> None:
        """Note what its owner is doing."""

    def check(self) -> None:
        """Make sure that it is held still: to be called before anything is made visible to others.

        Raises:
            LostLockError: it is not.
        """


class Locks(Protocol):
    """Locks between machines, by name; `objects/postgres_locks.py` has them."""

    def exclusive(self, name: str, owner: str, on_wait: Callable[[str], None]) -> AbstractContextManager[Held]:
        """Hold a lock; when another holds it, call `on_wait` with its `owner` text once, and wait.

        Raises:
            LockError: what keeps the locks cannot be reached.
        """
        ...

    def is_held(self, name: str) -> bool:
        """Whether a lock is held by one who was heard of lately.

        Raises:
            LockError: what keeps the locks cannot be reached.
        """
        ...

    def end_silent(self) -> None:
        """Let the locks go of all who were not heard of lately.

        Raises:
            LockError: what keeps the locks cannot be reached.
        """
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """What a run does now; `done` and `total` are None where it counts nothing."""

    stage: str
    done: int | None = None
    total: int | None = None
    unit: str = ""

    def __str__(self) -> str:
        """In words."""
        stage = self.stage.replace("_", " ")
        return stage if not self.total else f"{stage}, {self.done:,} of {self.total:,} {self.unit}"


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds a lock, by what it wrote into its file."""

    owner: str
    pid: int
    since: str  # UTC in ISO 8601
    step: Step | None = None


@contextmanager
def exclusive(path: Path, owner: str, on_wait: Callable[[str], None]) -> Iterator[Note]:
    """Hold the lock at `path`; when another holds it, call `on_wait` with its `owner` text once, and wait.

    The file stays: removing it would let two processes lock two files of one name.
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
    """Hold the lock at `path` unless another holds it, and say whether this one does, without waiting."""
    with _opened(path) as descriptor:
        yield _take(descriptor, owner)


@contextmanager
def shared(path: Path) -> Iterator[None]:
    """Hold the lock at `path` together with others that share it; wait while one holds it `alone`, or is about to."""
    with _opened(path) as descriptor:
        with _opened(_gate(path)) as gate:
            _wait_for(gate, fcntl.LOCK_SH)
            _wait_for(descriptor, fcntl.LOCK_SH)
        yield


@contextmanager
def alone(path: Path, owner: str, on_wait: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock at `path` while none shares it; `on_wait` as for `exclusive`.

    Whoever shares it passes a gate first, which is closed meanwhile: else, where many share it in turns, it would never
    be free.
    """
    with exclusive(_gate(path), owner, on_wait), _opened(path) as descriptor:
        _wait_for(descriptor, fcntl.LOCK_EX)
        yield


def _gate(path: Path) -> Path:
    return path.with_suffix(".gate")


def _wait_for(descriptor: int, kind: int) -> None:
    while not _lock(descriptor, kind):
        time.sleep(_SHORT_POLL_S)


def hold_for_life(path: Path, owner: str) -> str | None:
    """Hold the lock until this process ends, whichever program it is by then (`exec`); its children do not hold it.

    Returns:
        None; where another holds it, its `owner` text.
    """
    with _opened(path) as descriptor:
        if not _take(descriptor, owner):
            return _first_line(descriptor)
        os.set_inheritable(os.dup(descriptor), True)  # noqa: FBT003 it has no name
    return None


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """A descriptor of the lock's file; with it, the lock goes.

    Raises:
        LinkError: the file is a symbolic link.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = open_file(path, os.O_RDWR | os.O_CREAT)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def holder(path: Path) -> Holder | None:
    """The process that holds a lock; None where none does, or it cannot be seen. Nothing is written."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        owner, pid, since, note, *_ = (_text(descriptor) + "\n" * _LINES).split("\n")
        return Holder(owner, int(pid) if pid.isdecimal() else 0, since, _step_of(note))
    except OSError:  # a file system that locks only what may be written
        return None
    else:
        return None
    finally:
        os.close(descriptor)


def was_held_by_the_dead(path: Path) -> bool:
    """Whether the last that held a lock by `exclusive` was killed, or failed, as it held it. Nothing is written."""
    try:
        return path.stat().st_size > 0 and holder(path) is None
    except OSError:
        return False


@contextmanager
def step_noted(note: Note, stage: str) -> Iterator[None]:
    """Note in a lock that the block does a stage, and how far it is."""
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
    except (ValueError, TypeError):  # none yet, or one that is being written
        return None


def _take(descriptor: int, owner: str) -> bool:
    if not _lock(descriptor):
        time.sleep(_POLL_S)  # for who holds it, or for `holder`, which has it for a moment as it looks
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
    data = text.encode("utf-8", "replace")[:_MOST_BYTES]
    with suppress(OSError):  # it is only shown to others: a full disk is no reason not to hold the lock
        os.pwrite(descriptor, data, 0)
        os.ftruncate(descriptor, len(data))


def _text(descriptor: int) -> str:
    return os.pread(descriptor, _MOST_BYTES, 0).decode("utf-8", "replace")


def _first_line(descriptor: int) -> str:
    return _text(descriptor).partition("\n")[0]
