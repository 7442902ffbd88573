"""Whole answers of a model that chats, for work on many texts."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from docindex_dagster.llm.chat import ChatModel, Delta, Message, Usage
from docindex_dagster.llm.protocol import Completion


@dataclass(frozen=True, slots=True)
class WholeAnswers:
    """Asks a model that chats, and waits until it has answered.

    Attributes:
        name: of the model.
        connect: makes the model anew for each answer, as each thread that asks has an event loop of its own.
    """

    name: str
    connect: Callable[[], ChatModel]

    def complete(self, system: str, text: str, max_tokens: int) -> Completion:
        """Answer a text.

        Raises:
            LLMError: no attempt gave a completion.
        """
        return asyncio.run(self._complete([Message("system", system), Message("user", text)], max_tokens))

    async def _complete(self, messages: list[Message], max_tokens: int) -> Completion:
        model = self.connect()
        try:
            async with aclosing(model.stream(messages, max_tokens=max_tokens)) as stream:
                items = [item async for item in stream]
        finally:
            await model.aclose()
        usage = next((item for item in items if isinstance(item, Usage)), Usage())
        text = "".join(item.text for item in items if isinstance(item, Delta))
        return Completion(text, usage.prompt_tokens, usage.completion_tokens)
