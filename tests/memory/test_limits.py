"""Limits on agent writes."""

import pytest

from docindex_dagster.core.errors import MessageError, MessageRateError, QuotaError
from docindex_dagster.core.settings import MemorySettings
from docindex_dagster.memory.memory import Limits
from tests.memory.logs import write


class Clock:
    """A clock that advances only when a test says so."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def limits(log, clock, **settings):
    return Limits(MemorySettings(**settings), log.home, clock)


def test_a_message_has_so_many_bytes_at_most(log, clock):
    limited = limits(log, clock, message_bytes=1024)
    limited.admit("x" * 1024)
    limited.admit("ü" * 512)

    with pytest.raises(MessageError, match="1,026 bytes, but the limit is 1,024"):
        limited.admit("ü" * 513)


def test_twenty_messages_a_second_and_when_the_next_one_may_come(log, clock):
    limited = limits(log, clock)
    for _ in range(20):
        limited.admit("hello")
    with pytest.raises(MessageRateError, match="exceeds 20 messages per second") as refused:
        limited.admit("hello")

    assert refused.value.retry_after_s == pytest.approx(0.05)
    clock.now += refused.value.retry_after_s
    limited.admit("hello")
    with pytest.raises(MessageRateError):
        limited.admit("hello")


def test_a_rest_is_worth_a_second_at_most(log, clock):
    limited = limits(log, clock, per_second=3)
    clock.now += 3600
    for _ in range(3):
        limited.admit("hello")
    with pytest.raises(MessageRateError):
        limited.admit("hello")


def test_a_message_that_is_too_long_costs_no_turn(log, clock):
    limited = limits(log, clock, per_second=1, message_bytes=1024)
    with pytest.raises(MessageError):
        limited.admit("x" * 2000)
    limited.admit("hello")


def test_a_domain_has_so_many_bytes_with_all_that_lies_in_it(log, clock):
    write(log, "x" * 500_000)
    limited = limits(log, clock, quota_bytes=1 << 20)
    limited.admit("x" * 200_000)
    (log.home.stores).mkdir()
    (log.home.stores / "data").write_bytes(bytes(300_000))
    limited.admit("x" * 200_000)  # the measured size is cached for a while
    clock.now += 60

    with pytest.raises(QuotaError, match="the limit is 1,048,576: forget sessions"):
        limited.admit("x" * 250_000)
    limited.admit("x" * 100_000)


def test_what_this_process_adds_counts_before_it_is_measured(log, clock):
    limited = limits(log, clock, quota_bytes=1 << 20, message_bytes=1 << 20)
    limited.admit("x" * 600_000)

    with pytest.raises(QuotaError):
        limited.admit("x" * 600_000)
