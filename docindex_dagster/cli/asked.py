"""Questions of one command, which may go on from each other, each answered and shown."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import aclosing
from threading import Thread
from types import TracebackType
from typing import Self

from docindex_dagster.answering.agent import Toolbox
from docindex_dagster.answering.answer import answer
from docindex_dagster.answering.conversation import Conversation
from docindex_dagster.answering.events import Answer, Event, Found, Step
from docindex_dagster.answering.question import Question
from docindex_dagster.cli import answers, console
from docindex_dagster.core.errors import LLMBudgetError, LLMError
from docindex_dagster.llm.chat import ChatModel, Delta, prepare
from docindex_dagster.llm.providers import chat_model
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.freshness import files_of
from docindex_dagster.search.live import Live
from docindex_dagster.sources import registry
from docindex_dagster.stores.reader import Reader


class Asked:
    """A conversation of which a terminal shows each answer as it comes."""

    def __init__(
        self,
        live: Live,
        filters: Callable[[Reader], Filters],
        tokens: int,
        *,
        is_for_agent: bool,
        has_model: bool,
    ) -> None:
        """Nothing is asked yet; see `Question` for the arguments.

        Raises:
            LLMError: the model that the settings name cannot be used.
        """
        self._live, self._filters, self._tokens, self._is_for_agent = live, filters, tokens, is_for_agent
        own = live.settings
        self.model: ChatModel | None = chat_model(own.llm) if has_model and own.llm.provider != "none" else None
        # While the search is under way.
        Thread(target=prepare, args=(self.model,), daemon=True).start()
        self.conversation = Conversation()
        self.last: Answer | None = None
        self._runner = asyncio.Runner()
        self.shown = answers.Shown(own.home, files_of(registry.sources(own)), is_streaming=sys.stdout.isatty())

    def __enter__(self) -> Self:
        """Questions can be asked until the block ends."""
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Close the model's connections."""
        if self.model:
            self._runner.run(self.model.aclose())
        self._runner.close()

    def ask(self, text: str, *, as_json: bool = False) -> None:
        """Ask, and show the answer.

        Raises:
            DocindexError: as `answering.answer.answer`.
            KeyboardInterrupt: the user stopped it.
        """
        question = Question(text, self._filters, self._tokens, self._is_for_agent)
        if self._is_for_agent and self.model and not self.model.has_tools:
            console.warning(f"{self.model.name} takes no tools, so it answers from what the search finds")
        try:
            events = self._runner.run(self._answered(question, is_shown=not as_json))
        except LLMBudgetError:
            raise
        except LLMError as error:
            error.add_note("--no-llm shows the best passages, --check whether the model can be asked")
            raise
        if as_json:
            console.as_json(answers.as_json(text, events))

    def begin_anew(self) -> None:
        """Forget what was asked."""
        self.conversation, self.last = Conversation(), None

    async def _answered(self, question: Question, *, is_shown: bool) -> list[Event]:
        """All that happened but the pieces of the text, which the answer has."""
        events: list[Event] = []
        toolbox = _toolbox(self._live, question) if self._is_for_agent else None
        async with aclosing(answer(self._live, question, self.conversation, self.model, toolbox)) as happening:
            async for event in happening:
                if is_shown:
                    self.shown.take(event)
                if isinstance(event, Answer):
                    self.conversation, self.last = event.conversation, event
                elif isinstance(event, Found | Step):
                    self.conversation = self.conversation.shown(event.passages)
                if not isinstance(event, Delta):
                    events.append(event)
        return events


def _toolbox(live: Live, question: Question) -> Toolbox:
    from docindex_dagster.serving.toolbox import toolbox_of  # loads what only an agent needs

    return toolbox_of(live, question)
