"""Vendors of language models: whose key is sent where."""

import os
from dataclasses import dataclass

from pydantic import SecretStr

from docindex_dagster.core.errors import LLMKeyError
from docindex_dagster.core.settings import LLMSettings
from docindex_dagster.llm.endpoint import Endpoint

OUR_KEY = "DOCINDEX_LLM__API_KEY"
_NO_KEY = "none"  # the clients want one also for endpoints that need none


@dataclass(frozen=True, slots=True)
class Vendor:
    """Who offers a model.

    Attributes:
        name: of the vendor.
        key_variable: in which their users have the key.
        url: of the API; `url_variable` names another one, as for the vendor's library.
    """

    name: str
    key_variable: str
    url: str
    url_variable: str

    def key(self, settings: LLMSettings) -> SecretStr:
        """The key to send. One of the vendor's is for the vendor alone: not for another endpoint.

        Raises:
            LLMKeyError: the vendor wants one, and there is none.
        """
        vendors = os.environ.get(self.key_variable) if settings.base_url is None else _NO_KEY
        key = settings.api_key or SecretStr(vendors or "")
        if not key.get_secret_value():
            raise LLMKeyError(f"{self.name} wants a key: set {OUR_KEY} or {self.key_variable}")
        return key

    def endpoint(self, settings: LLMSettings, host: str) -> Endpoint:
        """Where the model is asked, whose key is looked for where `key` looks."""
        variable = OUR_KEY if settings.api_key or settings.base_url else self.key_variable
        return Endpoint(host, variable, settings.timeout_s, settings.retries)


OPENAI = Vendor("OpenAI", "OPENAI_API_KEY", "https://api.openai.com/v1", "OPENAI_BASE_URL")
ANTHROPIC = Vendor("Anthropic", "ANTHROPIC_API_KEY", "https://api.anthropic.com", "ANTHROPIC_BASE_URL")
