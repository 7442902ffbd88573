"""Answers that end when their client leaves: what it asked for is worth no more work.

Of server-sent events, the first one decides whether the answer is a stream or a problem.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import asdict
from threading import Event
from typing import TYPE_CHECKING, Any, Protocol

from fastapi import Request, Response
from fastapi.sse import format_sse_event

from docindex_dagster.search import cancellation

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

MEDIA_TYPE = "text/event-stream"
_JSON = "application/json"
_BEAT_S = 10.0
_BEAT = format_sse_event(comment="the answer is being written")
_HEADERS = [
    (b"content-type", f"{MEDIA_TYPE}; charset=utf-8".encode()),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # a proxy that holds events back
]


def wants_events(accept: str) -> bool:
    """Whether a client would rather have events than JSON: it names them first."""
    named = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    return next((name for name in named if name in {MEDIA_TYPE, _JSON}), _JSON) == MEDIA_TYPE


class Exchange(Protocol):
    """A question that is answered whole, as a data class, or by events while it is answered."""

    async def whole(self) -> Any:
        """All of it, at its end."""

    def streamed(self) -> AsyncGenerator[bytes, None]:
        """The events as they are sent."""


async def until_it_leaves(request: Request) -> AsyncIterator[None]:
    """A dependency of routes that may search for long: the search ends when its client is gone."""
    has_left = Event()

    async def watch() -> None:
        await _leaving(request.receive)
        has_left.set()

    watching = asyncio.create_task(watch())
    try:
        with cancellation.until(has_left.is_set):
            yield
    finally:
        watching.cancel()


class WhileItStays(Response):
    """Is answered by an exchange, which is cancelled at once when its client leaves. So is what it searches for."""

    def __init__(self, exchange: Exchange, failed: Callable[[Exception], bytes], *, is_streamed: bool) -> None:
        """Answer with a stream, or else with JSON; an error before anything is sent becomes a problem.

        Args:
            exchange: what is answered.
            failed: the last event of a stream where an error ended it.
            is_streamed: whether events are sent.
        """
        super().__init__()
        self._exchange, self._failed, self._is_streamed = exchange, failed, is_streamed

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a client."""
        has_left = Event()
        with cancellation.until(has_left.is_set):
            answering = asyncio.create_task(
                self._send_events(send) if self._is_streamed else self._send_whole(scope, receive, send)
            )
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

    async def _send_whole(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        await Response(as_json(await self._exchange.whole()), media_type=_JSON)(scope, receive, send)

    async def _send_events(self, send: "Send") -> None:
        """Send events, with a comment now and then, so that no proxy takes the connection for a dead one."""

        async def write(piece: bytes, *, is_last: bool = False) -> None:
            await send({"type": "http.response.body", "body": piece, "more_body": not is_last})

        async def beat() -> None:
            while True:
                await asyncio.sleep(_BEAT_S)
                await write(_BEAT)

        async with aclosing(self._exchange.streamed()) as events:
            first = await anext(events, b"")
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            beating = asyncio.create_task(beat())
            try:
                await write(first)
                async for event in events:
                    await write(event)
            except Exception as error:  # noqa: BLE001 whatever it is, the status has been sent
                await write(self._failed(error))
            finally:
                beating.cancel()
            await write(b"", is_last=True)


def as_json(data: Any) -> bytes:
    """JSON in UTF-8. A model may write half a character, which stands for nothing."""
    return json.dumps(asdict(data), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


async def _leaving(receive: Callable[[], Awaitable[Any]]) -> None:
    """Wait until a client leaves, whose request has been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
