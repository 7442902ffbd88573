"""Scripted chat model on the loopback interface: real HTTP in the protocols of OpenAI, Anthropic and Ollama."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import SecretStr

from docindex_dagster.core.settings import LLMSettings
from docindex_dagster.llm.chat import ChatModel, Delta, Item, ToolCall, Usage
from docindex_dagster.llm.providers import chat_model
from tests import loopback

KEY = "K3Y-s3cr3t-0f-th3-llm"
MODEL = "small-1"
_FOREVER_S = 60.0


@dataclass(frozen=True, slots=True)
class Reply:
    """Response to a request.

    Attributes:
        pieces: pieces of the stream.
        status: HTTP status. Any status other than 200 is sent without a stream.
        headers: additional headers.
        body: body sent instead of a stream.
        broken: bytes sent instead of a response, before closing the connection.
        delay_s: delay before anything is sent.
        drip_s: delay between pieces.
        ends: whether to end the stream properly. If not, the connection is closed.
        stays: whether to keep the connection open until the client closes it.
    """

    pieces: tuple[bytes, ...] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    broken: bytes | None = None
    delay_s: float = 0.0
    drip_s: float = 0.0
    ends: bool = True
    stays: bool = False


@dataclass(slots=True)
class ChatServer:
    """Requests received, and a script with one reply per request. The last reply repeats."""

    address: str = ""
    replies: list[Reply] = field(default_factory=list)
    models: list[str] = field(default_factory=lambda: [MODEL, "small-2"])
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)  # when requests arrived
    left: list[float] = field(default_factory=list)  # when clients disconnected before the end
    asking: threading.Event = field(default_factory=threading.Event)  # set by the first request
    leaving: threading.Event = field(default_factory=threading.Event)  # set by the first client that disconnects

    def next_reply(self) -> Reply:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


class _Handler(loopback.Handler):
    protocol_version = "HTTP/1.1"
    script: ChatServer

    def do_POST(self) -> None:
        self.note(self.body())
        reply = self.script.next_reply()
        if reply.delay_s and self.has_left(reply.delay_s):
            self.note_leaving()
            return
        if reply.broken is not None:
            self.wfile.write(reply.broken)
            self.close_connection = True
        elif reply.status != 200 or reply.body is not None:
            self.answer(reply.status, reply.body or self.error(), {"Location": "/elsewhere", **reply.headers})
        else:
            self.play(reply)

    def do_GET(self) -> None:
        self.note({})
        reply = self.script.replies[0] if self.script.replies else Reply()
        if reply.delay_s and self.has_left(reply.delay_s):
            return
        status, body = (reply.status, self.error()) if reply.status != 200 else self.found()
        self.answer(status, body if reply.body is None else reply.body, {"Content-Type": "application/json"})

    def note(self, asked: dict[str, Any]) -> None:
        self.script.asked.append(asked)
        self.script.keys.append(str(self.headers["Authorization"] or self.headers["X-Api-Key"]))
        self.script.headers.append(dict(self.headers))
        self.script.paths.append(self.path)
        self.script.times.append(time.monotonic())
        self.script.asking.set()

    def play(self, reply: Reply) -> None:
        try:
            self.stream(reply.pieces, {"Content-Type": "text/event-stream", **reply.headers}, reply.drip_s)
            if reply.stays and self.has_left(_FOREVER_S):
                raise ConnectionAbortedError
            if reply.ends:
                self.end_stream()
            else:
                self.close_connection = True
        except ConnectionError:
            self.note_leaving()

    def note_leaving(self) -> None:
        self.script.left.append(time.monotonic())
        self.script.leaving.set()
        self.close_connection = True

    def found(self) -> tuple[int, bytes]:
        """Return the status and body for a check."""
        match self.path.split("/")[1:]:
            case ["v1", "models"]:
                return 200, json.dumps({"data": [{"id": model} for model in self.script.models]}).encode()
            case ["v1", "models", model]:
                return (200 if model in self.script.models else 404), json.dumps(
                    {"id": model, "type": "model"}
                ).encode()
            case ["api", "version"]:
                return 200, b'{"version": "0.20.1"}'
            case ["api", "tags"]:
                return 200, json.dumps(
                    {"models": [{"name": f"{model}:latest"} for model in self.script.models]}
                ).encode()
        return 404, b""

    def error(self) -> bytes:
        """Return an error that repeats the key, as some servers do."""
        return json.dumps({"error": {"message": f"wrong key {self.script.keys[-1]}"}}).encode()


@contextmanager
def serving() -> Iterator[ChatServer]:
    """Serve the model while the block runs."""
    server = ChatServer()
    with loopback.serving(type("Handler", (_Handler,), {"script": server})) as address:
        server.address = address
        yield server


# Protocol formats.


def _sse(data: object, event: str = "") -> bytes:
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {event}\n" if event else "").encode() + f"data: {text}\n\n".encode()


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def openai_events(items: Sequence[Item]) -> Iterator[bytes]:
    """Yield events with tool calls in fragments: first the name and half of the arguments."""

    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _sse({"id": "1", "object": "chat.completion.chunk", "choices": [choice], **more})

    yield chunk({"role": "assistant", "content": ""})
    number, finish = 0, "stop"
    for item in items:
        match item:
            case Delta(text):
                yield chunk({"content": text})
            case ToolCall(id_, name, arguments):
                for first, part in zip((True, False), _halves(arguments), strict=True):
                    whose = {"id": id_, "type": "function"} if first else {}
                    function = {"arguments": part} | ({"name": name} if first else {})
                    yield chunk({"tool_calls": [{"index": number, "function": function, **whose}]})
                number, finish = number + 1, "tool_calls"
            case Usage(prompt, completion, _, is_answer_cut):
                yield chunk({}, "length" if is_answer_cut else finish)
                usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": 0}
                yield _sse({"id": "1", "choices": [], "usage": usage})
                yield _sse("[DONE]")


def anthropic_events(items: Sequence[Item]) -> Iterator[bytes]:
    """Yield events with one block per item."""

    def event(name: str, **more: Any) -> bytes:
        return _sse({"type": name, **more}, name)

    usage = next((item for item in items if isinstance(item, Usage)), Usage())
    yield event(
        "message_start", message={"id": "m", "usage": {"input_tokens": usage.prompt_tokens, "output_tokens": 1}}
    )
    yield event("ping")
    reason = "end_turn"
    for index, item in enumerate(items):
        match item:
            case Delta(text):
                yield event("content_block_start", index=index, content_block={"type": "text", "text": ""})
                yield event("content_block_delta", index=index, delta={"type": "text_delta", "text": text})
                yield event("content_block_stop", index=index)
            case ToolCall(id_, name, arguments):
                block = {"type": "tool_use", "id": id_, "name": name, "input": {}}
                yield event("content_block_start", index=index, content_block=block)
                for part in _halves(arguments):
                    delta = {"type": "input_json_delta", "partial_json": part}
                    yield event("content_block_delta", index=index, delta=delta)
                yield event("content_block_stop", index=index)
                reason = "tool_use"
            case Usage():
                delta = {"stop_reason": "max_tokens" if item.is_answer_cut else reason}
                yield event("message_delta", delta=delta, usage={"output_tokens": item.completion_tokens})
                yield event("message_stop")


def ollama_lines(items: Sequence[Item]) -> Iterator[bytes]:
    """Yield lines with tool calls as objects. Only newer versions of Ollama send IDs."""

    def line(**more: Any) -> bytes:
        return json.dumps({"model": MODEL, **more}, ensure_ascii=False).encode() + b"\n"

    for item in items:
        match item:
            case Delta(text):
                yield line(message={"role": "assistant", "content": text}, done=False)
            case ToolCall(id_, name, arguments):
                call = {"id": id_, "function": {"name": name, "arguments": json.loads(arguments)}}
                yield line(message={"role": "assistant", "content": "", "tool_calls": [call]}, done=False)
            case Usage(prompt, completion, _, is_answer_cut):
                reason = "length" if is_answer_cut else "stop"
                counts = {"prompt_eval_count": prompt, "eval_count": completion}
                yield line(message={"role": "assistant", "content": ""}, done=True, done_reason=reason, **counts)


@dataclass(frozen=True, slots=True)
class Protocol:
    """LLM provider and the format of its responses."""

    provider: str
    path: str  # path of chat requests
    prefix: str  # part of the path that belongs to the base URL
    events: Callable[[Sequence[Item]], Iterator[bytes]]

    def reply(self, *items: Item, **how: Any) -> Reply:
        """Return a reply with these items."""
        return Reply(tuple(self.events(items)), **how)

    def model(self, server: ChatServer | str, **options: Any) -> ChatModel:
        """Return a model that uses this server or address."""
        address = server if isinstance(server, str) else server.address
        own = {"timeout_s": 5, "retries": 0, "api_key": SecretStr(KEY), **options}
        return chat_model(LLMSettings(provider=self.provider, model=MODEL, base_url=address + self.prefix, **own))


OPENAI = Protocol("openai", "/v1/chat/completions", "/v1", openai_events)
ANTHROPIC = Protocol("anthropic", "/v1/messages", "", anthropic_events)
OLLAMA = Protocol("ollama", "/api/chat", "", ollama_lines)
ALL = pytest.mark.parametrize(
    "protocol",
    [
        pytest.param(OPENAI, id="openai"),
        pytest.param(OLLAMA, id="ollama"),
        pytest.param(ANTHROPIC, id="anthropic"),
    ],
)
