"""Chat client for OpenAI's chat completions API, at OpenAI or at any compatible endpoint."""

from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, NonNegativeInt

from docindex_dagster.core.settings import LLMSettings
from docindex_dagster.llm.chat import Delta, Message, Stream, Tool, ToolCall, Usage
from docindex_dagster.llm.endpoint import Endpoint
from docindex_dagster.llm.http import (
    BAD_REQUEST,
    OK,
    HttpChat,
    Vendor,
    body_of,
    calls_of,
    drain,
    events_of,
    functions_of,
)

if TYPE_CHECKING:
    from httpx2 import Response

# The answer stopped before the model was done.
_CUT = {"length", "content_filter"}
_END = b"[DONE]"
# Error codes for a parameter that the model does not support.
_UNSUPPORTED = {"unsupported_parameter", "unsupported_value"}
_STREAMED = {"stream": True, "stream_options": {"include_usage": True}}


class _Function(BaseModel):
    name: str | None = None
    arguments: str | None = None


class _Fragment(BaseModel):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(BaseModel):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Fragment] | None = None


class _Choice(BaseModel):
    delta: _Delta | None = None
    message: _Delta | None = None  # replaces the deltas in an answer that is not streamed
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: NonNegativeInt | None = None
    completion_tokens: NonNegativeInt | None = None


class _Chunk(BaseModel):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: Any = None


class _Model(BaseModel):
    id: str


class _Models(BaseModel):
    data: list[_Model]


class _Error(BaseModel):
    """Why a request was rejected."""

    code: str | int | None = None
    param: str | None = None


class _Refusal(BaseModel):
    error: _Error


@dataclass(slots=True)
class _Call:
    """A tool call, assembled from the fragments received so far."""

    index: int | None
    id: str
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class _PartialAnswer:
    """An answer, assembled from the chunks received so far."""

    calls: list[_Call] = field(default_factory=list)
    usage: _Usage = field(default_factory=_Usage)
    finish: str | None = None

    def texts(self, chunk: _Chunk) -> Iterator[Delta]:
        """Yield the text that a chunk adds, and collect its tool calls and usage."""
        self.usage = chunk.usage or self.usage
        for choice in chunk.choices[:1]:
            self.finish = choice.finish_reason or self.finish or ("stop" if choice.message else None)
            delta = choice.delta or choice.message or _Delta()
            for fragment in delta.tool_calls or []:
                self._add(fragment)
            yield from (Delta(text) for text in (delta.content, delta.refusal) if text)

    def rest(self, calls_so_far: int) -> Iterator[ToolCall | Usage]:
        """Yield the tool calls and the usage after the last chunk."""
        for number, call in enumerate(self.calls, calls_so_far):
            yield ToolCall(call.id or f"call_{number}", call.name, call.arguments or "{}")
        yield Usage(self.usage.prompt_tokens or 0, self.usage.completion_tokens or 0, is_answer_cut=self.finish in _CUT)

    def _add(self, fragment: _Fragment) -> None:
        call = self._call(fragment)
        function = fragment.function or _Function()
        call.name = call.name or function.name or ""
        call.arguments += function.arguments or ""

    def _call(self, fragment: _Fragment) -> _Call:
        """Return the call of a fragment. Some servers omit the index; others give every call the first index."""
        candidates = [call for call in self.calls if fragment.index is None or call.index == fragment.index]
        if candidates and (not fragment.id or fragment.id == candidates[-1].id):
            return candidates[-1]
        self.calls.append(_Call(fragment.index, fragment.id or ""))
        return self.calls[-1]


class OpenAIChat(HttpChat):
    """Chat client for one model of one endpoint."""

    vendor = Vendor("OpenAI", "https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL")

    def __init__(self, settings: LLMSettings) -> None:
        """Store the settings. Nothing is sent yet."""
        super().__init__(settings)
        self._rejected: set[str] = set()  # parameters, known only from the model's errors

    async def _attempt(self, messages: Sequence[Message], tools: Sequence[Tool], max_tokens: int) -> Stream:
        """Send a request without the parameters that the model is known to reject, and read the answer."""
        body = {"model": self.settings.model, "messages": [_message(message) for message in messages]}
        body |= functions_of(tools)
        while True:
            options = self._options(max_tokens)
            async with self.request("POST", "/chat/completions", body | options) as response:
                if response.status_code == OK:
                    async with aclosing(_read(response, self.endpoint, calls_of(messages))) as items:
                        async for item in items:
                            yield item
                    return
                refusal = self.endpoint.refusal(response.status_code, response.headers)
                error = _error(await body_of(response)) if response.status_code == BAD_REQUEST else _Error()
            if error.code in _UNSUPPORTED and error.param in options:
                self._rejected.add(error.param)
            if self._options(max_tokens) == options:
                raise refusal

    def _options(self, max_tokens: int) -> dict[str, Any]:
        """Return the parameters that this model has not rejected. Newer OpenAI models use another token limit."""
        limit = "max_completion_tokens" if "max_tokens" in self._rejected else "max_tokens"
        optional = {"temperature": 0} | ({} if "stream" in self._rejected else _STREAMED)
        return {limit: max_tokens} | {name: value for name, value in optional.items() if name not in self._rejected}

    async def _probe(self) -> tuple[str | None, str]:
        async with self.request("GET", "/models") as response:
            self.accept(response)
            models = _Models.model_validate_json(await body_of(response))
            version = response.headers.get("openai-version") or response.headers.get("Server")
        names = {model.id.removesuffix(":latest") for model in models.data}
        is_known = not names or str(self.settings.model).removesuffix(":latest") in names
        host = self.endpoint.host
        return version, "" if is_known else f"{host} does not list a model {self.settings.model!r}; see llm.model"


async def _read(response: "Response", endpoint: Endpoint, calls_so_far: int) -> Stream:
    """Yield the items of an answer."""
    answer = _PartialAnswer()
    has_started = False
    async with aclosing(events_of(response)) as events:
        async for data in events:
            if data.strip() == _END:
                await drain(events)
                break
            chunk = _Chunk.model_validate_json(data)
            if chunk.error is not None:
                raise endpoint.broke_off("the server reported an error")
            has_started = has_started or bool(chunk.choices)
            for text in answer.texts(chunk):
                yield text
    if not has_started:
        raise endpoint.invalid_answer()
    if answer.finish is None:
        raise endpoint.broke_off("the stream ended early")
    for item in answer.rest(calls_so_far):
        yield item


def _error(body: bytes) -> _Error:
    try:
        return _Refusal.model_validate_json(body).error
    except ValueError:
        return _Error()


def _message(message: Message) -> dict[str, Any]:
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.tool_calls
    ]
    result = {"tool_call_id": message.tool_call_id} if message.role == "tool" else {}
    return {"role": message.role, "content": message.content} | ({"tool_calls": calls} if calls else {}) | result
