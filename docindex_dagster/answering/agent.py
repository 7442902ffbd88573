"""An agent: a model that looks further by itself before it answers, with tools that only read, within bounds."""

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
from docindex_dagster.core.safe_text import in_line, shortened, well_formed
from docindex_dagster.core.tokenizer import count_tokens
from docindex_dagster.llm.budget import BudgetedChat
from docindex_dagster.llm.chat import Delta, Message, Stream, Tool, ToolCall, Usage
from docindex_dagster.search import cancellation
from docindex_dagster.search.context import Context

_LEAST_TOKENS = 200  # for what a tool gives; with less, none is called
_FEW_CALLS = 3  # are said to be left
_LONGEST_PROBLEM = 1000  # characters
_LONGEST_OUTCOME = 200
_LONGEST_NAME = 64
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")  # of what providers take in the name of a tool


@dataclass(frozen=True, slots=True)
class Limits:
    """How far an agent may look before it has to answer.

    Attributes:
        requests: to the model that offer it tools.
        calls: of tools, those that fail included.
        tokens: of all that the tools give.
        call_tokens: of what one call gives.
        seconds: of all that comes before the answer.
    """

    requests: int = 8
    calls: int = 12
    tokens: int = 24_000
    call_tokens: int = 4_000
    seconds: float = 120.0


_LIMITS = Limits()
_NOTHING = Context("", 0, 0, 0, ())


@dataclass(frozen=True, slots=True)
class Looked:
    """What a tool gives.

    Attributes:
        outcome: in a line, for the user.
        text: for the model, beside the passages.
        context: passages, which get numbers.
    """

    outcome: str
    text: str = ""
    context: Context | None = None


class Toolbox(Protocol):
    """The tools that an agent may call; they only read, and what they give meets the question's filters."""

    @property
    def tools(self) -> Sequence[Tool]:
        """What the model learns of them."""
        ...

    def call(self, name: str, arguments: Mapping[str, Any], max_tokens: int) -> Looked:
        """Call one, in any thread.

        Args:
            name: of the tool.
            arguments: by their names.
            max_tokens: of what it gives.

        Raises:
            QueryError: there is no such tool, or the arguments are wrong; the message says how to mend the call.
            DocindexError: it could not be done.
        """
        ...


@dataclass(slots=True, eq=False)
class _Turn:
    """What the model writes for one request."""

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
        """The turn as it is sent back: with calls that every provider takes, also where the model's are none."""
        return Message("assistant", well_formed("".join(self.pieces)), tuple(map(_sent, self.calls)))


@dataclass(slots=True, eq=False)
class _Tools:
    """The tools, while there is something left of the limits."""

    toolbox: Toolbox
    reading: Reading
    call_tokens: int
    requests: int
    calls: int
    tokens: int
    ends_at: float

    @property
    def is_over(self) -> bool:
        """Whether the model has to answer."""
        return not self.requests or bool(self.spent)

    @property
    def spent(self) -> str:
        """What is not left for a call; empty where it may be made."""
        if not self.calls:
            return "no call is left"
        if self.tokens < _LEAST_TOKENS:
            return "no tokens are left for what tools give"
        return "no time is left" if time.monotonic() >= self.ends_at else ""

    async def call(self, call: ToolCall) -> tuple[Step, Message]:
        """Call one: what the user learns, and what the model does."""
        step = Step(well_formed(call.name), well_formed(call.arguments), "")
        if spent := self.spent:
            return replace(step, outcome=f"not done: {spent}", is_error=True), _answer(call, f"Not done: {spent}.")
        self.calls -= 1
        try:
            looked = await self._looked(call)
            read, text = self._shown(looked)
        except QueryError as error:
            return self._failed(step, call, str(error), str(error))
        except TimeoutError:
            return self._failed(step, call, "it did not end in the time that was left", "no time is left")
        except (DocindexError, OSError) as error:
            return self._failed(step, call, "the tool failed", str(error))  # the reason is for the user alone
        self.tokens -= _tokens(text)
        return replace(step, outcome=in_line(looked.outcome), passages=read.new), _answer(call, text)

    async def _looked(self, call: ToolCall) -> Looked:
        """What a call gives, if it does in time. One that nobody waits for is given up: it ends, or is forgotten."""
        arguments, is_given_up = _arguments(call), Event()
        try:
            async with asyncio.timeout(self.ends_at - time.monotonic()):
                with cancellation.until(is_given_up.is_set):
                    return await asyncio.to_thread(self.toolbox.call, call.name, arguments, self._room)
        finally:
            is_given_up.set()

    def _shown(self, looked: Looked) -> tuple[Read, str]:
        """The passages under their numbers, and the message that shows what was found; as many as fit."""

        def shown(read: Read) -> str:
            missing = f"Passages that did not fit: {read.left_out}." if read.left_out else ""
            note = " ".join(filter(None, [missing, self._note]))
            return prompt.found(read.new, read.again, looked.text, note)

        read = self.reading.add(looked.context or _NOTHING, lambda read: _tokens(shown(read)) <= self._room)
        text = shown(read)
        if _tokens(text) > self._room:
            raise QueryError(f"what it gives is larger than the {self._room:,} tokens that are left for it")
        return read, text

    def _failed(self, step: Step, call: ToolCall, problem: str, reason: str) -> tuple[Step, Message]:
        text = prompt.failed(shortened(problem, _LONGEST_PROBLEM), self._note)
        self.tokens -= _tokens(text)
        outcome = in_line(shortened(reason, _LONGEST_OUTCOME))
        return replace(step, outcome=outcome, is_error=True), _answer(call, text)

    @property
    def _room(self) -> int:
        return min(self.call_tokens, self.tokens)

    @property
    def _note(self) -> str:
        return f"Calls left: {self.calls}." if self.calls <= _FEW_CALLS else ""


async def investigate(
    model: BudgetedChat,
    messages: Sequence[Message],
    toolbox: Toolbox,
    reading: Reading,
    *,
    max_tokens: int,
    limits: Limits = _LIMITS,
) -> AsyncGenerator[Delta | Step | Usage, None]:
    """The answer as it is written, and each tool that is called before.

    A model that calls no tool answers. One that goes on to call them is asked for its answer once a limit is reached,
    or the budget would pay no further request and the answer; then none is offered.

    Args:
        model: who answers.
        messages: the rules for an agent, the conversation, the question.
        toolbox: what it may call.
        reading: takes the passages that are found.
        max_tokens: of an answer.
        limits: how far it may look.

    Raises:
        LLMError: of the model.
    """
    talk, is_prompt_cut = list(messages), False
    tools = _Tools(
        toolbox,
        reading,
        call_tokens=limits.call_tokens,
        requests=limits.requests,
        calls=limits.calls,
        tokens=_tokens_of_tools(limits, model, messages, toolbox.tools, max_tokens),
        ends_at=time.monotonic() + limits.seconds,
    )
    while not tools.is_over and model.pays(talk, toolbox.tools, max_tokens=max_tokens, requests=2):
        tools.requests -= 1
        turn = _Turn()
        try:
            async with aclosing(model.stream(talk, toolbox.tools, max_tokens=max_tokens)) as stream:
                async for item in _begun_in_time(stream, tools.ends_at):
                    turn.take(item)
                    if isinstance(item, Delta):
                        yield item
        except TimeoutError:
            break
        is_prompt_cut |= turn.usage.is_prompt_cut
        if not turn.calls:
            yield replace(turn.usage, is_prompt_cut=is_prompt_cut)
            return
        talk.append(turn.message)
        for call in turn.calls:
            step, answered = await tools.call(call)
            talk.append(answered)
            yield step
    talk.append(Message("user", prompt.ANSWER_NOW))
    async with aclosing(model.stream(talk, max_tokens=max_tokens)) as stream:
        async for item in stream:
            if isinstance(item, Delta):
                yield item
            elif isinstance(item, Usage):
                yield replace(item, is_prompt_cut=is_prompt_cut or item.is_prompt_cut)


async def _begun_in_time(items: Stream, ends_at: float) -> Stream:
    """The items of an answer whose first word comes in time; what has begun may be the answer, and goes on.

    Raises:
        TimeoutError: it does not.
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


def _tokens_of_tools(
    limits: Limits, model: BudgetedChat, messages: Sequence[Message], tools: Sequence[Tool], max_tokens: int
) -> int:
    """How many tokens the tools may give: no more than fit into the model's window."""
    if model.context_tokens is None:
        return limits.tokens
    return min(limits.tokens, prompt.room(model.context_tokens, prompt.texts_of(messages, tools), max_tokens))


def _arguments(call: ToolCall) -> dict[str, Any]:
    """The arguments of a call, in which each character can be encoded.

    Raises:
        QueryError: they are none.
    """
    try:
        values = json.loads(call.arguments)
        values = json.loads(well_formed(json.dumps(values, ensure_ascii=False)))
    except (ValueError, RecursionError):
        raise QueryError("the arguments are no JSON") from None
    if not isinstance(values, dict):
        raise QueryError("the arguments are no JSON object")
    return values


def _sent(call: ToolCall) -> ToolCall:
    """A call as every provider takes it: some refuse a name or arguments that they have let a model write."""
    try:
        arguments = json.dumps(_arguments(call))
    except QueryError:
        arguments = "{}"
    return ToolCall(call.id, _NO_NAME.sub("_", call.name)[:_LONGEST_NAME] or "_", arguments)


def _answer(call: ToolCall, text: str) -> Message:
    return Message("tool", text, tool_call_id=call.id)


def _tokens(text: str) -> int:
    return count_tokens([text])[0]
