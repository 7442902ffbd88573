"""Retries of operations that may fail temporarily.

Built on tenacity. The caller decides which errors are transient, and what wait a server requested.
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
    """Retry policy with exponential backoff.

    Waits double from one attempt to the next. Each is randomly shortened by up to half, so that clients that failed
    together do not retry together.

    Attributes:
        retries: The number of attempts after the first.
        first_wait_s: The wait before the second attempt, in seconds.
        longest_wait_s: The longest backoff, in seconds; waits that a server requests may be longer.
        max_requested_wait_s: The longest server-requested wait, in seconds. If a server requests more, the call fails.
    """

    retries: int
    first_wait_s: float = 0.5
    longest_wait_s: float = 60.0
    max_requested_wait_s: float = 600.0

    def call(
        self,
        attempt: Callable[[], T],
        is_transient: Callable[[BaseException], bool],
        requested_wait_s: Callable[[BaseException], float | None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> T:
        """Return the result of the first successful attempt.

        Args:
            attempt: Performs the operation.
            is_transient: Returns whether an error is transient.
            requested_wait_s: Returns the wait that the server requested, in seconds; None if it requested none.
            sleep: Waits for a number of seconds.

        Raises:
            Exception: The error of the last attempt.
        """
        from tenacity import Retrying

        return Retrying(**self._policy(is_transient, requested_wait_s), sleep=sleep)(attempt)

    async def call_async(
        self,
        attempt: Callable[[], Awaitable[T]],
        is_transient: Callable[[BaseException], bool],
        requested_wait_s: Callable[[BaseException], float | None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> T:
        """Async version of `call`. A cancellation takes effect immediately, during an attempt or a wait.

        Raises:
            Exception: The error of the last attempt.
        """
        from tenacity import AsyncRetrying

        return await AsyncRetrying(**self._policy(is_transient, requested_wait_s), sleep=sleep)(attempt)

    def _policy(
        self, is_transient: Callable[[BaseException], bool], requested_wait_s: Callable[[BaseException], float | None]
    ) -> dict[str, Any]:
        """Return the arguments for tenacity."""
        from tenacity import retry_if_exception, stop_after_attempt

        def is_worth_it(error: BaseException) -> bool:
            # Interrupts and cancellations are not retried.
            is_error = isinstance(error, Exception)
            return is_error and is_transient(error) and (requested_wait_s(error) or 0.0) <= self.max_requested_wait_s

        def wait_s(state: "RetryCallState") -> float:
            error = state.outcome.exception() if state.outcome else None
            requested = None if error is None else requested_wait_s(error)
            return self._backoff_s(state.attempt_number) if requested is None else requested

        return {
            "retry": retry_if_exception(is_worth_it),
            "stop": stop_after_attempt(self.retries + 1),
            "wait": wait_s,
            "reraise": True,
        }

    def _backoff_s(self, attempt: int) -> float:
        longest = min(self.first_wait_s * 2.0 ** (attempt - 1), self.longest_wait_s)
        return random.uniform(longest / 2, longest)  # noqa: S311 not cryptographic


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the wait in seconds from `Retry-After` (RFC 9110: a number or a date) or `Retry-After-Ms`.

    None if neither header is present and valid.
    """
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        with suppress(ValueError):
            seconds = float(headers.get(name, "")) * unit
            return seconds if seconds >= 0 else None  # also rejects NaN
    try:
        until = parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, (until - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, OverflowError):  # missing, or not a date
        return None
