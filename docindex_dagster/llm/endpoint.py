"""Endpoint of a language model's API: what its failures mean, and which of them are transient.

Messages of clients and servers may repeat the prompt or the key, so errors report only the status.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from docindex_dagster.core.errors import (
    LLMError,
    LLMFailedError,
    LLMInvalidResponseError,
    LLMKeyError,
    LLMLimitError,
    LLMTimeoutError,
    LLMTruncatedError,
    LLMUnreachableError,
)
from docindex_dagster.core.retry import Retry, retry_after_s
from docindex_dagster.llm.chat import Availability, Delta, Item, Stream

OUR_KEY = "DOCINDEX_LLM__API_KEY"
_MAX_BACKOFF_S = 8.0
_MAX_RETRY_AFTER_S = 60.0  # give up if the server asks for a longer wait
_TRANSIENT_ERRORS = (LLMUnreachableError, LLMFailedError, LLMTruncatedError)
_TRANSIENT_STATUSES = {408, 409}
_SERVER_ERROR = 500
_REASONS = {
    400: "it rejected the request; see llm.model",
    404: "path or model not found; see llm.base_url and llm.model",
}
LONGEST_S = 10.0
"""Time limit of a check, in seconds."""
_MOST_CHARS = 4 << 20  # per answer, because a server may send forever


def is_passing(error: BaseException) -> bool:
    """Return whether another attempt may succeed. Timeouts do not count, because they already took the full time."""
    return isinstance(error, _TRANSIENT_ERRORS)


def requested_wait_s(error: BaseException) -> float | None:
    """Return how many seconds the server asked to wait; None if it did not ask."""
    return error.retry_after_s if isinstance(error, LLMFailedError) else None


def retry_policy(retries: int) -> Retry:
    """Return the retry policy for a number of retries."""
    return Retry(retries, longest_wait_s=_MAX_BACKOFF_S, max_requested_wait_s=_MAX_RETRY_AFTER_S)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address of a model, with its timeout and number of retries.

    Attributes:
        host: the host, as shown in messages.
        key_variable: the environment variable that holds the key.
        timeout_s: the timeout of one answer.
        retries: attempts after the first.
    """

    host: str
    key_variable: str
    timeout_s: float
    retries: int

    def unreadable(self, error: Exception) -> LLMError:
        """Return the LLMError for an error raised while an answer was read."""
        if isinstance(error, LLMError):
            return error
        return self.invalid_answer() if isinstance(error, ValueError) else self.broke_off(type(error).__name__)

    def refusal(self, status: int, headers: Mapping[str, str]) -> LLMError:
        """Return the error for an HTTP status other than success."""
        prefix = f"{self.host} answered {status}: "
        if status in {401, 403}:
            return LLMKeyError(f"{prefix}it rejected the key in {self.key_variable}")
        if status == 429:  # noqa: PLR2004 a status of HTTP
            reason = "rate limit reached, or quota used up; see llm.concurrency"
            return LLMLimitError(prefix + reason, retry_after_s(headers))
        if status in _TRANSIENT_STATUSES or status >= _SERVER_ERROR:
            return LLMFailedError(f"{prefix}the server failed", retry_after_s(headers))
        return LLMError(prefix + _REASONS.get(status, "the request failed"))

    def timed_out(self) -> LLMTimeoutError:
        """Return the error for an answer that took too long."""
        return LLMTimeoutError(f"{self.host} did not answer within {self.timeout_s:g} s (llm.timeout_s)")

    def unreachable(self) -> LLMUnreachableError:
        """Return the error for a connection that failed, or that broke before the answer began."""
        return LLMUnreachableError(f"{self.host} cannot be reached; see llm.base_url")

    def broke_off(self, why: str) -> LLMTruncatedError:
        """Return the error for an answer that broke off."""
        return LLMTruncatedError(f"the answer from {self.host} broke off ({why})")

    def invalid_answer(self) -> LLMInvalidResponseError:
        """Return the error for a response that does not follow the API."""
        return LLMInvalidResponseError(f"invalid completion from {self.host}; see llm.provider and llm.base_url")


def unavailable(problem: str, model: str | None) -> Availability:
    """Return the availability of a model whose settings are incomplete or whose package is missing."""
    return Availability(is_configured=False, model=model, problem=problem)


async def checked(probe: Callable[[], Awaitable[tuple[str | None, str]]], model: str | None) -> Availability:
    """Return the availability that a request shows.

    Args:
        probe: sends the request; returns the server's version and any problem with the model; raises LLMErrors.
        model: the name of the model.
    """
    is_reachable, is_logged_in, version = True, None, None
    try:
        async with asyncio.timeout(LONGEST_S):
            version, problem = await probe()
        is_logged_in = True
    except TimeoutError:
        is_reachable, problem = False, f"no answer within {LONGEST_S:g} s; see llm.base_url"
    except LLMError as error:
        is_reachable, problem = not isinstance(error, (LLMUnreachableError, LLMTimeoutError)), str(error)
        is_logged_in = False if isinstance(error, LLMKeyError) else None
    return Availability(
        is_configured=True,
        is_reachable=is_reachable,
        is_logged_in=is_logged_in,
        version=version,
        model=model,
        problem=problem,
    )


async def streamed(attempt: Callable[[], Stream], endpoint: Endpoint) -> Stream:
    """Yield the items of the first attempt that produces any.

    Args:
        attempt: sends a request when its first item is requested, ends it when closed, and raises LLMErrors.
        endpoint: the endpoint whose timeout and number of retries apply.

    Raises:
        LLMError: no attempt produced an item, or the successful one failed later.
    """

    async def start() -> tuple[Item, Stream]:
        items = _with_timeout(attempt(), endpoint)
        try:
            return await anext(items), items
        except StopAsyncIteration:
            raise endpoint.invalid_answer() from None
        except BaseException:
            await items.aclose()
            raise

    first, items = await retry_policy(endpoint.retries).call_async(start, is_passing, requested_wait_s)
    async with aclosing(items):
        yield first
        async for item in items:
            yield item


async def _with_timeout(items: Stream, endpoint: Endpoint) -> Stream:
    """Yield the items until the timeout. Only the time spent waiting for the server counts, not the reader's.

    The timeouts of HTTP libraries apply to single reads, so a server that trickles bytes would never hit one.
    """
    left_s, left_chars = endpoint.timeout_s, _MOST_CHARS
    async with aclosing(items):
        while True:
            started = time.monotonic()
            try:
                async with asyncio.timeout(left_s):
                    item = await anext(items)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise endpoint.timed_out() from None
            left_s -= time.monotonic() - started
            left_chars -= len(item.text) if isinstance(item, Delta) else 0
            if left_chars < 0:
                raise LLMInvalidResponseError(f"{endpoint.host} answered more than {_MOST_CHARS:,} characters")
            yield item
