"""Base class of the models that chat over HTTP: one model, one endpoint, shared connections.

It uses no vendor's library: OpenAI's takes a second to load, which `docindex ask` would wait for.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

from docindex_dagster.core.errors import LLMError, LLMKeyError
from docindex_dagster.core.settings import LLMSettings
from docindex_dagster.llm.chat import Availability, Message, Stream, Tool
from docindex_dagster.llm.endpoint import OUR_KEY, Endpoint, checked, streamed, unset
from docindex_dagster.llm.http import Http

_NO_KEY = "none"  # sent to other endpoints, most of which need none


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

    def connection(self, settings: LLMSettings) -> tuple[str, str, Endpoint]:
        """Return the URL, the key (empty for none) and the endpoint of a model.

        Raises:
            LLMKeyError: the vendor needs a key, and none is set.
        """
        url = settings.base_url or os.environ.get(self.url_variable) or self.url
        is_ours = settings.api_key or settings.base_url or not self.key_variable
        variable = OUR_KEY if is_ours else self.key_variable
        endpoint = Endpoint(urlsplit(url).hostname or "", variable, settings.timeout_s, settings.retries)
        return url, self._key(settings), endpoint

    def _key(self, settings: LLMSettings) -> str:
        """Return the key to send. A vendor's own key goes to that vendor alone, never to another endpoint."""
        if settings.api_key:
            return settings.api_key.get_secret_value()
        if not self.key_variable:
            return ""
        key = _NO_KEY if settings.base_url else os.environ.get(self.key_variable)
        if not key:
            raise LLMKeyError(f"{self.name} wants a key: set {OUR_KEY} or {self.key_variable}")
        return key


class HttpChat(ABC):
    """A model of a vendor, or of another endpoint that speaks its API."""

    vendor: ClassVar[Vendor]

    def __init__(self, settings: LLMSettings) -> None:
        """Nothing is asked yet, and no key looked for."""
        self.settings = settings
        self._connected: Http | None = None

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
        http = self._http()
        attempts = streamed(lambda: self._attempt(http, messages, tools, max_tokens), http.endpoint)
        async with aclosing(attempts) as items:
            async for item in items:
                yield item

    async def check(self) -> Availability:
        """Make a request that costs nothing."""
        try:
            http = self._http()
        except LLMError as error:
            return unset(str(error), self.settings.model)
        return await checked(lambda: self._probe(http), self.settings.model)

    def prepare(self) -> None:
        """Load what asking needs. Where no key is set, a question says so."""
        with suppress(LLMError):
            self._http().prepare()

    async def aclose(self) -> None:
        """Close its connections."""
        if self._connected is not None:
            await self._connected.aclose()

    def _http(self) -> Http:
        """The connections, which its streams share."""
        if self._connected is None:
            url, key, endpoint = self.vendor.connection(self.settings)
            self._connected = Http(url, self._headers(key), endpoint)
        return self._connected

    def _headers(self, key: str) -> Mapping[str, str]:
        """Return the headers of all requests."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    @abstractmethod
    def _attempt(self, http: Http, messages: Sequence[Message], tools: Sequence[Tool], max_tokens: int) -> Stream:
        """Yield the items of one request's answer.

        Raises:
            LLMError: of a subclass by what happened.
        """

    @abstractmethod
    async def _probe(self, http: Http) -> tuple[str | None, str]:
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
