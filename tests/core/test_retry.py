"""Retries: the number of attempts, the delays, and the errors that trigger them."""

import asyncio
import math
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.core.retry import Retry, retry_after_s


class Passing(Exception):  # noqa: N818 it is a stage of it
    """A transient error."""

    def __init__(self, asked_s: float | None = None) -> None:
        self.asked_s = asked_s
        super().__init__("busy")


def call(retry: Retry, *errors: Exception) -> tuple[str, list[float]]:
    """Return the result after these errors, one per attempt, and the delay before each retry."""
    left, waits = list(errors), list[float]()

    def attempt() -> str:
        if left:
            raise left.pop(0)
        return "done"

    def asked_s(error: BaseException) -> float | None:
        return error.asked_s if isinstance(error, Passing) else None

    return retry.call(attempt, lambda error: isinstance(error, Passing), asked_s, waits.append), waits


def call_async(retry: Retry, *errors: Exception) -> tuple[str, list[float]]:
    """Do the same as `call` for a coroutine."""
    left, waits = list(errors), list[float]()

    async def attempt() -> str:
        await asyncio.sleep(0)
        if left:
            raise left.pop(0)
        return "done"

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    def asked_s(error: BaseException) -> float | None:
        return error.asked_s if isinstance(error, Passing) else None

    called = retry.call_async(attempt, lambda error: isinstance(error, Passing), asked_s, sleep)
    return asyncio.run(called), waits


BOTH = pytest.mark.parametrize("call", [call, call_async])


@BOTH
def test_what_succeeds_is_not_tried_again(call):
    assert call(Retry(3)) == ("done", [])


@BOTH
def test_the_last_error_is_raised_when_all_attempts_failed(call):
    last = Passing()

    with pytest.raises(Passing) as raised:
        call(Retry(2), Passing(), Passing(), last, Passing())

    assert raised.value is last


@BOTH
def test_what_will_not_pass_is_raised_at_once(call):
    with pytest.raises(ValueError, match="no"):
        call(Retry(3), ValueError("no"))


@given(retries=st.integers(1, 12), first=st.floats(0.01, 10), longest=st.floats(0.01, 100))
def test_waits_double_up_to_the_longest_and_are_at_most_half_shorter(retries, first, longest):
    _, waits = call(Retry(retries, first, longest), *(Passing() for _ in range(retries)))

    bounds = [min(first * 2**number, longest) for number in range(retries)]
    assert all(bound / 2 <= wait <= bound for wait, bound in zip(waits, bounds, strict=True))


@BOTH
def test_clients_that_failed_together_do_not_try_again_together(call):
    assert len({call(Retry(1), Passing())[1][0] for _ in range(20)}) > 1


@BOTH
def test_a_server_is_asked_again_when_it_says(call):
    assert call(Retry(3), Passing(), Passing(12.5))[1][1] == 12.5


@BOTH
def test_a_server_that_asks_for_more_patience_than_there_is_is_asked_no_more(call):
    with pytest.raises(Passing):
        call(Retry(3, max_requested_wait_s=10), Passing(10.1))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3),
        ({"retry-after": " 0.25 "}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "7"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e400"}, math.inf),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry-after": "Wed, 99 Oct 2015 07:28:00 GMT"}, None),
    ],
)
def test_what_a_header_asks_for(headers, seconds):
    assert retry_after_s(headers) == seconds


def test_a_date_is_so_long_from_now():
    until = datetime.now(UTC) + timedelta(minutes=2)

    seconds = retry_after_s({"retry-after": format_datetime(until, usegmt=True)})

    assert seconds is not None
    assert 110 < seconds <= 120


def test_a_wait_is_in_seconds():
    started = time.monotonic()
    failures = [Passing(0.05)]

    def attempt() -> None:
        if failures:
            raise failures.pop()

    Retry(1).call(attempt, lambda _: True, lambda error: getattr(error, "asked_s", None))

    assert time.monotonic() - started >= 0.05


@pytest.mark.parametrize("when", ["in an attempt", "in a wait"])
def test_a_cancellation_ends_it_at_once_and_is_no_error_to_try_again_after(when):
    tries = 0

    async def attempt() -> None:
        nonlocal tries
        tries += 1
        if when == "in an attempt":
            await asyncio.sleep(60)
        raise Passing

    async def cancel() -> float:
        trying = asyncio.create_task(Retry(5).call_async(attempt, lambda _: True, lambda _: 60))
        await asyncio.sleep(0.05)
        trying.cancel()
        started = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await trying
        return time.monotonic() - started

    assert asyncio.run(cancel()) < 1
    assert tries == 1
