"""Chat client for Ollama's own API. Its OpenAI-compatible API cannot set the size of a model's context window."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, NonNegativeInt

from docindex_dagster.core.errors import LLMError
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.tokenizer import count_tokens
from docindex_dagster.llm.chat import Delta, Message, Stream, Tool, ToolCall, Usage
from docindex_dagster.llm.endpoint import Endpoint
from docindex_dagster.llm.http import (
    BAD_REQUEST,
    NOT_FOUND,
    HttpChat,
    Vendor,
    body_of,
    calls_of,
    functions_of,
    lines_of,
)

if TYPE_CHECKING:
    from httpx2 import Response

# Enough for the passages of an answer and a few turns. Ollama's default, 4,096 on most machines, is too small.
_CONTEXT_TOKENS = 16_384

_ModelT = TypeVar("_ModelT", bound=BaseModel)


class _Function(BaseModel):
    name: str
    arguments: dict[str, Any] | str = ""


class _Call(BaseModel):
    id: str = ""
    function: _Function


class _Message(BaseModel):
    content: str = ""
    tool_calls: list[_Call] | None = None


class _Line(BaseModel):
    message: _Message = _Message()
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: NonNegativeInt = 0
    eval_count: NonNegativeInt = 0
    error: str | None = None


class _Model(BaseModel):
    name: str


class _Models(BaseModel):
    models: list[_Model]


class _Version(BaseModel):
    version: str


class OllamaChat(HttpChat):
    """Chat client for one model of one server."""

    vendor = Vendor("Ollama", "http://127.0.0.1:11434")

    @property
    def context_tokens(self) -> int:
        """The requested window size. A model with a smaller window uses its own."""
        return self.settings.context_tokens or _CONTEXT_TOKENS

    def _request_body(self, messages: Sequence[Message], tools: Sequence[Tool], max_tokens: int) -> dict[str, Any]:
        tool_names = {call.id: call.name for message in messages for call in message.tool_calls}
        return {
            "model": self.settings.model,
            "messages": [_message(message, tool_names) for message in messages],
            "stream": True,
            # Make the server reject prompts that do not fit instead of truncating them. Older servers ignore these.
            "truncate": False,
            "shift": False,
            "options": {"num_ctx": self.context_tokens, "num_predict": max_tokens, "temperature": 0},
            **functions_of(tools),
        }

    async def _attempt(self, messages: Sequence[Message], tools: Sequence[Tool], max_tokens: int) -> Stream:
        body = self._request_body(messages, tools, max_tokens)
        estimate = sum(count_tokens([json.dumps(part) for part in (*body["messages"], *body.get("tools", ()))]))
        answer = _PartialAnswer(self.context_tokens, estimate, calls_of(messages))
        async with self.request("POST", "/api/chat", body) as response:
            await self._accept(response, estimate)
            async with aclosing(lines_of(response)) as lines:
                async for line in lines:
                    for item in answer.items(_Line.model_validate_json(line), self.endpoint):
                        yield item
        if not answer.is_done:
            raise self.endpoint.broke_off("the stream ended early")

    async def _probe(self) -> tuple[str, str]:
        version = await self._get_json("/api/version", _Version)
        names = {model.name.removesuffix(":latest") for model in (await self._get_json("/api/tags", _Models)).models}
        is_there = str(self.settings.model).removesuffix(":latest") in names
        return version.version, "" if is_there else self._no_model()

    async def _accept(self, response: "Response", estimate: int) -> None:
        """Raise an error unless the status is OK. A 400 that mentions the context means the prompt does not fit."""
        if response.status_code == NOT_FOUND:
            raise LLMError(self._no_model())
        if response.status_code == BAD_REQUEST and b"context" in await body_of(response):
            raise LLMError(
                f"the prompt (about {estimate:,} tokens) does not fit into the {self.context_tokens:,}-token window of "
                f"{self.settings.model}; see llm.context_tokens"
            )
        self.accept(response)

    async def _get_json(self, path: str, kind: type[_ModelT]) -> _ModelT:
        async with self.request("GET", path) as response:
            self.accept(response)
            return kind.model_validate_json(await body_of(response))

    def _no_model(self) -> str:
        model = self.settings.model
        run = command("ollama", "pull", model)
        return f"{self.endpoint.host} has no model {model!r}: run {run} or see llm.base_url"


@dataclass(slots=True)
class _PartialAnswer:
    """An answer, assembled from the lines received so far."""

    context_tokens: int
    estimate: int  # of the prompt, in tokens
    calls: int  # tool calls in the conversation so far
    is_done: bool = False

    def items(self, line: _Line, endpoint: Endpoint) -> Iterator[Delta | ToolCall | Usage]:
        """Yield the items that a line adds to the answer."""
        if line.error is not None:
            raise endpoint.broke_off("the server reported an error")
        if line.message.content:
            yield Delta(line.message.content)
        for call in line.message.tool_calls or []:
            arguments = call.function.arguments
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            yield ToolCall(call.id or f"call_{self.calls}", call.function.name, text or "{}")
            self.calls += 1
        if line.done and not self.is_done:
            self.is_done = True
            # A server that truncates the prompt does not say so; its count covers only what remains.
            is_cut = max(line.prompt_eval_count, self.estimate) >= self.context_tokens
            yield Usage(line.prompt_eval_count, line.eval_count, is_cut, line.done_reason == "length")


def _message(message: Message, tool_names: Mapping[str, str]) -> dict[str, Any]:
    calls = [
        {"id": call.id, "function": {"name": call.name, "arguments": call.values()}} for call in message.tool_calls
    ]
    result = {"tool_call_id": message.tool_call_id, "tool_name": tool_names.get(message.tool_call_id or "", "")}
    return {
        "role": message.role,
        "content": message.content,
        **({"tool_calls": calls} if calls else {}),
        **(result if message.role == "tool" else {}),
    }
