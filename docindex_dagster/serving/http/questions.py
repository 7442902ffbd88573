"""Questions of all clients: so many at a time, answered by the one model of the settings, or by none."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import ExitStack, aclosing, asynccontextmanager, contextmanager, suppress
from typing import Annotated

from fastapi import Depends, Request

from docindex_dagster.answering.answer import answer
from docindex_dagster.answering.citations import Citation
from docindex_dagster.answering.conversation import Conversation
from docindex_dagster.answering.events import Event, Found
from docindex_dagster.answering.question import Question
from docindex_dagster.core.errors import LLMError, SettingsError
from docindex_dagster.core.traces import span
from docindex_dagster.llm.chat import ChatModel, Delta
from docindex_dagster.search.live import Live
from docindex_dagster.serving.http.conversations import Conversations
from docindex_dagster.serving.http.models import Models
from docindex_dagster.serving.http.problems import ProblemError
from docindex_dagster.serving.toolbox import toolbox_of
from docindex_dagster.serving.web import links

MOST = 16
"""Questions that are answered at a time."""
PROBLEMS = ("query", "no-index", "settings", "upstream", "upstream-limit", "upstream-late", "budget")
"""That any question may meet."""
_RETRY_AFTER_S = 5


class Questions:
    """Answers questions on a project.

    Attributes:
        models: the model that answers.
        conversations: those that clients may go on with.
    """

    def __init__(self, live: Live, *, has_page: bool) -> None:
        """Answer from a project; citations lead to the page, where there is one, and else to the API."""
        self.models = Models()
        self.conversations = Conversations()
        self._live = live
        self._has_page = has_page
        self._under_way = 0

    async def answered(
        self, question: Question, conversation: Conversation, *, extractive: bool | None
    ) -> AsyncGenerator[Event, None]:
        """What happens while a question is answered.

        Args:
            question: what is asked.
            conversation: that it goes on from.
            extractive: whether without the model; None for without one where none is set.

        Raises:
            ProblemError: no model is set and one is wanted, or too many questions are being answered.
            DocindexError: as `answer`.
        """
        with self._place():
            async with self._model(extractive=extractive) as model:
                toolbox = toolbox_of(self._live, question) if question.is_for_agent else None
                by = "nobody" if model is None else "model" if toolbox is None else "agent"
                answered = answer(self._live, question, conversation, model, toolbox)
                with span("question", by=by), ExitStack() as until_first_word:
                    async with aclosing(answered) as events:
                        async for event in events:
                            if isinstance(event, Found):
                                until_first_word.enter_context(span("first word"))
                            elif isinstance(event, Delta):
                                until_first_word.close()
                            yield event

    async def prepare(self) -> None:
        """Open the model, which the first question would wait for."""
        with suppress(SettingsError, LLMError):
            if (settings := self._live.settings.llm).provider != "none":
                async with self.models.lent(settings):
                    pass

    async def aclose(self) -> None:
        """Close the model."""
        await self.models.aclose()

    def address(self, citation: Citation) -> str:
        """The lines that are cited, on this server."""
        passage = citation.passage
        if passage is None:
            return ""
        to_file = links.to_file if self._has_page else links.api_of_file
        return to_file(passage.source, passage.path, citation.start_line, citation.end_line)

    @contextmanager
    def _place(self) -> Iterator[None]:
        if self._under_way >= MOST:
            detail = f"{self._under_way} questions are being answered"
            raise ProblemError("busy", detail, {"Retry-After": str(_RETRY_AFTER_S)})
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1

    @asynccontextmanager
    async def _model(self, *, extractive: bool | None) -> AsyncIterator[ChatModel | None]:
        settings = self._live.settings.llm
        if extractive or (extractive is None and settings.provider == "none"):
            yield None
            return
        if settings.provider == "none":
            raise ProblemError("no-model", "set llm.provider and llm.model in docindex.toml; see docs/answers.md")
        async with self.models.lent(settings) as model:
            yield model


def _questions(request: Request) -> Questions:
    found: Questions = request.app.state.questions
    return found


Answering = Annotated[Questions, Depends(_questions)]
