"""Calls in another thread."""

from contextvars import ContextVar
from functools import partial
from threading import Barrier, Event, get_ident

import pytest

from docindex_dagster.core import background as module
from docindex_dagster.core.background import run_in_two_threads, start_in_thread

_name: ContextVar[str] = ContextVar("name", default="none")


def test_a_call_goes_on_while_this_thread_does_something_else():
    both = Barrier(2)

    result = start_in_thread(lambda: both.wait(timeout=5) >= 0)
    both.wait(timeout=5)

    assert result()


def test_a_call_sees_the_context_of_who_makes_it():
    token = _name.set("search 7")
    result = start_in_thread(_name.get)
    _name.reset(token)

    assert result() == "search 7"


def test_what_a_call_raises_is_raised_where_its_result_is_wanted():
    result = start_in_thread(lambda: 1 // 0)

    with pytest.raises(ZeroDivisionError):
        result()


def test_where_all_threads_are_taken_the_call_is_made_here():
    release, here = Event(), get_ident()
    taken = [start_in_thread(release.wait) for _ in range(module._threads()._max_workers)]

    result = start_in_thread(get_ident)

    assert result() == here
    release.set()
    assert all(each() for each in taken)


def test_two_threads_make_each_call_once():
    made: list[int] = []
    run_in_two_threads([partial(made.append, number) for number in range(1000)])

    assert sorted(made) == list(range(1000))


def test_two_calls_are_made_at_the_same_time():
    both = Barrier(2)

    run_in_two_threads([lambda: void(both.wait(timeout=5))] * 2)


@pytest.mark.parametrize("position", [0, 500, 999])
def test_a_call_that_fails_in_either_thread_fails_them_all(position):
    calls = [lambda: None] * 1000
    calls[position] = lambda: void(1 // 0)

    with pytest.raises(ZeroDivisionError):
        run_in_two_threads(calls)


def test_a_call_that_fails_in_the_other_thread_fails_them_all():
    both, here = Barrier(2), get_ident()

    def call() -> None:
        both.wait(timeout=5)
        if get_ident() != here:
            raise ValueError("the other one")

    with pytest.raises(ValueError, match="the other one"):
        run_in_two_threads([call, call])


def void(_: object) -> None:
    """Accept a result and return nothing."""
