"""Waiting for something no longer than it is worth, whatever it does meanwhile."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

_Result = TypeVar("_Result")


def within(seconds: float, attempt: Callable[[], _Result]) -> _Result:
    """What an attempt gives in time. One that takes longer goes on in a thread that nobody waits for.

    The time-outs of HTTP libraries are for each step: a server that sends a byte now and then would never meet one.

    Raises:
        TimeoutError: it took longer.
        Exception: of the attempt, as it raises it.
    """
    outcome: Future[_Result] = Future()

    def run() -> None:
        try:
            outcome.set_result(attempt())
        except Exception as error:  # noqa: BLE001 whoever waits for it looks at it
            outcome.set_exception(error)

    # No pool: its threads would have to end before the process may.
    Thread(target=run, daemon=True).start()
    return outcome.result(timeout=seconds)
