"""Work in a child process, which uses an otherwise idle core. Its events are emitted in this process.

The long-lived worker processes for parsing, which may crash, live elsewhere.
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
from docindex_dagster.core.garbage_collection import release_memory

Result = TypeVar("Result")
_SAFE_PATH = "PYTHONSAFEPATH"
_starting = RLock()


def run_in_child_process(work: Callable[[], Result]) -> Result:
    """Return the result of `work`, run in a child process. Both `work` and its result must be picklable.

    Do not call this from the main thread: a signal that interrupts it would not end the child process.

    Raises:
        ChildProcessError: The child process ended without a result, because it was killed or the work failed.
    """
    context = multiprocessing.get_context("spawn")  # not fork: this process may have LanceDB threads
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs,), daemon=True)
    with shielded_from_interrupts():
        process.start()
    theirs.close()  # so that the pipe closes when the child process ends
    try:
        with ours:
            _send(ours, work)
            while isinstance(received := _receive(ours), events.Event):
                events.emit(received)
        (result,) = received
    except (EOFError, ConnectionError) as error:
        process.join()
        raise ChildProcessError(
            f"a child process ended with exit code {process.exitcode} and without a result"
        ) from error
    finally:
        process.kill()
        process.join()
    return result  # type: ignore[no-any-return]  # data from a pipe is untyped


@contextmanager
def shielded_from_interrupts() -> Iterator[None]:
    """Shield processes started in the block from Ctrl-C, and from modules in the working directory.

    They end with this process. The working directory is often a source, which may contain its own `struct.py`.
    `os.environ` stays unchanged, since a thread that reads it concurrently could fail on a name that disappears.
    """
    with _starting:
        os.putenv(_SAFE_PATH, "1")
        resource_tracker.ensure_running()  # starting it later would unblock the signal
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
    """Send an object. Buffers of tables are sent directly, since pickling them would copy them."""
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
    release_memory()  # before the parent process allocates memory for the result
    _send(pipe, (result,))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
