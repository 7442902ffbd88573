"""An answer as it is written: within a time limit, and from the beginning again where that may help."""

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing

from docindex_dagster.core.errors import LLMNonsenseError
from docindex_dagster.llm.chat import Delta, Item, Stream
from docindex_dagster.llm.endpoint import Endpoint, asked_s, is_passing, retry_policy

_MOST_CHARS = 4 << 20  # of an answer: a server may send for ever


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
