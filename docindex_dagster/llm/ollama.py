"""Chatting by Ollama's own API. Its other one, which speaks OpenAI's, cannot set the size of a model's window."""

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

# Enough for the passages of an answer and a few turns. Ollama's own choice, 4,096 on most machines, is not.
_CONTEXT_TOKENS = 16_384

_Found = TypeVar("_Found", bound=BaseModel)


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
    """Chats with one model of one server."""

    vendor = Vendor("Ollama", "http://127.0.0.1:11434")

    @property
    def context_tokens(self) -> int:
        """The window that is asked for; a model that has a smaller one takes what it has."""
        return self.settings.context_tokens or _CONTEXT_TOKENS

    def _asked(self, messages: Sequence[Message], tools: Sequence[Tool], max_tokens: int) -> dict[str, Any]:
        called = {call.id: call.name for message in messages for call in message.tool_calls}
        return {
            "model": self.settings.model,
            "messages": [_message(message, called) for message in messages],
            "stream": True,
            # What does not fit is to be refused, not dropped. Servers that do not know these take no notice of them.
            "truncate": False,
            "shift": False,
            "options": {"num_ctx": self.context_tokens, "num_predict": max_tokens, "temperature": 0},
            **functions_of(tools),
        }

    async def _attempt(self, messages: Sequence[Message], tools: Sequence[Tool], max_tokens: int) -> Stream:
        asked = self._asked(messages, tools, max_tokens)
        estimate = sum(count_tokens([json.dumps(part) for part in (*asked["messages"], *asked.get("tools", ()))]))
        answer = _Answer(self.context_tokens, estimate, calls_of(messages))
        async with self.asked("POST", "/api/chat", asked) as response:
            await self._accept(response, estimate)
            async with aclosing(lines_of(response)) as lines:
                async for line in lines:
                    for item in answer.items(_Line.model_validate_json(line), self.endpoint):
                        yield item
        if not answer.is_done:
            raise self.endpoint.broken("it has no end")

    async def _probe(self) -> tuple[str, str]:
        version = await self._got("/api/version", _Version)
        names = {model.name.removesuffix(":latest") for model in (await self._got("/api/tags", _Models)).models}
        is_there = str(self.settings.model).removesuffix(":latest") in names
        return version.version, "" if is_there else self._no_model()

    async def _accept(self, response: "Response", estimate: int) -> None:
        """Refuse any other status than OK; a server that then names the context says that the prompt does not fit."""
        if response.status_code == NOT_FOUND:
            raise LLMError(self._no_model())
        if response.status_code == BAD_REQUEST and b"context" in await body_of(response):
            raise LLMError(
                f"the prompt, of about {estimate:,} tokens, does not fit into the {self.context_tokens:,} of "
                f"{self.settings.model}; see llm.context_tokens"
            )
        self.accept(response)

    async def _got(self, path: str, kind: type[_Found]) -> _Found:
        async with self.asked("GET", path) as response:
            self.accept(response)
            return kind.model_validate_json(await body_of(response))

    def _no_model(self) -> str:
        model = self.settings.model
        run = command("ollama", "pull", model)
        return f"{self.endpoint.host} has no model {model!r}: run {run}, or see llm.base_url"


@dataclass(slots=True)
class _Answer:
    """An answer, as far as its lines have come."""

    context_tokens: int
    estimate: int  # of the prompt's tokens
    calls: int  # of the conversation
    is_done: bool = False

    def items(self, line: _Line, endpoint: Endpoint) -> Iterator[Delta | ToolCall | Usage]:
        """What a line adds."""
        if line.error is not None:
            raise endpoint.broken("it reports an error")
        if line.message.content:
            yield Delta(line.message.content)
        for call in line.message.tool_calls or []:
            arguments = call.function.arguments
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            yield ToolCall(call.id or f"call_{self.calls}", call.function.name, text or "{}")
            self.calls += 1
        if line.done and not self.is_done:
            self.is_done = True
            # A server that drops what does not fit does not say so; it then counts what is left.
            is_cut = max(line.prompt_eval_count, self.estimate) >= self.context_tokens
            yield Usage(line.prompt_eval_count, line.eval_count, is_cut, line.done_reason == "length")


def _message(message: Message, called: Mapping[str, str]) -> dict[str, Any]:
    calls = [
        {"id": call.id, "function": {"name": call.name, "arguments": call.values()}} for call in message.tool_calls
    ]
    answered = {"tool_call_id": message.tool_call_id, "tool_name": called.get(message.tool_call_id or "", "")}
    return {
        "role": message.role,
        "content": message.content,
        **({"tool_calls": calls} if calls else {}),
        **(answered if message.role == "tool" else {}),
    }
