"""Detection of swallowed interrupts: Dagster drops a Ctrl-C that arrives while no step is running."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_ENDING = {signal.SIGINT, signal.SIGTERM}
_MAX_PENDING = 4096  # signals, one byte each


@contextmanager
def interrupt_check() -> Iterator[Callable[[], None]]:
    """Yield a function that raises KeyboardInterrupt if SIGINT or SIGTERM arrived since the block started.

    Python writes each signal to a pipe, regardless of its handler and even if the exception is swallowed. Outside the
    main thread, which alone receives signals, the function does nothing.
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
            received = os.read(reader, _MAX_PENDING)
        except BlockingIOError:  # no signals
            return
        if _ENDING.intersection(received):
            raise KeyboardInterrupt

    try:
        yield check
    finally:
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)
