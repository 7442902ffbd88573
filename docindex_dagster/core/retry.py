"""Trying again what may succeed the next time: how often, and after how long a wait.

The loop is tenacity's. Who calls knows which errors may pass, and what a server asked for.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from tenacity import RetryCallState

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Retry:
    """How patient to be.

    Waits double from the first one on. Each is by chance up to half shorter, so that clients that failed together do
    not try again together.

    Attributes:
        retries: attempts after the first.
        first_wait_s: before the second attempt, in seconds.
        longest_wait_s: of the waits that no server asked for.
        longest_asked_s: who asks to wait longer than this is asked no more.
    """

    retries: int
    first_wait_s: float = 0.5
    longest_wait_s: float = 60.0
    longest_asked_s: float = 600.0

    def call(
        self,
        attempt: Callable[[], T],
        is_passing: Callable[[BaseException], bool],
        asked_s: Callable[[BaseException], float | None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> T:
        """What an attempt returns, the first that succeeds.

        Args:
            attempt: does it.
            is_passing: whether another attempt may succeed after such an error.
            asked_s: how long the server asked to wait, in seconds; None where it did not.
            sleep: waits for so many seconds.

        Raises:
            Exception: what the last attempt raised.
        """
        from tenacity import Retrying

        return Retrying(**self._policy(is_passing, asked_s), sleep=sleep)(attempt)

    async def call_async(
        self,
        attempt: Callable[[], Awaitable[T]],
        is_passing: Callable[[BaseException], bool],
        asked_s: Callable[[BaseException], float | None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> T:
        """As `call`, of what is awaited. A cancellation ends it at once, in an attempt or in a wait.

        Raises:
            Exception: what the last attempt raised.
        """
        from tenacity import AsyncRetrying

        return await AsyncRetrying(**self._policy(is_passing, asked_s), sleep=sleep)(attempt)

    def _policy(
        self, is_passing: Callable[[BaseException], bool], asked_s: Callable[[BaseException], float | None]
    ) -> dict[str, Any]:
        """When to try again, and how long to wait before, as tenacity takes it."""
        from tenacity import retry_if_exception, stop_after_attempt

        def is_worth_it(error: BaseException) -> bool:
            # Who interrupts or cancels it wants no other attempt.
            is_error = isinstance(error, Exception)
            return is_error and is_passing(error) and (asked_s(error) or 0.0) <= self.longest_asked_s

        def wait_s(state: "RetryCallState") -> float:
            error = state.outcome.exception() if state.outcome else None
            asked = None if error is None else asked_s(error)
            return self._backoff_s(state.attempt_number) if asked is None else asked

        return {
            "retry": retry_if_exception(is_worth_it),
            "stop": stop_after_attempt(self.retries + 1),
            "wait": wait_s,
            "reraise": True,
        }

    def _backoff_s(self, attempt: int) -> float:
        longest = min(self.first_wait_s * 2.0 ** (attempt - 1), self.longest_wait_s)
        return random.uniform(longest / 2, longest)  # noqa: S311 no secret


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How many seconds a server asks to wait, by `Retry-After` (RFC 9110: a number or a date), or `Retry-After-Ms`.

    None where it does not, or says something else.
    """
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        with suppress(ValueError):
            seconds = float(headers.get(name, "")) * unit
            return seconds if seconds >= 0 else None  # nan is not
    try:
        until = parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, (until - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, OverflowError):  # none, or no date
        return None
