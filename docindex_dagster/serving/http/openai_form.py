"""The subset of OpenAI's API schema that clients need: completions, chunks, models and errors."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from docindex_dagster.serving.http import problems

PREFIX = "/v1"
END = b"data: [DONE]\n\n"
_UNPROCESSABLE, _BAD_REQUEST, _TOO_MANY, _SERVER_ERROR = 422, 400, 429, 500
_CODES = {"unauthorized": "invalid_api_key", "unknown-model": "model_not_found"}
_MOST_MESSAGES = 1000


class Part(BaseModel):
    """A part of a message's content. Only text is read."""

    model_config = ConfigDict(extra="ignore")

    type: Literal["text", "refusal"]
    text: str = ""


class ChatMessage(BaseModel):
    """A message of a conversation."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None

    @property
    def text(self) -> str:
        """The text of the message."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""


class StreamOptions(BaseModel):
    """Options of a stream."""

    model_config = ConfigDict(extra="ignore")

    include_usage: bool = Field(default=False, description="Whether the last chunk contains the token usage.")


class ChatRequest(BaseModel):
    """A conversation to continue. Other parameters of OpenAI's API, such as `temperature` and `tools`, are ignored."""

    model_config = ConfigDict(extra="ignore")

    model: str = Field(max_length=200, description="`docindex`, or `docindex-agent`, which may call tools.")
    messages: list[ChatMessage] = Field(
        min_length=1, max_length=_MOST_MESSAGES, description="The last message is the user's question."
    )
    stream: bool | None = Field(default=None, description="Whether to stream the answer.")
    stream_options: StreamOptions | None = None


@dataclass(frozen=True, slots=True)
class UrlCitation:
    """The URL of a cited passage, and the characters of the text that cite it: [start_index, end_index)."""

    url: str
    title: str
    start_index: int
    end_index: int


@dataclass(frozen=True, slots=True)
class Annotation:
    """A citation whose passage exists."""

    url_citation: UrlCitation
    type: Literal["url_citation"] = "url_citation"


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer."""

    content: str
    annotations: tuple[Annotation, ...]
    role: Literal["assistant"] = "assistant"
    refusal: None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The only answer."""

    message: Reply
    finish_reason: Literal["stop", "length"]
    index: int = 0
    logprobs: None = None


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The token usage of an answer."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


@dataclass(frozen=True, slots=True)
class ChatCompletion:
    """A complete answer."""

    id: str
    model: str
    choices: tuple[Choice, ...]
    usage: TokenUsage
    created: int = field(default_factory=lambda: int(time.time()))
    object: Literal["chat.completion"] = "chat.completion"


@dataclass(frozen=True, slots=True)
class Model:
    """An answering mode, which clients choose as a model."""

    id: str
    created: int = 0
    object: Literal["model"] = "model"
    owned_by: str = "docindex"


@dataclass(frozen=True, slots=True)
class Models:
    """All models."""

    data: tuple[Model, ...]
    object: Literal["list"] = "list"


@dataclass(frozen=True, slots=True)
class Failure:
    """An error. `code` is the name of the problem, except for codes that OpenAI clients know."""

    message: str
    type: str
    code: str
    param: str | None = None


@dataclass(frozen=True, slots=True)
class OpenAIError:
    """An error in OpenAI's format."""

    error: Failure


@dataclass(frozen=True, slots=True)
class Chunks:
    """The chunks of one answer, as events."""

    id: str
    model: str
    has_usage: bool
    created: int = field(default_factory=lambda: int(time.time()))

    def of(self, delta: Mapping[str, object], finish_reason: str | None = None) -> bytes:
        """Return the next chunk."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return self._event([choice], None)

    def of_usage(self, usage: Mapping[str, int]) -> bytes:
        """Return the chunk with the token usage, which has no choices."""
        return self._event([], usage)

    def _event(self, choices: list[Mapping[str, object]], usage: Mapping[str, int] | None) -> bytes:
        base = {"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model}
        return event({**base, "choices": choices, **({"usage": usage} if self.has_usage else {})})


def event(data: object) -> bytes:
    """Return a server-sent event without a name."""
    return b"data: " + json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n\n"


def error_of(problem: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a problem to OpenAI's format."""
    name, status = problem["type"].rpartition("/")[2], problem["status"]
    kind = "invalid_request_error"
    if status >= _SERVER_ERROR:
        kind = "server_error"
    elif status == _TOO_MANY:
        kind = "rate_limit_error"
    place = next((mistake["place"].removeprefix("body.") for mistake in problem.get("errors", ())), None)
    message = f"{problem['title']}: {problem['detail']}"
    return {"error": {"message": message, "type": kind, "code": code_of(name), "param": place}}


def code_of(name: str) -> str:
    """Return the error code for the name of a problem."""
    return _CODES.get(name, name.replace("-", "_"))


def status_of(status: int) -> int:
    """Return the status that OpenAI clients expect for the status of a problem."""
    return _BAD_REQUEST if status == _UNPROCESSABLE else status


def documented(*names: str) -> dict[int | str, dict[str, Any]]:
    """Return the error responses of a route for its OpenAPI description."""
    return problems.documented(*names, name_of=code_of, status_of=status_of, model=OpenAIError)
