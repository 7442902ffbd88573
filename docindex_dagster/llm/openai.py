"""Chatting by OpenAI's chat completions, of OpenAI or of any endpoint that speaks them."""

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

# The answer stopped, and the model was not done.
_CUT = {"length", "content_filter"}
_END = b"[DONE]"
# How the API says that a model does not take a parameter.
_NOT_TAKEN = {"unsupported_parameter", "unsupported_value"}
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
    message: _Delta | None = None  # instead of deltas, in an answer that is not streamed
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
    """Why a request was refused."""

    code: str | int | None = None
    param: str | None = None


class _Refusal(BaseModel):
    error: _Error


@dataclass(slots=True)
class _Call:
    """A call of a tool, as far as its fragments have come."""

    index: int | None
    id: str
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class _Answer:
    """An answer, as far as its chunks have come."""

    calls: list[_Call] = field(default_factory=list)
    usage: _Usage = field(default_factory=_Usage)
    finish: str | None = None

    def texts(self, chunk: _Chunk) -> Iterator[Delta]:
        """What a chunk adds to the text; what it adds to calls and usage is kept."""
        self.usage = chunk.usage or self.usage
        for choice in chunk.choices[:1]:
            self.finish = choice.finish_reason or self.finish or ("stop" if choice.message else None)
            delta = choice.delta or choice.message or _Delta()
            for fragment in delta.tool_calls or []:
                self._add(fragment)
            yield from (Delta(text) for text in (delta.content, delta.refusal) if text)

    def rest(self, calls_so_far: int) -> Iterator[ToolCall | Usage]:
        """What is known when the last chunk has come."""
        for number, call in enumerate(self.calls, calls_so_far):
            yield ToolCall(call.id or f"call_{number}", call.name, call.arguments or "{}")
        yield Usage(self.usage.prompt_tokens or 0, self.usage.completion_tokens or 0, is_answer_cut=self.finish in _CUT)

    def _add(self, fragment: _Fragment) -> None:
        call = self._call(fragment)
        function = fragment.function or _Function()
        call.name = call.name or function.name or ""
        call.arguments += function.arguments or ""

    def _call(self, fragment: _Fragment) -> _Call:
        """The call of a fragment. Some servers leave out the index, others count every call as the first."""
        of_index = [call for call in self.calls if fragment.index is None or call.index == fragment.index]
        if of_index and (not fragment.id or fragment.id == of_index[-1].id):
            return of_index[-1]
        self.calls.append(_Call(fragment.index, fragment.id or ""))
        return self.calls[-1]


class OpenAIChat(HttpChat):
    """Chats with one model of one endpoint."""

    vendor = Vendor("OpenAI", "https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL")

    def __init__(self, settings: LLMSettings) -> None:
        """Nothing is asked yet."""
        super().__init__(settings)
        self._refused: set[str] = set()  # parameters; only its refusals tell which

    async def _attempt(self, messages: Sequence[Message], tools: Sequence[Tool], max_tokens: int) -> Stream:
        """Send a request without the parameters that the model is known to refuse, and read its answer."""
        asked = {"model": self.settings.model, "messages": [_message(message) for message in messages]}
        asked |= functions_of(tools)
        while True:
            options = self._options(max_tokens)
            async with self.asked("POST", "/chat/completions", asked | options) as response:
                if response.status_code == OK:
                    async with aclosing(_read(response, self.endpoint, calls_of(messages))) as items:
                        async for item in items:
                            yield item
                    return
                refusal = self.endpoint.refusal(response.status_code, response.headers)
                error = _error(await body_of(response)) if response.status_code == BAD_REQUEST else _Error()
            if error.code in _NOT_TAKEN and error.param in options:
                self._refused.add(error.param)
            if self._options(max_tokens) == options:
                raise refusal

    def _options(self, max_tokens: int) -> dict[str, Any]:
        """Return the parameters that this model has not refused; newer models of OpenAI take another limit."""
        limit = "max_completion_tokens" if "max_tokens" in self._refused else "max_tokens"
        wanted = {"temperature": 0} | ({} if "stream" in self._refused else _STREAMED)
        return {limit: max_tokens} | {name: value for name, value in wanted.items() if name not in self._refused}

    async def _probe(self) -> tuple[str | None, str]:
        async with self.asked("GET", "/models") as response:
            self.accept(response)
            models = _Models.model_validate_json(await body_of(response))
            version = response.headers.get("openai-version") or response.headers.get("Server")
        names = {model.id.removesuffix(":latest") for model in models.data}
        is_known = not names or str(self.settings.model).removesuffix(":latest") in names
        host = self.endpoint.host
        return version, "" if is_known else f"{host} lists no model {self.settings.model!r}; see llm.model"


async def _read(response: "Response", endpoint: Endpoint, calls_so_far: int) -> Stream:
    """The items of an answer."""
    answer = _Answer()
    is_begun = False
    async with aclosing(events_of(response)) as events:
        async for data in events:
            if data.strip() == _END:
                await drain(events)
                break
            chunk = _Chunk.model_validate_json(data)
            if chunk.error is not None:
                raise endpoint.broken("it reports an error")
            is_begun = is_begun or bool(chunk.choices)
            for text in answer.texts(chunk):
                yield text
    if not is_begun:
        raise endpoint.nonsense()
    if answer.finish is None:
        raise endpoint.broken("it has no end")
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
    answers = {"tool_call_id": message.tool_call_id} if message.role == "tool" else {}
    return {"role": message.role, "content": message.content} | ({"tool_calls": calls} if calls else {}) | answers
