"""Clients that leave before they are answered: what they asked for is worth no more work."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from threading import Event
from typing import TYPE_CHECKING, Any

from fastapi import Request, Response

from docindex_dagster.search import patience

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


async def until_it_leaves(request: Request) -> AsyncIterator[None]:
    """A dependency of routes that may search for long: the search ends when its client is gone."""
    has_left = Event()

    async def watch() -> None:
        await _leaving(request.receive)
        has_left.set()

    watching = asyncio.create_task(watch())
    try:
        with patience.until(has_left.is_set):
            yield
    finally:
        watching.cancel()


class WhileItStays(Response):
    """Is answered by a coroutine, which is cancelled at once when its client leaves. So is what it searches for."""

    def __init__(self, answer: Callable[["Send"], Coroutine[Any, Any, None]]) -> None:
        """Answer by what sends the messages of ASGI; an error before the first of them becomes a problem."""
        super().__init__()
        self._answer = answer

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:  # noqa: ARG002 of ASGI
        """Answer a client."""
        has_left = Event()
        with patience.until(has_left.is_set):
            answering = asyncio.create_task(self._answer(send))
        leaving = asyncio.create_task(_leaving(receive))
        try:
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not answering.done():
                has_left.set()
                answering.cancel()
            leaving.cancel()
            await asyncio.gather(answering, leaving, return_exceptions=True)
        if not answering.cancelled():
            answering.result()


async def _leaving(receive: Callable[[], Awaitable[Any]]) -> None:
    """Wait until a client leaves, whose request has been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
