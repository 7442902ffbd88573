"""Calls in other threads, in the context of their caller."""

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


def beside(call: Callable[[], _T]) -> Callable[[], _T]:
    """Begin a call in another thread, and return a function that waits for its result, or raises its error.

    It pays where the call releases Python's lock, as Tantivy and numpy do. Where no thread is free by the time that the
    result is needed, the call is made in the caller's thread.
    """
    context = copy_context()
    future = _threads().submit(context.run, call)

    def result() -> _T:
        return context.run(call) if future.cancel() else future.result()

    return result


def in_two_threads(calls: Sequence[Callable[[], None]]) -> None:
    """Make all calls, in this thread and another one; each takes the next call that is left."""
    left = iter(calls)

    def work() -> None:
        for call in left:
            call()

    other = beside(work) if len(calls) > 1 else work
    work()
    other()


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cpu_count() or 1, "docindex-beside")


def within(seconds: float, call: Callable[[], _T]) -> _T:
    """Return the result of a call if it takes no longer; one that does goes on in a thread that is left behind.

    The time-outs of HTTP libraries apply to each step: a server that sends a byte now and then never meets one.

    Raises:
        TimeoutError: it took longer.
        Exception: what the call raises.
    """
    return _started(call).result(timeout=seconds)


def run_coroutine(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of a coroutine, run by an event loop in another thread that all callers share.

    Raises:
        Exception: what the coroutine raises.
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


class Attempts(Generic[_Key, _T]):
    """Calls that may take longer than their caller waits; of each name at most one is under way."""

    def __init__(self) -> None:
        """None is under way."""
        self._under_way: dict[_Key, Future[_T]] = {}

    def result(self, name: _Key, call: Callable[[], _T], seconds: float) -> _T:
        """Return the result of a call, or of the earlier one of this name that took longer.

        Raises:
            TimeoutError: it goes on; only the first caller waits for it.
            Exception: what the call raises.
        """
        before = self._under_way.pop(name, None)
        future = before or _started(call)
        wait([future], timeout=0 if before else seconds)
        if not future.done():
            self._under_way[name] = future
            raise TimeoutError(f"no answer within {seconds:g} s; it is waited for in the background")
        return future.result()


def _started(call: Callable[[], _T]) -> "Future[_T]":
    """Start a call in a daemon thread, which the end of the process does not wait for."""
    future: Future[_T] = Future()
    Thread(target=_call, args=(call, future), daemon=True).start()
    return future


class BackgroundThread:
    """A thread that makes calls in their order. Its block waits for them; after an error, for the one under way.

    An interrupt waits for nothing: the thread is a daemon.
    """

    def __init__(self, name: str) -> None:
        """The thread starts with its first call."""
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
        """Make a call after those before it."""
        future: Future[_T] = Future()
        context = copy_context()
        self._futures.append(future)
        self._calls.put(lambda: context.run(_call, call, future))
        if not self._thread.ident:
            self._thread.start()
        return future

    def wait(self) -> None:
        """Wait for all calls so far.

        Raises:
            Exception: what the first of them raised that failed.
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
        except BaseException as error:  # noqa: BLE001 the caller that waits for the result gets it
            future.set_exception(error)
