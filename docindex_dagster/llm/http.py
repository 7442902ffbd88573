"""Requests to an endpoint of a language model, whose answers are read as they come; no redirect is followed."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from docindex_dagster.core.printable import well_formed_json
from docindex_dagster.llm.endpoint import Endpoint

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

OK, BAD_REQUEST, NOT_FOUND = 200, 400, 404
MOST_BYTES = 4 << 20
"""Of a line or an event of an answer, or of one that is read whole."""
_LONGEST_END_S = 0.5


@dataclass(slots=True, eq=False)
class Http:
    """Connections to one endpoint, which requests share.

    Attributes:
        url: that paths are put behind.
        headers: of all requests.
        endpoint: says what failures mean, and how long to wait.
    """

    url: str
    headers: Mapping[str, str] = field(repr=False)  # with the key
    endpoint: Endpoint
    _client: "AsyncClient | None" = field(default=None, init=False, repr=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    @asynccontextmanager
    async def asked(self, method: str, path: str, content: object = None) -> AsyncIterator["Response"]:
        """An answer, whatever its status, that can be read until the block ends.

        Raises:
            LLMTimeoutError: there was none in time.
            LLMUnreachableError: no connection was made, or none that held until the answer began.
            LLMError: it could not be read in the block; of a subclass by what happened.
        """
        response = await self._sent(method, path, content)
        try:
            yield response
        except Exception as error:  # noqa: BLE001 the library's own errors, and those of what it stands on
            raise self.endpoint.unreadable(error) from None
        finally:
            await response.aclose()

    def accept(self, response: "Response") -> None:
        """Refuse an answer of any other status than OK.

        Raises:
            LLMError: of a subclass by the status.
        """
        if response.status_code != OK:
            raise self.endpoint.refusal(response.status_code, response.headers)

    def prepare(self) -> None:
        """Load the library, and the certificates that are trusted: a tenth of a second each."""
        with self._lock:
            if self._client is None:
                import httpx2

                timeout_s = self.endpoint.timeout_s
                self._client = httpx2.AsyncClient(headers=self.headers, timeout=timeout_s, follow_redirects=False)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    async def _sent(self, method: str, path: str, content: object) -> "Response":
        import httpx2

        self.prepare()
        assert self._client is not None  # noqa: S101 it is prepared
        try:
            request = self._client.build_request(method, self.url.rstrip("/") + path, json=content)
            return await self._client.send(request, stream=True)
        except httpx2.TimeoutException:
            raise self.endpoint.late() from None
        except Exception:  # noqa: BLE001 the library's own errors, and those of what it stands on
            raise self.endpoint.unreachable() from None


async def body_of(response: "Response") -> bytes:
    """All of an answer.

    Raises:
        ValueError: it is longer than any should be.
    """
    body = b""
    async for block in response.aiter_bytes():
        body += block
        if len(body) > MOST_BYTES:
            raise ValueError("too long")
    return body


async def lines_of(response: "Response") -> AsyncGenerator[bytes, None]:
    """The lines of an answer of JSON that are not blank, as they come.

    Raises:
        ValueError: one is longer than any should be.
    """
    rest = b""
    async for block in response.aiter_bytes():
        *lines, rest = (rest + block).split(b"\n")
        if len(rest) > MOST_BYTES:
            raise ValueError("too long")
        for line in lines:
            if line.strip():
                yield well_formed_json(line)
    if rest.strip():
        yield well_formed_json(rest)


async def events_of(response: "Response") -> AsyncGenerator[bytes, None]:
    """Yield the data of server-sent events as they come, or the whole body of an answer of another type.

    Raises:
        ValueError: invalid stream of events, or one of them is too long.
    """
    from httpx2 import EventSource, SSEError

    if "text/event-stream" not in response.headers.get("Content-Type", "").lower():
        yield well_formed_json(await body_of(response))
        return
    try:
        async for event in EventSource(response, MOST_BYTES):
            yield well_formed_json(event.data.encode())
    except SSEError as error:
        raise ValueError(str(error)) from error


async def drain(events: AsyncGenerator[bytes, None]) -> None:
    """Read the rest of a stream for a moment, since a connection is reused only after its answer was read whole."""
    with suppress(Exception):
        async with asyncio.timeout(_LONGEST_END_S):
            async for _ in events:
                pass
