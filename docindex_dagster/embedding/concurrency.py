"""Concurrent calls in threads: results as they complete; the first failure stops all waiting."""

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
_GRACE_S = 10.0  # for calls in flight when a run is interrupted
# Set when calls in flight should finish; each thread sees the event of its own batch of calls.
_over: ContextVar[Event | None] = ContextVar("docindex_calls_are_over", default=None)
_MINUTE = 60.0


def concurrently(work: Callable[[_Item], _Result], items: Iterable[_Item], threads: int) -> Iterator[_Result]:
    """Call `work` with each item in up to `threads` threads, and yield results as they complete.

    An item is taken only when a thread is free for it. After a failure, no more items are taken; calls in flight
    finish, but stop waiting in `pause`. The same applies after an interrupt, except that it waits only briefly for
    them, since a response may never come. With one thread, the calls run in the caller's thread.

    Raises:
        Exception: the first exception of a call.
    """
    if threads == 1:
        yield from map(work, items)
        return
    pending = iter(items)
    calls = _Calls(work)
    grace_s: float | None = _GRACE_S
    try:
        while True:
            for item in islice(pending, threads - calls.in_flight):
                calls.start(item)
            if not calls.in_flight:
                return
            yield calls.next()
    except Exception:
        grace_s = None
        raise
    finally:
        calls.end(grace_s)


@dataclass(slots=True)
class _Calls(Generic[_Item, _Result]):
    """The calls in flight, each in a daemon thread, which does not keep the process alive."""

    work: Callable[[_Item], _Result]
    in_flight: int = 0
    _over: Event = field(default_factory=Event)
    _outcomes: "SimpleQueue[Future[_Result]]" = field(default_factory=SimpleQueue)

    def start(self, item: _Item) -> None:
        self.in_flight += 1
        Thread(target=self._call, args=(item,), daemon=True).start()

    def next(self) -> _Result:
        """Return the result of the next call to complete."""
        ended = self._outcomes.get()
        self.in_flight -= 1
        return ended.result()

    def end(self, grace_s: float | None) -> None:
        """Signal the calls to stop, and wait for them up to `grace_s` seconds; None waits without a limit."""
        self._over.set()
        deadline = None if grace_s is None else time.monotonic() + grace_s
        with suppress(Empty):
            while self.in_flight:
                self._outcomes.get(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
                self.in_flight -= 1

    def _call(self, item: _Item) -> None:
        _over.set(self._over)
        outcome: Future[_Result] = Future()
        try:
            outcome.set_result(self.work(item))
        except BaseException as error:  # noqa: BLE001 `next` raises it in the caller's thread
            outcome.set_exception(error)
        self._outcomes.put(outcome)


def pause(seconds: float) -> None:
    """Wait.

    Raises:
        EmbeddingError: another call failed while waiting, or the run is ending.
    """
    if (_over.get() or Event()).wait(seconds):
        raise EmbeddingError("the run ended before the retry")


@dataclass(slots=True)
class Rate:
    """Rate limit that spaces requests evenly: each reserves its share of a minute, in which no other starts.

    Any minute thus stays within the limit, apart from the share of its last request. None means no limit.
    """

    requests: int | None = None  # per minute
    tokens: int | None = None  # per minute
    now: Callable[[], float] = time.monotonic  # seconds
    sleep: Callable[[float], None] = pause
    _free_at: float = field(default=0.0, init=False)  # the next request may start at this time
    _held_until: float = field(default=0.0, init=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def wait(self, tokens: int) -> None:
        """Wait until a request with this many tokens may start."""
        with self._lock:
            start = max(self.now(), self._free_at)
            shares = (1 / self.requests if self.requests else 0, tokens / self.tokens if self.tokens else 0)
            self._free_at = start + _MINUTE * max(shares)
        while (remaining := max(start, self._held_until) - self.now()) > 0:
            self.sleep(remaining)

    def hold(self, seconds: float) -> None:
        """Block new requests for this many seconds."""
        with self._lock:
            self._held_until = max(self._held_until, self.now() + seconds)
