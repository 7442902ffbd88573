"""Ctrl-C that a user in between keeps to themselves: Dagster forgets one that comes when no step is under way."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_ENDING = {signal.SIGINT, signal.SIGTERM}
_MOST_PENDING = 4096  # signals, a byte each


@contextmanager
def noted() -> Iterator[Callable[[], None]]:
    """Yield a function that raises KeyboardInterrupt if a signal asked this process to end since the block began.

    Python notes each signal in a pipe, however it is handled and whatever becomes of the exception. In a thread other
    than the main one, which gets no signals, the function does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def check() -> None:
        try:
            came = os.read(reader, _MOST_PENDING)
        except BlockingIOError:  # none
            return
        if _ENDING.intersection(came):
            raise KeyboardInterrupt

    try:
        yield check
    finally:
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)
