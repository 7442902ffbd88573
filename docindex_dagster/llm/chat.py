"""What every model that chats offers: an answer as it is written, with calls of tools where the model can make them.

`llm/protocol.py` is the other half: a prompt in, a whole text out, for work on many texts.
"""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model wants called. Name and arguments are its own words: neither need be what a tool takes."""

    id: str
    name: str
    arguments: str  # JSON, if the model keeps to it

    def values(self) -> dict[str, Any]:
        """The arguments by their names; none where they are no JSON object."""
        try:
            values = json.loads(self.arguments)
        except (ValueError, RecursionError):
            return {}
        return values if isinstance(values, dict) else {}


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    Attributes:
        role: who says it.
        content: what is said; what a tool gave.
        tool_calls: which the assistant made.
        tool_call_id: the call that a message of a tool answers.
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
    parameters: Mapping[str, Any] = field(hash=False)  # a JSON schema of an object


@dataclass(frozen=True, slots=True)
class Delta:
    """The next piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What an answer took: the last item of each stream.

    Attributes:
        prompt_tokens: of all messages and tools; 0 where the model does not say.
        completion_tokens: of the answer; 0 where the model does not say.
        is_prompt_cut: whether the model is held to have read a part of the messages alone.
        is_answer_cut: whether it stopped at a limit, and not since it was done.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    is_prompt_cut: bool = False
    is_answer_cut: bool = False


Item: TypeAlias = Delta | ToolCall | Usage
Stream: TypeAlias = AsyncGenerator[Item, None]
"""An answer: pieces of text as they come, each call of a tool once it is whole, and its usage at the end.

Closing it (`aclose`, `contextlib.aclosing`) ends the request at once, and so does a cancellation of who reads it.
"""


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a model can be asked, as far as can be known without asking it anything.

    Attributes:
        is_configured: whether the settings name it, and its package or program is there.
        is_reachable: whether it answers; None where only a question would show it.
        is_logged_in: whether the key or login is accepted; None where only a question would show it.
        version: of the server, program or client library; None where there is none.
        model: the one that is asked; None for the provider's default.
        problem: why it cannot be asked, and what to do; empty where nothing speaks against it.
    """

    is_configured: bool
    is_reachable: bool | None = None
    is_logged_in: bool | None = None
    version: str | None = None
    model: str | None = None
    problem: str = ""


@runtime_checkable
class ChatModel(Protocol):
    """A model that chats. It belongs to one event loop, where any number of its streams may be read together."""

    @property
    def name(self) -> str:
        """Of the provider and the model; where it runs plays no part."""
        ...

    @property
    def context_tokens(self) -> int | None:
        """How many tokens fit into the model's window, question and answer together; None where it is not known."""
        ...

    @property
    def has_tools(self) -> bool:
        """Whether it can be given tools."""
        ...

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool] = (), *, max_tokens: int) -> Stream:
        """Answer a conversation. Nothing is sent before the first item is asked for.

        What may pass is tried again, but never once an item has come.

        Args:
            messages: so far; a first one of the system says what to do.
            tools: that it may call; none where it has none.
            max_tokens: of the answer.

        Raises:
            LLMError: of a subclass by what happened; while the stream is read.
        """
        ...

    async def check(self) -> Availability:
        """Look whether it can be asked, within seconds. It never raises."""
        ...

    async def aclose(self) -> None:
        """Close its connections. It is not asked any more."""
        ...


@runtime_checkable
class Preparing(Protocol):
    """A model that takes a while to load: it can begin while something else is done."""

    def prepare(self) -> None:
        """Load what asking needs, in any thread. It sends nothing, and never raises."""
        ...


def prepare(model: object) -> None:
    """Let a model load what asking needs, if it can."""
    if isinstance(model, Preparing):
        model.prepare()
