"""Chat completions of OpenAI, and of every endpoint that speaks them: Ollama, vLLM, LM Studio, gateways."""

import atexit
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, NonNegativeInt, SecretStr

from docindex_dagster.core.settings import LLMSettings
from docindex_dagster.llm.asking import Api, body_of
from docindex_dagster.llm.protocol import Completion
from docindex_dagster.llm.vendors import OPENAI

if TYPE_CHECKING:
    from openai import OpenAI

# How the API says that a model does not take a parameter.
_NOT_TAKEN = {"unsupported_parameter", "unsupported_value"}


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message


class _Usage(BaseModel):
    prompt_tokens: NonNegativeInt = 0
    completion_tokens: NonNegativeInt = 0


class _Answer(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a request that some models do not take, as only their refusal says."""

    refused: set[str] = field(default_factory=set)

    def of(self, max_tokens: int) -> dict[str, Any]:
        """What every server knows, but for what this one refused: newer models of OpenAI's want another name."""
        limit = "max_completion_tokens" if "max_tokens" in self.refused else "max_tokens"
        return {limit: max_tokens} | self.but_refused({"temperature": 0})

    def but_refused(self, options: dict[str, Any]) -> dict[str, Any]:
        """Those of some options that were not refused."""
        return {name: value for name, value in options.items() if name not in self.refused}

    def learn(self, code: object, parameter: str | None, options: dict[str, Any]) -> bool:
        """Note what a refusal says is not taken of these options; whether it is worth asking without it."""
        if code not in _NOT_TAKEN or parameter not in options or parameter in self.refused:
            return False
        self.refused.add(parameter)
        return True


@dataclass(frozen=True, slots=True)
class OpenAILLM:
    """Asks one model of one endpoint."""

    settings: LLMSettings
    parameters: Parameters = field(default_factory=Parameters, compare=False)

    @property
    def name(self) -> str:
        """Of the model; where it runs plays no part."""
        return f"openai/{self.settings.model}"

    def complete(self, system: str, text: str, max_tokens: int) -> Completion:
        """Answer a text.

        Raises:
            LLMError: no attempt gave a completion.
        """
        import openai

        own = self.settings
        client = _client(own.base_url, OPENAI.key(own), own.timeout_s)
        api = Api(openai, OPENAI.endpoint(own, client.base_url.host))
        messages = [{"role": "system", "content": system}, {"role": "user", "content": text}]
        return api.answer(lambda: self._ask(client.chat.completions, messages, max_tokens))

    def _ask(self, completions: Any, messages: list[dict[str, str]], max_tokens: int) -> Completion:
        from openai import BadRequestError

        while True:
            options = self.parameters.of(max_tokens)
            try:
                create: Callable[..., Any] = completions.with_streaming_response.create
                body = body_of(create(model=self.settings.model, messages=messages, **options))
            except BadRequestError as error:
                if not self.parameters.learn(error.code, error.param, options):
                    raise
                continue
            answer = _Answer.model_validate_json(body)
            usage = answer.usage or _Usage()
            return Completion(answer.choices[0].message.content or "", usage.prompt_tokens, usage.completion_tokens)


@cache
def _client(base_url: str | None, api_key: SecretStr, timeout_s: float) -> "OpenAI":
    """One client an endpoint, whose connections its threads share; redirects could lead the key elsewhere."""
    from openai import DefaultHttpxClient, OpenAI

    client = OpenAI(
        api_key=api_key.get_secret_value(),
        base_url=base_url,
        timeout=timeout_s,
        max_retries=0,
        http_client=DefaultHttpxClient(follow_redirects=False),
    )
    atexit.register(client.close)
    return client
