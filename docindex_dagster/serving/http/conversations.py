"""Questions and conversations of all clients.

At most `MOST` questions are answered at a time, with the configured model or without one. Conversations are kept in
memory, with limits on their number, size and age.
"""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import ExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Request

from docindex_dagster.answering.answer import answer
from docindex_dagster.answering.citations import Citation
from docindex_dagster.answering.conversation import Conversation
from docindex_dagster.answering.events import Answer, Event, Found, Step
from docindex_dagster.answering.question import Question
from docindex_dagster.core.errors import LLMError, SettingsError
from docindex_dagster.core.settings import LLMSettings
from docindex_dagster.core.traces import span
from docindex_dagster.llm.chat import Availability, ChatModel, Delta, prepare
from docindex_dagster.llm.providers import availability, chat_model
from docindex_dagster.render.html import links
from docindex_dagster.search.live_index import Live
from docindex_dagster.serving.http.problems import ProblemError, Slots, documented
from docindex_dagster.serving.http.served_project import Project
from docindex_dagster.serving.question_tools import QuestionTools

router = APIRouter(tags=["ask"])
MOST = 16
"""Maximum number of questions answered concurrently."""
PROBLEMS = ("query", "no-index", "settings", "upstream", "upstream-limit", "upstream-late", "budget")
"""Problems that any question may cause."""
_RETRY_AFTER_S = 5
_FRESH_S = 5.0  # how long the result of a model check is reused
_MAX_CONVERSATIONS = 1000
_MAX_CHARS = 50_000_000  # of all conversations
_MAX_AGE_S = 12 * 60 * 60.0  # since the last question
_WAIT_S = 1.0  # for a question whose client has just left


@dataclass(slots=True, eq=False)
class _Opened:
    settings: LLMSettings
    model: ChatModel
    questions: int = 0  # currently in progress


class Models:
    """The configured model, opened when a question needs it and replaced when the settings name another.

    A model may take long to load. Other requests do not wait for it.
    """

    def __init__(self) -> None:
        """Create without an open model."""
        self._opened: _Opened | None = None
        self._opening = asyncio.Lock()
        self._looking = asyncio.Lock()
        self._looked: tuple[LLMSettings, float, Availability] | None = None

    @asynccontextmanager
    async def borrow(self, settings: LLMSettings) -> AsyncIterator[ChatModel]:
        """Yield the model for some settings and keep it open within the block.

        Raises:
            LLMError: the model cannot be loaded.
        """
        opened = await self._of(settings)
        opened.questions += 1
        try:
            yield opened.model
        finally:
            opened.questions -= 1
            await self._close_if_unused(opened)

    async def availability(self, settings: LLMSettings) -> Availability:
        """Return whether the model can answer. The result may be some seconds old."""
        async with self._looking:
            if self._looked is not None:
                known, at, found = self._looked
                if known == settings and time.monotonic() < at + _FRESH_S:
                    return found
            found = await availability(settings)
            self._looked = (settings, time.monotonic(), found)
            return found

    async def aclose(self) -> None:
        """Close the open model once its questions have ended."""
        previous, self._opened = self._opened, None
        if previous is not None:
            await self._close_if_unused(previous)

    async def _of(self, settings: LLMSettings) -> _Opened:
        async with self._opening:
            if self._opened is None or self._opened.settings != settings:
                model = chat_model(settings)
                await asyncio.to_thread(prepare, model)
                previous, self._opened = self._opened, _Opened(settings, model)
                if previous is not None:
                    await self._close_if_unused(previous)
            return self._opened

    async def _close_if_unused(self, opened: _Opened) -> None:
        if opened is not self._opened and not opened.questions:
            await opened.model.aclose()


class Questions:
    """Service that answers questions about a project.

    Attributes:
        models: the configured model.
        conversations: the conversations that clients may continue.
    """

    def __init__(self, live: Live, *, has_page: bool) -> None:
        """Create the service. Citations link to the page if the server has one, else to the API."""
        self.models = Models()
        self.conversations = Conversations()
        self._live = live
        self._has_page = has_page
        self._slots = Slots(MOST, "questions are being answered", _RETRY_AFTER_S)

    async def answer(
        self, question: Question, conversation: Conversation, *, extractive: bool | None
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of answering a question.

        Args:
            question: the question.
            conversation: the conversation that it continues.
            extractive: whether to answer without the model; None to do so if none is configured.

        Raises:
            ProblemError: a model is required but none is configured, or too many questions are in progress.
            DocindexError: see `answer`.
        """
        with self._slots.take():
            async with self._model(extractive=extractive) as model:
                toolbox = QuestionTools(self._live, question) if question.is_for_agent else None
                by = "nobody" if model is None else "model" if toolbox is None else "agent"
                stream = answer(self._live, question, conversation, model, toolbox)
                with span("question", by=by), ExitStack() as until_first_word:
                    async with aclosing(stream) as events:
                        async for event in events:
                            if isinstance(event, Found):
                                until_first_word.enter_context(span("first word"))
                            elif isinstance(event, Delta):
                                until_first_word.close()
                            yield event

    async def prepare(self) -> None:
        """Open the model, so that the first question does not have to wait for it."""
        with suppress(SettingsError, LLMError):
            if (settings := self._live.settings.llm).provider != "none":
                async with self.models.borrow(settings):
                    pass

    async def aclose(self) -> None:
        """Close the model."""
        await self.models.aclose()

    def address(self, citation: Citation) -> str:
        """Return the URL of the cited lines on this server."""
        passage = citation.passage
        if passage is None:
            return ""
        to_file = links.to_file if self._has_page else links.api_of_file
        return to_file(passage.source, passage.path, citation.start_line, citation.end_line)

    @asynccontextmanager
    async def _model(self, *, extractive: bool | None) -> AsyncIterator[ChatModel | None]:
        settings = self._live.settings.llm
        if extractive or (extractive is None and settings.provider == "none"):
            yield None
            return
        if settings.provider == "none":
            raise ProblemError(
                "no-model", "set llm.provider and llm.model in docindex.toml; see docs/how-to/ask-questions.md"
            )
        async with self.models.borrow(settings) as model:
            yield model


def _questions(request: Request) -> Questions:
    found: Questions = request.app.state.questions
    return found


Answering = Annotated[Questions, Depends(_questions)]


@dataclass(frozen=True, slots=True)
class LLMStatus:
    """The configured language model, and whether it can answer, as far as a check without a question can tell.

    Attributes:
        provider: the configured provider; `none` if no model is configured.
        model: the name of the model; null for the provider's default.
        host: the host and port of an endpoint other than the provider's own.
        is_configured: whether the settings name the model and its package or program is installed.
        is_reachable: whether the endpoint responds; null if only a question would show it.
        is_logged_in: whether the key or login is accepted; null if only a question would show it.
        version: the version of the server, program or client library.
        problem: why the model cannot answer, and what to do about it; empty if no problem was found.
    """

    provider: str
    model: str | None
    host: str | None
    is_configured: bool
    is_reachable: bool | None
    is_logged_in: bool | None
    version: str | None
    problem: str


@router.get("/llm", responses=documented("settings"))
async def llm(project: Project, answering: Answering) -> LLMStatus:
    """Return the configured language model and whether it can answer. The result may be five seconds old."""
    own = project.settings.llm
    found = await answering.models.availability(own)
    host = urlsplit(own.base_url).netloc.rpartition("@")[2] if own.base_url else None
    return LLMStatus(provider=own.provider, host=host, **asdict(found))


@dataclass(slots=True, eq=False)
class Talk:
    """A conversation while one of its questions is answered.

    Attributes:
        id: the id for clients.
        conversation: the current state.
    """

    id: str
    conversation: Conversation

    def note(self, event: Event) -> None:
        """Add an event. Passage numbers that a client has seen are not reused, even if no answer follows."""
        match event:
            case Answer():
                self.conversation = event.conversation
            case Found() | Step():
                self.conversation = self.conversation.shown(event.passages)


@dataclass(frozen=True, slots=True)
class _Entry:
    conversation: Conversation
    used_at: float
    chars: int


class Conversations:
    """The most recently used conversations."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Create without conversations."""
        self._clock = clock
        self._entries: OrderedDict[str, _Entry] = OrderedDict()  # in order of last use
        self._chars = 0
        self._in_progress: dict[str, asyncio.Event] = {}  # set when the question ends

    @asynccontextmanager
    async def resume(self, name: str | None) -> AsyncIterator[Talk]:
        """Yield a conversation for exclusive use by one more question.

        Args:
            name: the id; None for a new conversation, whose id is as hard to guess as a key.

        Raises:
            ProblemError: the conversation is unknown, or another of its questions is being answered.
        """
        if name is None:
            talk = Talk(secrets.token_urlsafe(), Conversation())
        else:
            await self._end_of_question(name)
            known = self.get(name)
            if known is None:
                raise ProblemError("unknown-conversation", "the conversation has expired or never existed")
            talk = Talk(name, known)
        ended = self._in_progress[talk.id] = asyncio.Event()
        try:
            yield talk
        finally:
            del self._in_progress[talk.id]
            ended.set()
            if talk.conversation.turns:
                self.put(talk.id, talk.conversation)

    def get(self, name: str) -> Conversation | None:
        """Return a conversation; None if it is unknown or has expired."""
        self._evict()
        entry = self._entries.get(name)
        return entry.conversation if entry else None

    def put(self, name: str, conversation: Conversation) -> None:
        """Store a conversation under a name."""
        self._drop(name)
        chars = sum(len(passage.text) for passage in conversation.passages.kept)
        chars += sum(len(turn.question) + len(turn.answer) for turn in conversation.turns)
        self._entries[name] = _Entry(conversation, self._clock(), chars)
        self._chars += chars
        self._evict()

    async def _end_of_question(self, name: str) -> None:
        """Wait briefly for the current question to end, as it does soon after its client has disconnected."""
        ongoing = self._in_progress.get(name)
        if ongoing is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_WAIT_S):
                    await ongoing.wait()
        if name in self._in_progress:
            raise ProblemError("conversation-busy", "a conversation answers one question at a time")

    def _evict(self) -> None:
        """Drop the oldest conversations if there are too many or they have expired."""
        oldest_used_at = self._clock() - _MAX_AGE_S
        while self._entries:
            name, entry = next(iter(self._entries.items()))
            is_too_much = len(self._entries) > _MAX_CONVERSATIONS or self._chars > _MAX_CHARS
            if not is_too_much and entry.used_at >= oldest_used_at:
                return
            self._drop(name)

    def _drop(self, name: str) -> None:
        entry = self._entries.pop(name, None)
        self._chars -= entry.chars if entry else 0
