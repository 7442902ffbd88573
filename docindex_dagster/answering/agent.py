"""Agent: a model that calls read-only tools, within limits, before it answers."""

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any, Protocol

from docindex_dagster.answering import prompt
from docindex_dagster.answering.conversation import Read, Reading
from docindex_dagster.answering.events import Step
from docindex_dagster.core.errors import DocindexError, QueryError
from docindex_dagster.core.safe_text import on_one_line, truncate_middle, well_formed
from docindex_dagster.core.tokenizer import count_tokens
from docindex_dagster.llm.budget import BudgetedChat
from docindex_dagster.llm.chat import Delta, Message, Stream, Tool, ToolCall, Usage
from docindex_dagster.search import cancellation
from docindex_dagster.search.context import Context

_MIN_RESULT_TOKENS = 200  # for a tool's result; with less left, no tool is called
_LOW_CALLS = 3  # from this number down, results say how many calls are left
_MAX_PROBLEM_CHARS = 1000
_MAX_OUTCOME_CHARS = 200
_MAX_NAME_CHARS = 64
_INVALID_NAME_CHARS = re.compile(r"[^A-Za-z0-9_-]")  # characters that providers reject in tool names


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of what an agent may do before it has to answer.

    Attributes:
        requests: requests to the model that offer tools.
        calls: tool calls, including failed ones.
        tokens: tokens of all tool results together.
        call_tokens: tokens of one tool result.
        seconds: time before the answer begins.
    """

    requests: int = 8
    calls: int = 12
    tokens: int = 24_000
    call_tokens: int = 4_000
    seconds: float = 120.0


_LIMITS = Limits()
_NOTHING = Context("", 0, 0, 0, ())


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call.

    Attributes:
        outcome: a one-line summary for the user.
        text: text for the model, in addition to the passages.
        context: passages, which will be numbered.
    """

    outcome: str
    text: str = ""
    context: Context | None = None


class Toolbox(Protocol):
    """The tools that an agent may call. They only read, and their results pass the question's filters."""

    @property
    def tools(self) -> Sequence[Tool]:
        """The tool definitions that the model receives."""
        ...

    def call(self, name: str, arguments: Mapping[str, Any], max_tokens: int) -> ToolResult:
        """Call a tool, in any thread.

        Args:
            name: the name of the tool.
            arguments: the arguments by name.
            max_tokens: the limit of the result.

        Raises:
            QueryError: unknown tool or invalid arguments; the message says how to correct the call.
            DocindexError: the call failed.
        """
        ...


@dataclass(slots=True, eq=False)
class _Turn:
    """The model's response to one request."""

    pieces: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)

    def take(self, item: Delta | ToolCall | Usage) -> None:
        match item:
            case Delta(text):
                self.pieces.append(text)
            case ToolCall():
                self.calls.append(item)
            case Usage():
                self.usage = item

    @property
    def message(self) -> Message:
        """The turn to send back, with its calls rewritten so that every provider accepts them."""
        return Message("assistant", well_formed("".join(self.pieces)), tuple(map(_portable_call, self.calls)))


@dataclass(slots=True, eq=False)
class _Tools:
    """The tools and the remaining limits."""

    toolbox: Toolbox
    reading: Reading
    call_tokens: int
    requests: int
    calls: int
    tokens: int
    ends_at: float

    @property
    def is_over(self) -> bool:
        """Whether the model has to answer now."""
        return not self.requests or bool(self.spent)

    @property
    def spent(self) -> str:
        """The limit that rules out another call; empty if a call is allowed."""
        if not self.calls:
            return "no call is left"
        if self.tokens < _MIN_RESULT_TOKENS:
            return "no tokens are left for what tools give"
        return "no time is left" if time.monotonic() >= self.ends_at else ""

    async def call(self, call: ToolCall) -> tuple[Step, Message]:
        """Call a tool and return a step for the user and a message for the model."""
        step = Step(well_formed(call.name), well_formed(call.arguments), "")
        if spent := self.spent:
            return replace(step, outcome=f"not done: {spent}", is_error=True), _result(call, f"Not done: {spent}.")
        self.calls -= 1
        try:
            result = await self._run(call)
            read, text = self._render(result)
        except QueryError as error:
            return self._fail(step, call, str(error), str(error))
        except TimeoutError:
            return self._fail(step, call, "it did not finish in the time left", "no time is left")
        except (DocindexError, OSError) as error:
            # Only the user sees the reason, not the model.
            return self._fail(step, call, "the tool failed", str(error))
        self.tokens -= _tokens(text)
        return replace(step, outcome=on_one_line(result.outcome), passages=read.new), _result(call, text)

    async def _run(self, call: ToolCall) -> ToolResult:
        """Run a call within the remaining time. A call that times out is canceled, and its result is dropped."""
        arguments, is_cancelled = _arguments(call), Event()
        try:
            async with asyncio.timeout(self.ends_at - time.monotonic()):
                with cancellation.cancel_when(is_cancelled.is_set):
                    return await asyncio.to_thread(self.toolbox.call, call.name, arguments, self._result_tokens)
        finally:
            is_cancelled.set()

    def _render(self, result: ToolResult) -> tuple[Read, str]:
        """Return as many of the passages as fit, numbered, and the message that shows the result to the model."""

        def shown(read: Read) -> str:
            missing = f"Passages that did not fit: {read.left_out}." if read.left_out else ""
            note = " ".join(filter(None, [missing, self._calls_note]))
            return prompt.found(read.new, read.again, result.text, note)

        read = self.reading.add(result.context or _NOTHING, lambda read: _tokens(shown(read)) <= self._result_tokens)
        text = shown(read)
        if _tokens(text) > self._result_tokens:
            raise QueryError(f"the result exceeds the {self._result_tokens:,} tokens left for it")
        return read, text

    def _fail(self, step: Step, call: ToolCall, problem: str, reason: str) -> tuple[Step, Message]:
        text = prompt.failed(truncate_middle(problem, _MAX_PROBLEM_CHARS), self._calls_note)
        self.tokens -= _tokens(text)
        outcome = on_one_line(truncate_middle(reason, _MAX_OUTCOME_CHARS))
        return replace(step, outcome=outcome, is_error=True), _result(call, text)

    @property
    def _result_tokens(self) -> int:
        return min(self.call_tokens, self.tokens)

    @property
    def _calls_note(self) -> str:
        return f"Calls left: {self.calls}." if self.calls <= _LOW_CALLS else ""


async def investigate(
    model: BudgetedChat,
    messages: Sequence[Message],
    toolbox: Toolbox,
    reading: Reading,
    *,
    max_tokens: int,
    limits: Limits = _LIMITS,
) -> AsyncGenerator[Delta | Step | Usage, None]:
    """Yield the answer as it is written, and a step for each tool call before it.

    A response without tool calls is the answer. Once a limit is reached, or the budget would not cover a further
    request and the answer, the model is asked to answer and is offered no tools.

    Args:
        model: the model that answers.
        messages: the rules for an agent, the conversation and the question.
        toolbox: the tools that the model may call.
        reading: collects the passages that the tools find.
        max_tokens: the limit of an answer.
        limits: the limits of the search before the answer.

    Raises:
        LLMError: the model failed.
    """
    conversation, is_prompt_cut = list(messages), False
    tools = _Tools(
        toolbox,
        reading,
        call_tokens=limits.call_tokens,
        requests=limits.requests,
        calls=limits.calls,
        tokens=_tool_tokens(limits, model, messages, toolbox.tools, max_tokens),
        ends_at=time.monotonic() + limits.seconds,
    )
    while not tools.is_over and model.pays(conversation, toolbox.tools, max_tokens=max_tokens, requests=2):
        tools.requests -= 1
        turn = _Turn()
        try:
            async with aclosing(model.stream(conversation, toolbox.tools, max_tokens=max_tokens)) as stream:
                async for item in _start_in_time(stream, tools.ends_at):
                    turn.take(item)
                    if isinstance(item, Delta):
                        yield item
        except TimeoutError:
            break
        is_prompt_cut |= turn.usage.is_prompt_cut
        if not turn.calls:
            yield replace(turn.usage, is_prompt_cut=is_prompt_cut)
            return
        conversation.append(turn.message)
        for call in turn.calls:
            step, result = await tools.call(call)
            conversation.append(result)
            yield step
    conversation.append(Message("user", prompt.ANSWER_NOW))
    async with aclosing(model.stream(conversation, max_tokens=max_tokens)) as stream:
        async for item in stream:
            if isinstance(item, Delta):
                yield item
            elif isinstance(item, Usage):
                yield replace(item, is_prompt_cut=is_prompt_cut or item.is_prompt_cut)


async def _start_in_time(items: Stream, ends_at: float) -> Stream:
    """Yield the items of an answer whose first word arrives in time. Once started, it is read to the end.

    Raises:
        TimeoutError: no text in time.
    """
    has_begun = False
    while True:
        try:
            async with asyncio.timeout(None if has_begun else ends_at - time.monotonic()):
                item = await anext(items)
        except StopAsyncIteration:
            return
        has_begun |= isinstance(item, Delta)
        yield item


def _tool_tokens(
    limits: Limits, model: BudgetedChat, messages: Sequence[Message], tools: Sequence[Tool], max_tokens: int
) -> int:
    """Return how many tokens the tool results may have, so that they fit into the model's window."""
    if model.context_tokens is None:
        return limits.tokens
    return min(limits.tokens, prompt.room(model.context_tokens, prompt.texts_of(messages, tools), max_tokens))


def _arguments(call: ToolCall) -> dict[str, Any]:
    """Return the arguments of a call, with characters that cannot be encoded replaced.

    Raises:
        QueryError: the arguments are not a JSON object.
    """
    try:
        values = json.loads(call.arguments)
        values = json.loads(well_formed(json.dumps(values, ensure_ascii=False)))
    except (ValueError, RecursionError):
        raise QueryError("invalid arguments: not JSON") from None
    if not isinstance(values, dict):
        raise QueryError("invalid arguments: not a JSON object")
    return values


def _portable_call(call: ToolCall) -> ToolCall:
    """Return a call that every provider accepts. Some reject names or arguments that their own model wrote."""
    try:
        arguments = json.dumps(_arguments(call))
    except QueryError:
        arguments = "{}"
    return ToolCall(call.id, _INVALID_NAME_CHARS.sub("_", call.name)[:_MAX_NAME_CHARS] or "_", arguments)


def _result(call: ToolCall, text: str) -> Message:
    return Message("tool", text, tool_call_id=call.id)


def _tokens(text: str) -> int:
    return count_tokens([text])[0]
