"""Clients that leave before they are answered: what they asked for is worth no more work."""

import asyncio
from collections.abc import AsyncIterator
from threading import Event

from fastapi import Request

from docindex_dagster.search import patience


async def until_it_leaves(request: Request) -> AsyncIterator[None]:
    """A dependency of routes that may search for long: the search ends when its client is gone."""
    has_left = Event()

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        has_left.set()

    watching = asyncio.create_task(watch())
    try:
        with patience.until(has_left.is_set):
            yield
    finally:
        watching.cancel()
