"""HTTP clients for chat models: requests to an endpoint, and its streamed answers.

Redirects are not followed. No vendor's library is used: `docindex ask` would wait a second for OpenAI's to load.
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
from docindex_dagster.llm.endpoint import OUR_KEY, Endpoint, checked, streamed, unset

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

OK, BAD_REQUEST, NOT_FOUND = 200, 400, 404
MOST_BYTES = 4 << 20
"""Of a line or an event of an answer, or of one that is read whole."""
_LONGEST_END_S = 0.5
_NO_KEY = "none"  # sent to other endpoints, most of which need none


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


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor of models: its API, and where its key comes from.

    Attributes:
        name: as messages call it.
        url: of the API; the variable `url_variable` overrides it, as in the vendor's library.
        key_variable: the vendor's own variable for the key; empty if no key is needed.
    """

    name: str
    url: str
    key_variable: str = ""
    url_variable: str = ""

    def place(self, settings: LLMSettings) -> tuple[str, Endpoint]:
        """Return the URL and the endpoint of a model."""
        url = settings.base_url or os.environ.get(self.url_variable) or self.url
        is_ours = settings.api_key or settings.base_url or not self.key_variable
        variable = OUR_KEY if is_ours else self.key_variable
        return url.rstrip("/"), Endpoint(urlsplit(url).hostname or "", variable, settings.timeout_s, settings.retries)

    def key(self, settings: LLMSettings) -> str:
        """Return the key to send, empty for none. A vendor's own key goes to that vendor alone, to no other endpoint.

        Raises:
            LLMKeyError: the vendor needs a key, and none is set.
        """
        if settings.api_key:
            return settings.api_key.get_secret_value()
        if not self.key_variable:
            return ""
        key = _NO_KEY if settings.base_url else os.environ.get(self.key_variable)
        if not key:
            raise LLMKeyError(f"{self.name} wants a key: set {OUR_KEY} or {self.key_variable}")
        return key


class HttpChat(ABC):
    """A model of a vendor, or of another endpoint that speaks its API; its streams share connections."""

    vendor: ClassVar[Vendor]
    endpoint: Endpoint  # once it is connected, as the URL

    def __init__(self, settings: LLMSettings) -> None:
        """Nothing is asked yet, and no key looked for."""
        self.settings = settings
        self._client: AsyncClient | None = None
        self._lock = Lock()

    @property
    def name(self) -> str:
        """Of the provider and the model."""
        return f"{self.settings.provider}/{self.settings.model}"

    @property
    def context_tokens(self) -> int | None:
        """As the settings say."""
        return self.settings.context_tokens

    @property
    def has_tools(self) -> bool:
        """Nearly all models do; one that does not refuses them."""
        return True

    async def stream(self, messages: Sequence[Message], tools: Sequence[Tool] = (), *, max_tokens: int) -> Stream:
        """Answer a conversation.

        Raises:
            LLMError: by what happened.
        """
        self._connect()
        attempts = streamed(lambda: self._attempt(messages, tools, max_tokens), self.endpoint)
        async with aclosing(attempts) as items:
            async for item in items:
                yield item

    async def check(self) -> Availability:
        """Make a request that costs nothing."""
        try:
            self._connect()
        except LLMError as error:
            return unset(str(error), self.settings.model)
        return await checked(self._probe, self.settings.model)

    def prepare(self) -> None:
        """Load what asking needs. Where no key is set, a question says so."""
        with suppress(LLMError):
            self._connect()

    async def aclose(self) -> None:
        """Close its connections."""
        if self._client is not None:
            await self._client.aclose()

    @asynccontextmanager
    async def asked(self, method: str, path: str, content: object = None) -> AsyncIterator["Response"]:
        """An answer, whatever its status, that can be read until the block ends.

        Raises:
            LLMKeyError: no key is set.
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

    async def _sent(self, method: str, path: str, content: object) -> "Response":
        import httpx2

        client = self._connect()
        try:
            return await client.send(client.build_request(method, self._url + path, json=content), stream=True)
        except httpx2.TimeoutException:
            raise self.endpoint.late() from None
        except Exception:  # noqa: BLE001 the library's own errors, and those of what it stands on
            raise self.endpoint.unreachable() from None

    def _connect(self) -> "AsyncClient":
        """Load the library, and the certificates that are trusted: a tenth of a second each."""
        with self._lock:
            if self._client is None:
                headers = self._headers(self.vendor.key(self.settings))
                self._url, self.endpoint = self.vendor.place(self.settings)
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
            LLMError: of a subclass by what happened.
        """

    @abstractmethod
    async def _probe(self) -> tuple[str | None, str]:
        """The version of who answers, and what is wrong with the model; it raises LLMErrors."""


def functions_of(tools: Sequence[Tool]) -> dict[str, Any]:
    """Return the parameter `tools` of OpenAI's API and Ollama's; nothing without tools."""
    offered = [
        {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)} for tool in tools
    ]
    return {"tools": [{"type": "function", "function": function} for function in offered]} if offered else {}


def calls_of(messages: Sequence[Message]) -> int:
    """Return the number of tool calls in a conversation, from which calls without an id are numbered."""
    return sum(len(message.tool_calls) for message in messages)
