"""Server-sent events as they come, whose first one decides whether the answer is a stream or a problem."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from fastapi.sse import format_sse_event

if TYPE_CHECKING:
    from starlette.types import Send

MEDIA_TYPE = "text/event-stream"
_JSON = "application/json"
_BEAT_S = 10.0
_BEAT = format_sse_event(comment="the answer is being written")
_HEADERS = [
    (b"content-type", f"{MEDIA_TYPE}; charset=utf-8".encode()),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # a proxy that holds events back
]


def is_wanted(accept: str) -> bool:
    """Whether a client would rather have events than JSON: it names them first."""
    named = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    return next((name for name in named if name in {MEDIA_TYPE, _JSON}), _JSON) == MEDIA_TYPE


async def send_events(events: AsyncGenerator[bytes, None], failed: Callable[[Exception], bytes], send: "Send") -> None:
    """Send events, with a comment now and then, so that no proxy takes the connection for a dead one.

    Args:
        events: as they are written; they are closed with this.
        failed: the last event where an error ended them.
        send: to the client.

    Raises:
        Exception: that came before the first event; nothing has been sent.
    """

    async def write(piece: bytes, *, is_last: bool = False) -> None:
        await send({"type": "http.response.body", "body": piece, "more_body": not is_last})

    async def beat() -> None:
        while True:
            await asyncio.sleep(_BEAT_S)
            await write(_BEAT)

    async with aclosing(events):
        first = await anext(events, b"")
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        beating = asyncio.create_task(beat())
        try:
            await write(first)
            async for event in events:
                await write(event)
        except Exception as error:  # noqa: BLE001 whatever it is, the status has been sent
            await write(failed(error))
        finally:
            beating.cancel()
        await write(b"", is_last=True)
