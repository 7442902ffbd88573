"""A background thread that runs calls one after another."""

from contextvars import ContextVar
from functools import partial
from threading import Event, Thread, current_thread, main_thread

import pytest

from docindex_dagster.core.background import BackgroundThread

_LONGEST_S = 30
_NAME: ContextVar[str] = ContextVar("name", default="")


def test_calls_are_made_in_their_order_in_another_thread():
    made: list[int] = []

    def make(number: int) -> Thread:
        made.append(number)
        return current_thread()

    with BackgroundThread("test") as thread:
        futures = [thread.submit(partial(make, number)) for number in range(9)]
        thread.wait()
        assert made == list(range(9))
    assert {future.result() for future in futures}.isdisjoint({main_thread()})


def test_a_call_is_made_in_the_context_of_who_asks_for_it():
    with BackgroundThread("test") as thread:
        token = _NAME.set("here")
        future = thread.submit(_NAME.get)
        _NAME.reset(token)
        assert future.result() == "here"


def test_an_error_reaches_who_waits():
    def fail() -> None:
        raise ValueError("no")

    with BackgroundThread("test") as thread:
        thread.submit(fail)
        with pytest.raises(ValueError, match="no"):
            thread.wait()


def test_the_block_waits_for_the_calls():
    goes_on, made = Event(), list[bool]()
    with BackgroundThread("test") as thread:
        thread.submit(lambda: made.append(goes_on.wait(_LONGEST_S)))
        goes_on.set()
    assert made == [True]


def test_after_an_error_calls_that_have_not_begun_are_dropped():
    begun, goes_on, made = Event(), Event(), list[str]()

    def first() -> None:
        begun.set()
        goes_on.wait(_LONGEST_S)
        made.append("first")

    def fail(thread: BackgroundThread) -> None:
        thread.submit(first)
        thread.submit(lambda: made.append("second"))
        assert begun.wait(_LONGEST_S)
        goes_on.set()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), BackgroundThread("test") as thread:
        fail(thread)
    assert made in (["first"], ["first", "second"])  # the first call may end before the error is raised


def test_an_interrupt_waits_for_nothing():
    goes_on, ended = Event(), Event()

    def work() -> None:
        goes_on.wait(_LONGEST_S)
        ended.set()

    def interrupted() -> None:
        with BackgroundThread("test") as thread:
            thread.submit(work)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not ended.is_set()
    goes_on.set()
