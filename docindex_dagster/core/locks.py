"""Locks between processes. They are the kernel's (`flock`), so that a process that dies leaves none behind."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Waiting polls: a signal that comes just before a blocking `flock` would be answered only once the lock is free.
_POLL_S = 0.05


@contextmanager
def exclusive(path: Path, owner: str, on_wait: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock at `path`; when another holds it, call `on_wait` with its `owner` text once, and wait.

    The file stays: removing it would let two processes lock two files of one name.
    """
    with _opened(path) as descriptor:
        if not _take(descriptor, owner):
            on_wait(os.pread(descriptor, 1000, 0).decode("utf-8", "replace"))
            while not _take(descriptor, owner):
                time.sleep(_POLL_S)
        yield


@contextmanager
def exclusive_if_free(path: Path, owner: str) -> Iterator[bool]:
    """Hold the lock at `path` unless another holds it, and say whether this one does, without waiting."""
    with _opened(path) as descriptor:
        yield _take(descriptor, owner)


def hold_for_life(path: Path, owner: str) -> str | None:
    """Hold the lock until this process ends, whichever program it is by then (`exec`); its children do not hold it.

    Returns:
        None; where another holds it, its `owner` text.
    """
    with _opened(path) as descriptor:
        if not _take(descriptor, owner):
            return os.pread(descriptor, 1000, 0).decode("utf-8", "replace")
        os.set_inheritable(os.dup(descriptor), True)  # noqa: FBT003 it has no name
    return None


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """A descriptor of the lock's file; with it, the lock goes."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _take(descriptor: int, owner: str) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    with suppress(OSError):  # it is only shown to others: a full disk is no reason not to hold the lock
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, owner.encode(), 0)
    return True
