"""Waiting for something no longer than it is worth, whatever it does meanwhile."""

from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait
from threading import Thread
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Result = TypeVar("_Result")


def within(seconds: float, attempt: Callable[[], _Result]) -> _Result:
    """What an attempt gives in time. One that takes longer goes on in a thread that is left behind.

    The time-outs of HTTP libraries are for each step: a server that sends a byte now and then would never meet one.

    Raises:
        TimeoutError: it took longer.
        Exception: of the attempt, as it raises it.
    """
    return _started(attempt).result(timeout=seconds)


class Attempts(Generic[_Key, _Result]):
    """Attempts that may take longer than their caller waits: of each name at most one is under way."""

    def __init__(self) -> None:
        """None is under way."""
        self._under_way: dict[_Key, Future[_Result]] = {}

    def result(self, name: _Key, attempt: Callable[[], _Result], seconds: float) -> _Result:
        """What an attempt gives in time. One that takes longer goes on, and who asks again does not wait for it again.

        Once it is over, the next one who asks gets what it gave.

        Raises:
            TimeoutError: it goes on.
            Exception: of the attempt, as it raises it.
        """
        before = self._under_way.pop(name, None)
        outcome = before or _started(attempt)
        wait([outcome], timeout=0 if before else seconds)
        if not outcome.done():
            self._under_way[name] = outcome
            raise TimeoutError(f"no answer within {seconds:g} s; it is waited for in the background")
        return outcome.result()


def _started(attempt: Callable[[], _Result]) -> Future[_Result]:
    """Begin an attempt in a thread, without waiting for it."""
    outcome: Future[_Result] = Future()

    def run() -> None:
        try:
            outcome.set_result(attempt())
        except Exception as error:  # noqa: BLE001 the one that waits for it raises it
            outcome.set_exception(error)

    # No pool: its threads would have to end before the process may.
    Thread(target=run, daemon=True).start()
    return outcome
