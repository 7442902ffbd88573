"""Limits of requests and tokens per minute, with a fake clock."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.embedding.concurrency import Rate


@dataclass
class Clock:
    """Fake clock that advances only in `sleep`."""

    seconds: float = 1000.0
    slept: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds


def rate(clock: Clock, requests: int | None = None, tokens: int | None = None) -> Rate:
    return Rate(requests, tokens, clock.now, clock.sleep)


def begins(limits: Rate, clock: Clock, tokens: list[int]) -> list[float]:
    """Return the start times of requests with these token counts."""
    times = []
    for count in tokens:
        limits.wait(count)
        times.append(clock.seconds)
    return times


def test_without_limits_nobody_waits():
    clock = Clock()
    begins(rate(clock), clock, [10_000] * 50)

    assert clock.slept == []


def test_requests_are_spread_over_the_minute():
    clock = Clock()

    assert begins(rate(clock, requests=120), clock, [1] * 4) == [1000.0, 1000.5, 1001.0, 1001.5]


def test_a_request_takes_as_long_as_its_tokens_do():
    clock = Clock()

    assert begins(rate(clock, tokens=60_000), clock, [1000, 3000, 500]) == [1000.0, 1001.0, 1004.0]


def test_the_tighter_limit_counts():
    clock = Clock()

    assert begins(rate(clock, requests=60, tokens=60_000), clock, [10, 5000, 10]) == [1000.0, 1001.0, 1006.0]


def test_time_that_was_not_used_is_not_saved_up():
    clock = Clock()
    limits = rate(clock, requests=60)
    limits.wait(1)
    clock.seconds += 600

    assert begins(limits, clock, [1, 1]) == [1600.0, 1601.0]


def test_a_hold_lets_nobody_begin_before_its_end_and_a_shorter_one_does_not_shorten_it():
    clock = Clock()
    limits = rate(clock)
    limits.hold(30)
    limits.hold(5)

    assert begins(limits, clock, [1, 1]) == [1030.0, 1030.0]


@given(
    requests=st.integers(1, 50),
    tokens=st.integers(1000, 50_000),
    sizes=st.lists(st.integers(1, 1000), min_size=2, max_size=80),
)
def test_no_minute_holds_more_than_is_allowed(requests, tokens, sizes):
    clock = Clock()
    times = begins(rate(clock, requests, tokens), clock, sizes)

    for at, start in enumerate(times):
        within = [size for time, size in zip(times[at:], sizes[at:], strict=True) if time < start + 60 - 1e-6]
        assert len(within) <= requests
        assert sum(within) - within[-1] <= tokens
