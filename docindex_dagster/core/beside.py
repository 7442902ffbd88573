"""Making calls in another thread meanwhile: it pays where they let go of Python's lock, as Tantivy and numpy do."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from os import cpu_count
from typing import TypeVar

_T = TypeVar("_T")


def beside(call: Callable[[], _T]) -> Callable[[], _T]:
    """Begin a call in another thread; returns what waits for its result, or raises what it raised.

    Where no thread is free by then, the call is made there and then: nobody waits for what has not begun.
    """
    context = copy_context()

    def made() -> _T:
        return context.run(call)

    future = _threads().submit(made)

    def result() -> _T:
        return made() if future.cancel() else future.result()

    return result


def in_two_threads(calls: Sequence[Callable[[], None]]) -> None:
    """Make all calls, in this thread and another one, each of which takes the next one that is left."""
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
