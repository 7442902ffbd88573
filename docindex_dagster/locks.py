"""Locks between processes. They are the kernel's (`flock`), so that a process that dies leaves none behind."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusive(path: Path, owner: str, on_wait: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock at `path`; when another holds it, call `on_wait` with its `owner` text once, and wait.

    The file stays: removing it would let two processes lock two files of one name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait(os.pread(descriptor, 1000, 0).decode("utf-8", "replace"))
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, owner.encode(), 0)
        yield
    finally:
        os.close(descriptor)
