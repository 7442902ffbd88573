"""An API of a language model: what its failures mean, and which of them may pass.

What a client or server says may repeat what was sent, and the key, so nothing of it is reported but the status.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from docindex_dagster.core.errors import (
    LLMBrokenError,
    LLMError,
    LLMFailedError,
    LLMKeyError,
    LLMLimitError,
    LLMNonsenseError,
    LLMTimeoutError,
    LLMUnreachableError,
)
from docindex_dagster.core.retry import Retry, retry_after_s
from docindex_dagster.llm.chat import Availability, Delta, Item, Stream

OUR_KEY = "DOCINDEX_LLM__API_KEY"
_LONGEST_WAIT_S = 8.0
_LONGEST_ASKED_S = 60.0  # a server that asks for a longer wait is not waited for
_PASSING_ERRORS = (LLMUnreachableError, LLMFailedError, LLMBrokenError)
_PASSING_STATUSES = {408, 409}
_SERVER_ERROR = 500
_REASONS = {
    400: "it refuses the request; see llm.model",
    404: "there is no such path or model; see llm.base_url and llm.model",
}
LONGEST_S = 10.0
"""How long a check may take, in seconds."""
_MOST_CHARS = 4 << 20  # of an answer: a server may send for ever


def is_passing(error: BaseException) -> bool:
    """Whether another attempt may succeed; one that took all its time has taken long enough."""
    return isinstance(error, _PASSING_ERRORS)


def asked_s(error: BaseException) -> float | None:
    """How many seconds the server asked to wait; None where it did not."""
    return error.retry_after_s if isinstance(error, LLMFailedError) else None


def retry_policy(retries: int) -> Retry:
    """Return how long to wait before each of so many retries."""
    return Retry(retries, longest_wait_s=_LONGEST_WAIT_S, longest_asked_s=_LONGEST_ASKED_S)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is asked, and how patient to be with it.

    Attributes:
        host: as messages call it.
        key_variable: where its key is looked for.
        timeout_s: for one answer.
        retries: attempts after the first.
    """

    host: str
    key_variable: str
    timeout_s: float
    retries: int

    def unreadable(self, error: Exception) -> LLMError:
        """What an error means that came while an answer was read."""
        if isinstance(error, LLMError):
            return error
        return self.nonsense() if isinstance(error, ValueError) else self.broken(type(error).__name__)

    def refusal(self, status: int, headers: Mapping[str, str]) -> LLMError:
        """What a status means that is not of success."""
        answered = f"{self.host} answered {status}: "
        if status in {401, 403}:
            return LLMKeyError(f"{answered}it does not accept the key in {self.key_variable}")
        if status == 429:  # noqa: PLR2004 a status of HTTP
            reason = "it is asked too often, or the account is used up; see llm.concurrency"
            return LLMLimitError(answered + reason, retry_after_s(headers))
        if status in _PASSING_STATUSES or status >= _SERVER_ERROR:
            return LLMFailedError(f"{answered}it failed", retry_after_s(headers))
        return LLMError(answered + _REASONS.get(status, "it failed"))

    def late(self) -> LLMTimeoutError:
        """It took too long."""
        return LLMTimeoutError(f"{self.host} did not answer within {self.timeout_s:g} s (llm.timeout_s)")

    def unreachable(self) -> LLMUnreachableError:
        """No connection was made, or none that held until an answer."""
        return LLMUnreachableError(f"{self.host} cannot be reached; see llm.base_url")

    def broken(self, why: str) -> LLMBrokenError:
        """An answer ended before its end."""
        return LLMBrokenError(f"the answer of {self.host} broke off ({why})")

    def nonsense(self) -> LLMNonsenseError:
        """It is no API of a language model, or another one."""
        return LLMNonsenseError(f"{self.host} answered what is no completion; see llm.provider and llm.base_url")


def unset(problem: str, model: str | None) -> Availability:
    """Of a model that the settings, or what is installed, do not suffice for."""
    return Availability(is_configured=False, model=model, problem=problem)


async def checked(probe: Callable[[], Awaitable[tuple[str | None, str]]], model: str | None) -> Availability:
    """What a request shows.

    Args:
        probe: makes it, and gives the version of who answers, and what is wrong with the answer; it raises LLMErrors.
        model: the one that is asked.
    """
    is_reachable, is_logged_in, version = True, None, None
    try:
        async with asyncio.timeout(LONGEST_S):
            version, problem = await probe()
        is_logged_in = True
    except TimeoutError:
        is_reachable, problem = False, f"there is no answer within {LONGEST_S:g} s; see llm.base_url"
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
    """The items of the first attempt that gives one.

    Args:
        attempt: begins a request when its first item is asked for, ends it when it is closed, and raises LLMErrors.
        endpoint: says how long to wait, and how often to try again.

    Raises:
        LLMError: no attempt gave an item, or the one that did failed later.
    """

    async def begun() -> tuple[Item, Stream]:
        items = _within(attempt(), endpoint)
        try:
            return await anext(items), items
        except StopAsyncIteration:
            raise endpoint.nonsense() from None
        except BaseException:
            await items.aclose()
            raise

    first, items = await retry_policy(endpoint.retries).call_async(begun, is_passing, asked_s)
    async with aclosing(items):
        yield first
        async for item in items:
            yield item


async def _within(items: Stream, endpoint: Endpoint) -> Stream:
    """The items while they come in time. What counts is the time that is waited for them, not that of who reads them.

    The time-outs of HTTP libraries are for each step: a server that sends a byte now and then would never meet one.
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
                raise endpoint.late() from None
            left_s -= time.monotonic() - started
            left_chars -= len(item.text) if isinstance(item, Delta) else 0
            if left_chars < 0:
                raise LLMNonsenseError(f"{endpoint.host} answered more than {_MOST_CHARS:,} characters")
            yield item
