"""Interface of chat models, which stream an answer and may call tools.

`llm/protocol.py` defines the other interface, for work on many texts: a prompt in, a complete text out.
"""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call by the model. The model may invent both the name and the arguments."""

    id: str
    name: str
    arguments: str  # JSON, if the model follows the format

    def values(self) -> dict[str, Any]:
        """Return the arguments by name; empty if they are not a JSON object."""
        try:
            values = json.loads(self.arguments)
        except (ValueError, RecursionError):
            return {}
        return values if isinstance(values, dict) else {}


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    Attributes:
        role: the author.
        content: the text, or the result of a tool.
        tool_calls: the calls that the assistant made.
        tool_call_id: the call that a tool message answers.
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the model may call."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(hash=False)  # the JSON schema of an object


@dataclass(frozen=True, slots=True)
class Delta:
    """The next piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    """The token counts of an answer, which end each stream.

    Attributes:
        prompt_tokens: tokens of all messages and tools; 0 if the model does not report them.
        completion_tokens: tokens of the answer; 0 if the model does not report them.
        is_prompt_cut: whether the model probably read only part of the messages.
        is_answer_cut: whether the answer stopped at a limit before it was complete.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    is_prompt_cut: bool = False
    is_answer_cut: bool = False


Item: TypeAlias = Delta | ToolCall | Usage
Stream: TypeAlias = AsyncGenerator[Item, None]
"""An answer: text deltas as they arrive, each tool call once it is complete, and the usage at the end.

Closing the stream (`aclose`, `contextlib.aclosing`) or canceling its reader ends the request immediately.
"""


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a model can answer, as far as a check without a question can tell.

    Attributes:
        is_configured: whether the settings name the model and its package or program is installed.
        is_reachable: whether the endpoint responds; None if only a question would show it.
        is_logged_in: whether the key or login is accepted; None if only a question would show it.
        version: the version of the server, program or client library; None if unknown.
        model: the model's name; None for the provider's default.
        problem: why the model cannot answer, and what to do about it; empty if no problem was found.
    """

    is_configured: bool
    is_reachable: bool | None = None
    is_logged_in: bool | None = None
    version: str | None = None
    model: str | None = None
    problem: str = ""


@runtime_checkable
class ChatModel(Protocol):
    """A chat model. It belongs to one event loop, which may read any number of its streams concurrently."""

    @property
    def name(self) -> str:
        """The provider and the model; independent of where the model runs."""
        ...

    @property
    def context_tokens(self) -> int | None:
        """The size of the model's context window in tokens, for question and answer together; None if unknown."""
        ...

    @property
    def has_tools(self) -> bool:
        """Whether the model accepts tools."""
        ...

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool] = (), *, max_tokens: int) -> Stream:
        """Answer a conversation. Nothing is sent until the first item is requested.

        Transient failures are retried, but only before the first item.

        Args:
            messages: the conversation so far; an initial system message holds the instructions.
            tools: the tools that the model may call; must be empty if it supports none.
            max_tokens: the limit of the answer.

        Raises:
            LLMError: the request failed while the stream was read; the subclass names the kind of failure.
        """
        ...

    async def check(self) -> Availability:
        """Check within seconds whether the model can answer. This method never raises."""
        ...

    async def aclose(self) -> None:
        """Close the connections. The model must not be used afterwards."""
        ...


@runtime_checkable
class Preparable(Protocol):
    """A model that is slow to load and can be loaded in the background."""

    def prepare(self) -> None:
        """Load everything that a question needs, in any thread. This method sends nothing and never raises."""
        ...


def prepare(model: object) -> None:
    """Load everything that a question needs, if the model supports it."""
    if isinstance(model, Preparable):
        model.prepare()
