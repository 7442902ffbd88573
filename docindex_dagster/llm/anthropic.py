"""The Messages API of Anthropic, and of gateways that speak it. It needs the extra."""

import atexit
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, NonNegativeInt, SecretStr

from docindex_dagster.core.errors import LLMError
from docindex_dagster.core.installation import needs_extra
from docindex_dagster.core.settings import LLMSettings
from docindex_dagster.llm.asking import Api, body_of
from docindex_dagster.llm.protocol import Completion
from docindex_dagster.llm.vendors import ANTHROPIC

if TYPE_CHECKING:
    from anthropic import Anthropic


class _Block(BaseModel):
    type: str
    text: str = ""


class _Usage(BaseModel):
    input_tokens: NonNegativeInt = 0
    output_tokens: NonNegativeInt = 0


class _Answer(BaseModel):
    type: Literal["message"]
    content: list[_Block]
    usage: _Usage = _Usage()


@dataclass(frozen=True, slots=True)
class AnthropicLLM:
    """Asks one model. No temperature is sent: the present models take none."""

    settings: LLMSettings

    @property
    def name(self) -> str:
        """Of the model; where it runs plays no part."""
        return f"anthropic/{self.settings.model}"

    def complete(self, system: str, text: str, max_tokens: int) -> Completion:
        """Answer a text.

        Raises:
            LLMError: the extra is not installed, or no attempt gave a completion.
        """
        try:
            import anthropic
        except ImportError:
            raise LLMError(needs_extra("anthropic", "anthropic")) from None
        own = self.settings
        client = _client(own.base_url, ANTHROPIC.key(own), own.timeout_s)
        api = Api(anthropic, ANTHROPIC.endpoint(own, client.base_url.host))
        asked: dict[str, Any] = {
            "model": own.model,
            "system": system,
            "max_tokens": max_tokens,
            "messages": [{"role": "user", "content": text}],
        }
        return api.answer(lambda: _ask(client, asked))


def _ask(client: "Anthropic", asked: dict[str, Any]) -> Completion:
    answer = _Answer.model_validate_json(body_of(client.messages.with_streaming_response.create(**asked)))
    text = "".join(block.text for block in answer.content if block.type == "text")
    return Completion(text, answer.usage.input_tokens, answer.usage.output_tokens)


@cache
def _client(base_url: str | None, api_key: SecretStr, timeout_s: float) -> "Anthropic":
    """One client an endpoint, whose connections its threads share; redirects could lead the key elsewhere."""
    from anthropic import Anthropic, DefaultHttpxClient

    client = Anthropic(
        api_key=api_key.get_secret_value(),
        base_url=base_url,
        timeout=timeout_s,
        max_retries=0,
        http_client=DefaultHttpxClient(follow_redirects=False),
    )
    atexit.register(client.close)
    return client
