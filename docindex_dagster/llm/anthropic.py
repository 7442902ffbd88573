"""Chat client for Anthropic's Messages API, at Anthropic or at a compatible gateway."""

from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, NonNegativeInt

from docindex_dagster.llm.chat import Delta, Message, Stream, Tool, ToolCall, Usage
from docindex_dagster.llm.http import HttpChat, Vendor, body_of, events_of

_VERSION = "2023-06-01"  # API version
_CUT = {"max_tokens", "model_context_window_exceeded", "refusal"}


class _Usage(BaseModel):
    input_tokens: NonNegativeInt | None = None
    cache_creation_input_tokens: NonNegativeInt | None = None
    cache_read_input_tokens: NonNegativeInt | None = None
    output_tokens: NonNegativeInt | None = None


class _MessageStart(BaseModel):
    usage: _Usage | None = None


class _Block(BaseModel):
    type: str
    id: str | None = None
    name: str | None = None
    text: str | None = None


class _Delta(BaseModel):
    text: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _Event(BaseModel):
    type: str
    index: int | None = None
    message: _MessageStart | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: _Usage | None = None


class _Model(BaseModel):
    id: str


@dataclass(slots=True)
class _Call:
    """A tool call, assembled from the fragments received so far."""

    id: str
    name: str
    arguments: str = ""


@dataclass(slots=True)
class _PartialAnswer:
    """An answer, assembled from the events received so far."""

    calls: dict[int | None, _Call] = field(default_factory=dict)  # keyed by the index of their content block
    prompt_tokens: int = 0
    completion_tokens: int = 0
    stop_reason: str | None = None
    has_started: bool = False
    is_done: bool = False

    def items(self, event: _Event) -> Iterator[Delta | ToolCall | Usage]:
        """Yield the items that an event adds to the answer."""
        self.has_started |= event.type == "message_start"
        self._count(event.usage or (event.message.usage if event.message else None))
        match event.type:
            case "content_block_start" if event.content_block:
                yield from self._open_block(event.index, event.content_block)
            case "content_block_delta" if event.delta:
                if event.index in self.calls:
                    self.calls[event.index].arguments += event.delta.partial_json or ""
                if event.delta.text:
                    yield Delta(event.delta.text)
            case "content_block_stop" if event.index in self.calls:
                call = self.calls.pop(event.index)
                yield ToolCall(call.id, call.name, call.arguments or "{}")
            case "message_delta" if event.delta:
                self.stop_reason = event.delta.stop_reason or self.stop_reason
            case "message_stop":
                self.is_done = True
                yield Usage(self.prompt_tokens, self.completion_tokens, is_answer_cut=self.stop_reason in _CUT)

    def _open_block(self, index: int | None, block: _Block) -> Iterator[Delta]:
        if block.type == "tool_use":
            self.calls[index] = _Call(block.id or "", block.name or "")
        elif block.text:
            yield Delta(block.text)

    def _count(self, usage: _Usage | None) -> None:
        """Update the totals. Each event reports running sums; cached tokens count because they are billed, too."""
        if usage is None:
            return
        prompt = (usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens)
        self.prompt_tokens = max(self.prompt_tokens, sum(count or 0 for count in prompt))
        self.completion_tokens = max(self.completion_tokens, usage.output_tokens or 0)


class AnthropicChat(HttpChat):
    """Chat client for one model. It sends no temperature, because current models reject the parameter."""

    vendor = Vendor("Anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")

    async def _attempt(self, messages: Sequence[Message], tools: Sequence[Tool], max_tokens: int) -> Stream:
        body = {"model": self.settings.model, "max_tokens": max_tokens, "stream": True} | _request_body(messages, tools)
        answer = _PartialAnswer()
        async with self.request("POST", "/v1/messages", body) as response:
            self.accept(response)
            async with aclosing(events_of(response)) as events:
                async for data in events:
                    event = _Event.model_validate_json(data)
                    if event.type == "error":
                        raise self.endpoint.broke_off("the server reported an error")
                    for item in answer.items(event):
                        yield item
        if not answer.has_started:
            raise self.endpoint.invalid_answer()
        if not answer.is_done:
            raise self.endpoint.broke_off("the stream ended early")

    async def _probe(self) -> tuple[str | None, str]:
        async with self.request("GET", f"/v1/models/{self.settings.model}") as response:
            self.accept(response)
            _Model.model_validate_json(await body_of(response))
        return _VERSION, ""

    def _headers(self, key: str) -> dict[str, str]:
        return {"X-Api-Key": key, "Anthropic-Version": _VERSION}


def _request_body(messages: Sequence[Message], tools: Sequence[Tool]) -> dict[str, Any]:
    """Return a request body in the API's format, with the system prompt apart and tool results in user turns."""
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += _blocks(message)
        else:
            turns.append({"role": role, "content": _blocks(message)})
    for turn in turns:
        match turn["content"]:
            case [{"type": "text", "text": text}]:
                turn["content"] = text
    definitions = [
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)} for tool in tools
    ]
    return (
        {"messages": turns} | ({"system": system} if system else {}) | ({"tools": definitions} if definitions else {})
    )


def _blocks(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": message.content}]
    text = [{"type": "text", "text": message.content}] if message.content else []
    return text + [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.values()} for call in message.tool_calls
    ]
