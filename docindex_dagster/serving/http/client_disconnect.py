"""Responses that stop their work when the client disconnects.

For server-sent events, the first event decides whether the response is a stream or a problem.
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
_KEEPALIVE_S = 10.0
_KEEPALIVE = format_sse_event(comment="the answer is being written")
_HEADERS = [
    (b"content-type", f"{MEDIA_TYPE}; charset=utf-8".encode()),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # for proxies that buffer responses
]


def wants_events(accept: str) -> bool:
    """Return whether a client prefers events to JSON, that is, lists them first."""
    types = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    return next((name for name in types if name in {MEDIA_TYPE, _JSON}), _JSON) == MEDIA_TYPE


class Exchange(Protocol):
    """A question that is answered completely, as a data class, or by events while it is answered."""

    async def complete(self) -> Any:
        """Return the complete result at the end."""

    def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield the events in the form sent to the client."""


async def cancel_on_disconnect(request: Request) -> AsyncIterator[None]:
    """Dependency of routes with slow searches: cancel the search when the client disconnects."""
    is_disconnected = Event()

    async def watch() -> None:
        await _wait_for_disconnect(request.receive)
        is_disconnected.set()

    watching = asyncio.create_task(watch())
    try:
        with cancellation.cancel_when(is_disconnected.is_set):
            yield
    finally:
        watching.cancel()


class CancelableResponse(Response):
    """Response of an exchange. A disconnect of the client immediately cancels the exchange and its searches."""

    def __init__(self, exchange: Exchange, failed: Callable[[Exception], bytes], *, is_streamed: bool) -> None:
        """Create a response. An error before the first byte becomes a problem.

        Args:
            exchange: the exchange to run.
            failed: returns the last event of a stream that an error ended.
            is_streamed: whether to send events instead of JSON.
        """
        super().__init__()
        self._exchange, self._failed, self._is_streamed = exchange, failed, is_streamed

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Run the exchange and send the response."""
        is_disconnected = Event()
        with cancellation.cancel_when(is_disconnected.is_set):
            answering = asyncio.create_task(
                self._send_events(send) if self._is_streamed else self._send_complete(scope, receive, send)
            )
        disconnecting = asyncio.create_task(_wait_for_disconnect(receive))
        try:
            await asyncio.wait((answering, disconnecting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not answering.done():
                is_disconnected.set()
                answering.cancel()
            disconnecting.cancel()
            await asyncio.gather(answering, disconnecting, return_exceptions=True)
        if not answering.cancelled():
            answering.result()

    async def _send_complete(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        await Response(as_json(await self._exchange.complete()), media_type=_JSON)(scope, receive, send)

    async def _send_events(self, send: "Send") -> None:
        """Send events, with a comment from time to time so that proxies do not close the connection as idle."""

        async def write(piece: bytes, *, is_last: bool = False) -> None:
            await send({"type": "http.response.body", "body": piece, "more_body": not is_last})

        async def keep_alive() -> None:
            while True:
                await asyncio.sleep(_KEEPALIVE_S)
                await write(_KEEPALIVE)

        async with aclosing(self._exchange.stream()) as events:
            first = await anext(events, b"")
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            keeping_alive = asyncio.create_task(keep_alive())
            try:
                await write(first)
                async for event in events:
                    await write(event)
            except Exception as error:  # noqa: BLE001 the status has already been sent
                await write(self._failed(error))
            finally:
                keeping_alive.cancel()
            await write(b"", is_last=True)


def as_json(data: Any) -> bytes:
    """Serialize to JSON in UTF-8. Unpaired surrogates, which a model may write, are replaced."""
    return json.dumps(asdict(data), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


async def _wait_for_disconnect(receive: Callable[[], Awaitable[Any]]) -> None:
    """Wait until the client disconnects. Its request must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
