"""A thread that makes calls one after the other, in the context of whoever asks for them."""

from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Self, TypeVar

_T = TypeVar("_T")


class BackgroundThread:
    """Makes calls in their order. Its block waits for them; an interrupt waits for nothing, as the thread is a daemon.

    After an error in the block, calls that have not begun are dropped.
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
