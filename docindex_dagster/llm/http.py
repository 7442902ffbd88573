"""HTTP clients for chat models: requests to an endpoint, and its streamed answers.

Redirects are not followed. Vendors' own libraries are not used, because OpenAI's alone takes a second to load.
"""

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from docindex_dagster.core.errors import LLMError, LLMKeyError
from docindex_dagster.core.safe_text import well_formed_json
from docindex_dagster.core.settings import LLMSettings
from docindex_dagster.llm.chat import Availability, Message, Stream, Tool
from docindex_dagster.llm.endpoint import OUR_KEY, Endpoint, checked, streamed, unavailable

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

OK, BAD_REQUEST, NOT_FOUND = 200, 400, 404
MOST_BYTES = 4 << 20
"""Size limit of a line, of an event, or of a response that is read as one."""
_DRAIN_TIMEOUT_S = 0.5
_NO_KEY = "none"  # placeholder for other endpoints, most of which need no key


async def body_of(response: "Response") -> bytes:
    """Return the body of a response.

    Raises:
        ValueError: the body exceeds the size limit.
    """
    body = b""
    async for block in response.aiter_bytes():
        body += block
        if len(body) > MOST_BYTES:
            raise ValueError("too long")
    return body


async def lines_of(response: "Response") -> AsyncGenerator[bytes, None]:
    """Yield the non-blank lines of a JSON Lines response as they arrive.

    Raises:
        ValueError: a line exceeds the size limit.
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
    """Yield the data of server-sent events as they arrive, or the body of a response of another type.

    Raises:
        ValueError: invalid event stream, or an event exceeds the size limit.
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
    """Briefly read the rest of a stream, since a connection can be reused only after its response was read fully."""
    with suppress(Exception):
        async with asyncio.timeout(_DRAIN_TIMEOUT_S):
            async for _ in events:
                pass


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor of models, with its API and the source of its key.

    Attributes:
        name: the name shown in messages.
        url: the URL of the API; the variable `url_variable` overrides it, as in the vendor's library.
        key_variable: the vendor's own variable for the key; empty if no key is needed.
    """

    name: str
    url: str
    key_variable: str = ""
    url_variable: str = ""

    def locate(self, settings: LLMSettings) -> tuple[str, Endpoint]:
        """Return the URL and the endpoint of a model."""
        url = settings.base_url or os.environ.get(self.url_variable) or self.url
        is_ours = settings.api_key or settings.base_url or not self.key_variable
        variable = OUR_KEY if is_ours else self.key_variable
        return url.rstrip("/"), Endpoint(urlsplit(url).hostname or "", variable, settings.timeout_s, settings.retries)

    def key(self, settings: LLMSettings) -> str:
        """Return the key to send, or an empty string. A vendor's own key is sent only to that vendor.

        Raises:
            LLMKeyError: the vendor requires a key, and none is set.
        """
        if settings.api_key:
            return settings.api_key.get_secret_value()
        if not self.key_variable:
            return ""
        key = _NO_KEY if settings.base_url else os.environ.get(self.key_variable)
        if not key:
            raise LLMKeyError(f"{self.name} requires a key: set {OUR_KEY} or {self.key_variable}")
        return key


class HttpChat(ABC):
    """Chat client for a vendor's API, at the vendor or at a compatible endpoint. Streams share connections."""

    vendor: ClassVar[Vendor]
    endpoint: Endpoint  # set by _connect, like _url

    def __init__(self, settings: LLMSettings) -> None:
        """Store the settings. The client connects and looks up the key later."""
        self.settings = settings
        self._client: AsyncClient | None = None
        self._lock = Lock()

    @property
    def name(self) -> str:
        """The provider and the model."""
        return f"{self.settings.provider}/{self.settings.model}"

    @property
    def context_tokens(self) -> int | None:
        """The window size from the settings."""
        return self.settings.context_tokens

    @property
    def has_tools(self) -> bool:
        """True: nearly all models support tools, and the others reject the request."""
        return True

    async def stream(self, messages: Sequence[Message], tools: Sequence[Tool] = (), *, max_tokens: int) -> Stream:
        """Answer a conversation.

        Raises:
            LLMError: the request failed; the subclass names the kind of failure.
        """
        self._connect()
        attempts = streamed(lambda: self._attempt(messages, tools, max_tokens), self.endpoint)
        async with aclosing(attempts) as items:
            async for item in items:
                yield item

    async def check(self) -> Availability:
        """Check the model with a request that costs nothing."""
        try:
            self._connect()
        except LLMError as error:
            return unavailable(str(error), self.settings.model)
        return await checked(self._probe, self.settings.model)

    def prepare(self) -> None:
        """Load the library and the key. A missing key is reported by the first question instead."""
        with suppress(LLMError):
            self._connect()

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    @asynccontextmanager
    async def request(self, method: str, path: str, content: object = None) -> AsyncIterator["Response"]:
        """Send a request and yield the response, whatever its status, for reading within the block.

        Raises:
            LLMKeyError: no key is set.
            LLMTimeoutError: no response in time.
            LLMUnreachableError: the connection failed, or broke before the response began.
            LLMError: the block could not read the response; the subclass names the kind of failure.
        """
        response = await self._send(method, path, content)
        try:
            yield response
        except Exception as error:  # noqa: BLE001 raised by the library or its dependencies
            raise self.endpoint.unreadable(error) from None
        finally:
            await response.aclose()

    def accept(self, response: "Response") -> None:
        """Raise an error unless the status of the response is OK.

        Raises:
            LLMError: any other status; the subclass depends on it.
        """
        if response.status_code != OK:
            raise self.endpoint.refusal(response.status_code, response.headers)

    async def _send(self, method: str, path: str, content: object) -> "Response":
        import httpx2

        client = self._connect()
        try:
            return await client.send(client.build_request(method, self._url + path, json=content), stream=True)
        except httpx2.TimeoutException:
            raise self.endpoint.timed_out() from None
        except Exception:  # noqa: BLE001 raised by the library or its dependencies
            raise self.endpoint.unreachable() from None

    def _connect(self) -> "AsyncClient":
        """Return the client, which is created once: its library and the CA certificates take 0.1 s each to load."""
        with self._lock:
            if self._client is None:
                headers = self._headers(self.vendor.key(self.settings))
                self._url, self.endpoint = self.vendor.locate(self.settings)
                import httpx2

                timeout_s = self.endpoint.timeout_s
                self._client = httpx2.AsyncClient(headers=headers, timeout=timeout_s, follow_redirects=False)
            return self._client

    def _headers(self, key: str) -> Mapping[str, str]:
        """Return the headers of all requests."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    @abstractmethod
    def _attempt(self, messages: Sequence[Message], tools: Sequence[Tool], max_tokens: int) -> Stream:
        """Yield the items of one request's answer.

        Raises:
            LLMError: the request failed; the subclass names the kind of failure.
        """

    @abstractmethod
    async def _probe(self) -> tuple[str | None, str]:
        """Return the server's version and any problem with the model. Raises LLMErrors."""


def functions_of(tools: Sequence[Tool]) -> dict[str, Any]:
    """Return the `tools` parameter of OpenAI's and Ollama's API; empty without tools."""
    definitions = [
        {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)} for tool in tools
    ]
    return {"tools": [{"type": "function", "function": function} for function in definitions]} if definitions else {}


def calls_of(messages: Sequence[Message]) -> int:
    """Return the number of tool calls in a conversation. Calls without an id are numbered from there."""
    return sum(len(message.tool_calls) for message in messages)
