"""The conversations of a server, in its memory: so many, for so long."""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from docindex_dagster.answering.conversation import Conversation
from docindex_dagster.answering.events import Answer, Event, Found, Step
from docindex_dagster.serving.http.problems import ProblemError

_MOST = 1000
_MOST_CHARS = 50_000_000  # of all of them
_LONGEST_S = 12 * 60 * 60.0  # since the last question
_WAIT_S = 1.0  # for a question whose client has just left


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
            is_too_much = len(self._entries) > _MOST or self._chars > _MOST_CHARS
            if not is_too_much and entry.used_at >= oldest_used_at:
                return
            self._drop(name)

    def _drop(self, name: str) -> None:
        entry = self._entries.pop(name, None)
        self._chars -= entry.chars if entry else 0
