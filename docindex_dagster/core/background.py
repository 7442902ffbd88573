"""Calls in background threads, in their caller's context."""

from collections.abc import Callable, Coroutine, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import cache
from os import cpu_count
from queue import SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

_T = TypeVar("_T")
_Key = TypeVar("_Key", bound=Hashable)
_LOOP_LOCK = Lock()


def start_in_thread(call: Callable[[], _T]) -> Callable[[], _T]:
    """Start a call in another thread, and return a function that waits for its result or raises its error.

    This pays off for calls that release the GIL, as Tantivy and numpy do. If no thread is free by the time the result
    is needed, the caller's thread makes the call.
    """
    context = copy_context()
    future = _threads().submit(context.run, call)

    def result() -> _T:
        return context.run(call) if future.cancel() else future.result()

    return result


def run_in_two_threads(calls: Sequence[Callable[[], None]]) -> None:
    """Make all calls in this thread and another one, which share a queue."""
    queue = iter(calls)

    def work() -> None:
        for call in queue:
            call()

    other = start_in_thread(work) if len(calls) > 1 else work
    work()
    other()


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cpu_count() or 1, "docindex-beside")


def call_with_deadline(seconds: float, call: Callable[[], _T]) -> _T:
    """Return the result of a call, with a deadline. A call that exceeds it continues in a background thread.

    The timeouts of HTTP libraries apply to each step, so a server that sends a byte now and then never hits one.

    Raises:
        TimeoutError: The call took longer.
        Exception: The call raised it.
    """
    return _start(call).result(timeout=seconds)


def run_coroutine(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of a coroutine, run by an event loop in a thread that all callers share.

    Raises:
        Exception: The coroutine raised it.
    """
    from asyncio import run_coroutine_threadsafe

    with _LOOP_LOCK:
        loop = _event_loop()
    return run_coroutine_threadsafe(coroutine, loop).result()


@cache
def _event_loop() -> "AbstractEventLoop":
    from asyncio import new_event_loop

    loop = new_event_loop()
    Thread(target=loop.run_forever, name="docindex-event-loop", daemon=True).start()
    return loop


class BackgroundCalls(Generic[_Key, _T]):
    """Calls that may outlast their caller's timeout, with at most one in flight per name."""

    def __init__(self) -> None:
        """Start with no calls in flight."""
        self._in_flight: dict[_Key, Future[_T]] = {}

    def result(self, name: _Key, call: Callable[[], _T], seconds: float) -> _T:
        """Return the result of a call, or of an earlier call of this name that timed out.

        Raises:
            TimeoutError: The call is still running. Only the first caller waits for it.
            Exception: The call raised it.
        """
        earlier = self._in_flight.pop(name, None)
        future = earlier or _start(call)
        wait([future], timeout=0 if earlier else seconds)
        if not future.done():
            self._in_flight[name] = future
            raise TimeoutError(f"no answer within {seconds:g} s; still waiting in the background")
        return future.result()


def _start(call: Callable[[], _T]) -> "Future[_T]":
    """Start a call in a daemon thread, which does not delay the exit of the process."""
    future: Future[_T] = Future()
    Thread(target=_call, args=(call, future), daemon=True).start()
    return future


class BackgroundThread:
    """A thread that makes calls in order, used as a context manager.

    At its end, the block waits for all calls; after an error, only for the current one. An interrupt waits for none,
    since the thread is a daemon.
    """

    def __init__(self, name: str) -> None:
        """Create the thread, which starts with its first call."""
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._futures: list[Future[Any]] = []
        self._thread = Thread(target=self._work, name=f"docindex-{name}", daemon=True)

    def __enter__(self) -> Self:
        """Start nothing yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Wait for the calls."""
        if kind is not None:
            for future in self._futures:
                future.cancel()
        self._calls.put(None)
        if self._thread.ident and (kind is None or issubclass(kind, (Exception, GeneratorExit))):
            self._thread.join()

    def submit(self, call: Callable[[], _T]) -> "Future[_T]":
        """Queue a call."""
        future: Future[_T] = Future()
        context = copy_context()
        self._futures.append(future)
        self._calls.put(lambda: context.run(_call, call, future))
        if not self._thread.ident:
            self._thread.start()
        return future

    def wait(self) -> None:
        """Wait for all calls submitted before.

        Raises:
            Exception: The error of the first failed call.
        """
        for future in list(self._futures):
            future.result()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


def _call(call: Callable[[], _T], future: "Future[_T]") -> None:
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 passed on to the caller that waits for the result
            future.set_exception(error)
