"""Calls at once, in threads: results as they come, and an end to all waiting as soon as one call fails."""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import Generic, TypeVar

from docindex_dagster.core.errors import EmbeddingError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_GRACE_S = 10.0  # for what is under way when a run is interrupted
# Set when calls that are under way should come to an end; each thread has that of its calls.
_over: ContextVar[Event | None] = ContextVar("docindex_calls_are_over", default=None)
_MINUTE = 60.0


def concurrently(work: Callable[[_Item], _Result], items: Iterable[_Item], threads: int) -> Iterator[_Result]:
    """Call `work` with each item, in so many threads, and yield results as they come.

    No item is taken before there is a thread for it. After a failure no further item is; calls that are under way end,
    but do not go on with what `pause` waits for. So after an interrupt, which does not wait long for them, as it might
    be for an answer that never comes. One thread is the caller's own.

    Raises:
        Exception: the first one of a call.
    """
    if threads == 1:
        yield from map(work, items)
        return
    left = iter(items)
    calls = _Calls(work)
    grace_s: float | None = _GRACE_S
    try:
        while True:
            for item in islice(left, threads - calls.under_way):
                calls.begin(item)
            if not calls.under_way:
                return
            yield calls.next()
    except Exception:
        grace_s = None
        raise
    finally:
        calls.end(grace_s)


@dataclass(slots=True)
class _Calls(Generic[_Item, _Result]):
    """The calls that are under way, each in a thread that does not keep the process from its end."""

    work: Callable[[_Item], _Result]
    under_way: int = 0
    _over: Event = field(default_factory=Event)
    _outcomes: "SimpleQueue[Future[_Result]]" = field(default_factory=SimpleQueue)

    def begin(self, item: _Item) -> None:
        self.under_way += 1
        Thread(target=self._call, args=(item,), daemon=True).start()

    def next(self) -> _Result:
        """The result of the call that ends first."""
        ended = self._outcomes.get()
        self.under_way -= 1
        return ended.result()

    def end(self, grace_s: float | None) -> None:
        """Let calls come to an end, and wait for it, so long at most; None: for all of them."""
        self._over.set()
        until = None if grace_s is None else time.monotonic() + grace_s
        with suppress(Empty):
            while self.under_way:
                self._outcomes.get(timeout=None if until is None else max(0.0, until - time.monotonic()))
                self.under_way -= 1

    def _call(self, item: _Item) -> None:
        _over.set(self._over)
        outcome: Future[_Result] = Future()
        try:
            outcome.set_result(self.work(item))
        except BaseException as error:  # noqa: BLE001 it is raised where it is waited for
            outcome.set_exception(error)
        self._outcomes.put(outcome)


def pause(seconds: float) -> None:
    """Wait so long.

    Raises:
        EmbeddingError: another call failed meanwhile, or the run is over.
    """
    if (_over.get() or Event()).wait(seconds):
        raise EmbeddingError("the run ended before it was asked again")


@dataclass(slots=True)
class Rate:
    """Requests are spread evenly: each takes its share of a minute, in which no other begins.

    So within any minute there are never more than allowed, but for what the last request began. None is no limit.
    """

    requests: int | None = None  # a minute
    tokens: int | None = None
    now: Callable[[], float] = time.monotonic  # seconds
    sleep: Callable[[float], None] = pause
    _free_at: float = field(default=0.0, init=False)  # from when on the next request may begin
    _held_until: float = field(default=0.0, init=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def wait(self, tokens: int) -> None:
        """Return when a request of so many tokens may begin."""
        with self._lock:
            start = max(self.now(), self._free_at)
            shares = (1 / self.requests if self.requests else 0, tokens / self.tokens if self.tokens else 0)
            self._free_at = start + _MINUTE * max(shares)
        while (left := max(start, self._held_until) - self.now()) > 0:
            self.sleep(left)

    def hold(self, seconds: float) -> None:
        """Let no request begin for so long."""
        with self._lock:
            self._held_until = max(self._held_until, self.now() + seconds)
