"""Work in a process of its own, for a core that this process leaves idle. Its events are announced here.

Parsing has processes that stay and may crash; they are not here.
"""

import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import connection, resource_tracker
from multiprocessing.connection import Connection
from threading import RLock, Thread
from typing import Any, TypeVar

from docindex_dagster.core import events
from docindex_dagster.core.garbage_collection import give_back

Result = TypeVar("Result")
_SAFE_PATH = "PYTHONSAFEPATH"
_starting = RLock()


def result_of(work: Callable[[], Result]) -> Result:
    """What the work gives in a process of its own. It and its result are pickled.

    Not for the main thread: a signal that interrupts this thread would not end the process.

    Raises:
        ChildProcessError: the process ended without a result, be it killed or by an error of the work.
    """
    context = multiprocessing.get_context("spawn")  # not forked: this process may have threads of lancedb
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs,), daemon=True)
    with out_of_reach():
        process.start()
    theirs.close()  # so that the end of the process ends the pipe
    try:
        with ours:
            _send(ours, work)
            while isinstance(received := _receive(ours), events.Event):
                events.emit(received)
        (result,) = received
    except (EOFError, ConnectionError) as error:
        process.join()
        raise ChildProcessError(f"a process ended with exit code {process.exitcode} and without a result") from error
    finally:
        process.kill()
        process.join()
    return result  # type: ignore[no-any-return]  # what comes out of a pipe has no type


@contextmanager
def out_of_reach() -> Iterator[None]:
    """Start processes that Ctrl-C in the terminal does not reach, and that import nothing from their working folder.

    They end with this one. The folder is often a source, which may have a `struct.py` of its own.
    `os.environ` stays as it is: a thread that reads it meanwhile would fail at a name that is gone again.
    """
    with _starting:
        os.putenv(_SAFE_PATH, "1")
        resource_tracker.ensure_running()  # it unblocks the signal
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            if (path := os.environ.get(_SAFE_PATH)) is None:
                os.unsetenv(_SAFE_PATH)
            else:
                os.putenv(_SAFE_PATH, path)


def _send(pipe: Connection, content: object) -> None:
    """Send an object. The memory of tables in it goes as it is: a pickle that holds it would be a second copy."""
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(content, protocol=5, buffer_callback=buffers.append)
    pipe.send((pickled, len(buffers)))
    for buffer in buffers:
        pipe.send_bytes(buffer.raw())


def _receive(pipe: Connection) -> Any:
    """Receive an object from a process of this program."""
    pickled, count = pipe.recv()
    return pickle.loads(pickled, buffers=[pipe.recv_bytes() for _ in range(count)])  # noqa: S301 our own process sent it


def _work(pipe: Connection) -> None:
    Thread(target=_end_with_parent, daemon=True).start()
    work = _receive(pipe)
    with events.listening(lambda event: _send(pipe, event)):
        result = work()
    give_back()  # before the other process takes as much for the result
    _send(pipe, (result,))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
