"""What the chats with the APIs of vendors have in common: one model, asked over the connections to one endpoint.

The vendors' libraries are not used: OpenAI's takes a second to load, which whoever asks on a terminal would wait for.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from docindex_dagster.core.errors import LLMError
from docindex_dagster.core.settings import LLMSettings
from docindex_dagster.llm.chat import Availability
from docindex_dagster.llm.checking import checked, unset
from docindex_dagster.llm.http import Http
from docindex_dagster.llm.vendors import Vendor


class VendorChat(ABC):
    """A model of a vendor, or of another endpoint that speaks its API."""

    def __init__(self, settings: LLMSettings, vendor: Vendor) -> None:
        """Nothing is asked yet, and no key looked for."""
        self.settings = settings
        self._vendor = vendor
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
        """Nearly all models do."""
        return True

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
            own, vendor = self.settings, self._vendor
            url = own.base_url or os.environ.get(vendor.url_variable) or vendor.url
            headers = self._headers(vendor.key(own).get_secret_value())
            self._connected = Http(url, headers, vendor.endpoint(own, urlsplit(url).hostname or ""))
        return self._connected

    @abstractmethod
    def _headers(self, key: str) -> Mapping[str, str]:
        """Those of each request."""

    @abstractmethod
    async def _probe(self, http: Http) -> tuple[str | None, str]:
        """The version of who answers, and what is wrong with the model; it raises LLMErrors."""
