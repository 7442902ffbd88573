"""An agent: a model that looks further by itself before it answers, with tools that only read, within bounds."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

from docindex_dagster.answering.events import Step
from docindex_dagster.answering.reading import Reading
from docindex_dagster.llm.budget import BudgetedChat
from docindex_dagster.llm.chat import Delta, Message, Tool, Usage
from docindex_dagster.search.context import Context


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
        """What the model is told of them."""
        ...

    def call(self, name: str, arguments: Mapping[str, Any]) -> Looked:
        """Call one, in any thread.

        Raises:
            QueryError: there is no such tool, or the arguments are wrong; the message says how to mend the call.
            DocindexError: it could not be done.
        """
        ...


async def investigate(
    model: BudgetedChat, messages: Sequence[Message], toolbox: Toolbox, reading: Reading, *, max_tokens: int
) -> AsyncGenerator[Delta | Step | Usage, None]:
    """The answer as it is written, and each tool that is called before."""
    async with aclosing(model.stream(messages, toolbox.tools, max_tokens=max_tokens)) as items:
        async for item in items:
            if isinstance(item, Delta | Usage):
                yield item
            else:
                yield Step(item.name, item.arguments, toolbox.call(item.name, item.values()).outcome)
