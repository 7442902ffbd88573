"""Questions and conversations of all clients.

At most `MOST` questions are answered at a time, by the model of the settings or without one. Conversations are kept in
memory, within limits of number, size and age.
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
from docindex_dagster.serving.http.problems import Places, ProblemError, documented
from docindex_dagster.serving.http.served_project import Project
from docindex_dagster.serving.question_tools import QuestionTools

router = APIRouter(tags=["ask"])
MOST = 16
"""Questions that are answered at a time."""
PROBLEMS = ("query", "no-index", "settings", "upstream", "upstream-limit", "upstream-late", "budget")
"""That any question may meet."""
_RETRY_AFTER_S = 5
_FRESH_S = 5.0  # how long a look at a model is good for
_MOST_KEPT = 1000
_MOST_CHARS = 50_000_000  # of all of them
_LONGEST_S = 12 * 60 * 60.0  # since the last question
_WAIT_S = 1.0  # for a question whose client has just left


@dataclass(slots=True, eq=False)
class _Opened:
    settings: LLMSettings
    model: ChatModel
    questions: int = 0  # that it is asked at this moment


class Models:
    """Opens the model of the settings when a question needs it, and another one when they name another.

    A model may take long to load, which no other request waits for.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._opened: _Opened | None = None
        self._opening = asyncio.Lock()
        self._looking = asyncio.Lock()
        self._looked: tuple[LLMSettings, float, Availability] | None = None

    @asynccontextmanager
    async def lent(self, settings: LLMSettings) -> AsyncIterator[ChatModel]:
        """The model of some settings, which stays open for as long.

        Raises:
            LLMError: it cannot be loaded.
        """
        one = await self._of(settings)
        one.questions += 1
        try:
            yield one.model
        finally:
            one.questions -= 1
            await self._close_if_unused(one)

    async def availability(self, settings: LLMSettings) -> Availability:
        """Whether it can be asked, looked for again after some seconds at the soonest."""
        async with self._looking:
            if self._looked is not None:
                known, at, found = self._looked
                if known == settings and time.monotonic() < at + _FRESH_S:
                    return found
            found = await availability(settings)
            self._looked = (settings, time.monotonic(), found)
            return found

    async def aclose(self) -> None:
        """Close what is open."""
        last, self._opened = self._opened, None
        if last is not None:
            await self._close_if_unused(last)

    async def _of(self, settings: LLMSettings) -> _Opened:
        async with self._opening:
            if self._opened is None or self._opened.settings != settings:
                model = chat_model(settings)
                await asyncio.to_thread(prepare, model)
                last, self._opened = self._opened, _Opened(settings, model)
                if last is not None:
                    await self._close_if_unused(last)
            return self._opened

    async def _close_if_unused(self, one: _Opened) -> None:
        if one is not self._opened and not one.questions:
            await one.model.aclose()


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
        self._places = Places(MOST, "questions are being answered", _RETRY_AFTER_S)

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
        with self._places.one():
            async with self._model(extractive=extractive) as model:
                toolbox = QuestionTools(self._live, question) if question.is_for_agent else None
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


@dataclass(frozen=True, slots=True)
class LLMStatus:
    """Which language model answers, and whether it can be asked, as far as is known without asking it anything.

    Attributes:
        provider: of the settings; `none` where no model is set.
        model: the one that is asked; null for the provider's default.
        host: of another endpoint than the provider's own, with its port.
        is_configured: whether the settings name it, and its package or program is there.
        is_reachable: whether it answers; null where only a question would show it.
        is_logged_in: whether the key or login is accepted; null where only a question would show it.
        version: of the server, program or client library.
        problem: why it cannot be asked, and what to do; empty where nothing speaks against it.
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
    """Say which language model answers, and whether it can be asked; what is known may be five seconds old."""
    own = project.settings.llm
    found = await answering.models.availability(own)
    host = urlsplit(own.base_url).netloc.rpartition("@")[2] if own.base_url else None
    return LLMStatus(provider=own.provider, host=host, **asdict(found))


@dataclass(slots=True, eq=False)
class Talk:
    """A conversation while a question of it is answered.

    Attributes:
        id: by which clients name it.
        conversation: as it is now.
    """

    id: str
    conversation: Conversation

    def note(self, event: Event) -> None:
        """Take what happened. No number that a client has seen is given again, even where no answer comes."""
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
    """Those that were used last."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without any."""
        self._clock = clock
        self._entries: OrderedDict[str, _Entry] = OrderedDict()  # the one that was used last is the last one
        self._chars = 0
        self._under_way: dict[str, asyncio.Event] = {}  # set when the question has ended

    @asynccontextmanager
    async def continued(self, name: str | None) -> AsyncIterator[Talk]:
        """A conversation for one more question, which has it for itself.

        Args:
            name: its id; None begins one, whose id is as hard to guess as a key.

        Raises:
            ProblemError: there is none of this name, or another question of it is being answered.
        """
        if name is None:
            talk = Talk(secrets.token_urlsafe(), Conversation())
        else:
            await self._end_of_question(name)
            known = self.get(name)
            if known is None:
                raise ProblemError("unknown-conversation", "it was forgotten, or has never been here")
            talk = Talk(name, known)
        ended = self._under_way[talk.id] = asyncio.Event()
        try:
            yield talk
        finally:
            del self._under_way[talk.id]
            ended.set()
            if talk.conversation.turns:
                self.put(talk.id, talk.conversation)

    def get(self, name: str) -> Conversation | None:
        """The one of a name; None where it is not there, or no longer."""
        self._forget()
        entry = self._entries.get(name)
        return entry.conversation if entry else None

    def put(self, name: str, conversation: Conversation) -> None:
        """Keep one under a name."""
        self._drop(name)
        chars = sum(len(passage.text) for passage in conversation.passages.kept)
        chars += sum(len(turn.question) + len(turn.answer) for turn in conversation.turns)
        self._entries[name] = _Entry(conversation, self._clock(), chars)
        self._chars += chars
        self._forget()

    async def _end_of_question(self, name: str) -> None:
        """Wait for the end of the question that is being answered, which is near where its client has left."""
        under_way = self._under_way.get(name)
        if under_way is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_WAIT_S):
                    await under_way.wait()
        if name in self._under_way:
            raise ProblemError("conversation-busy", "one question of a conversation is answered at a time")

    def _forget(self) -> None:
        """Drop the oldest ones, as far as there are too many or they are too old."""
        oldest_used_at = self._clock() - _LONGEST_S
        while self._entries:
            name, entry = next(iter(self._entries.items()))
            is_too_much = len(self._entries) > _MOST_KEPT or self._chars > _MOST_CHARS
            if not is_too_much and entry.used_at >= oldest_used_at:
                return
            self._drop(name)

    def _drop(self, name: str) -> None:
        entry = self._entries.pop(name, None)
        self._chars -= entry.chars if entry else 0
