"""Answers for any client that speaks OpenAI's API: docindex is a model, and its citations are annotations.

Nothing is kept for a client: each request brings all earlier turns. A conversation is found again by a hash of them, so
that its passages keep their numbers; where that fails, new ones are numbered on from the highest that was cited.
"""

import hashlib
import json
import secrets
from asyncio import to_thread
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace

from fastapi import APIRouter, Request, Response

from docindex_dagster.answering.citations import Citation
from docindex_dagster.answering.conversation import Conversation, Turn
from docindex_dagster.answering.events import Answer, Event, Spent, Step
from docindex_dagster.answering.link_filter import LinkFilter
from docindex_dagster.answering.markdown import marks_of
from docindex_dagster.answering.question import Question
from docindex_dagster.core.safe_text import in_line
from docindex_dagster.llm.chat import Delta
from docindex_dagster.operations.fields import LONGEST_QUERY
from docindex_dagster.operations.search import Where
from docindex_dagster.serving.http import openai_form, problems
from docindex_dagster.serving.http.client_disconnect import MEDIA_TYPE, WhileItStays
from docindex_dagster.serving.http.conversations import PROBLEMS, Answering, Conversations, Questions
from docindex_dagster.serving.http.openai_form import (
    Annotation,
    ChatCompletion,
    ChatMessage,
    ChatRequest,
    Choice,
    Chunks,
    Model,
    Models,
    Reply,
    TokenUsage,
    UrlCitation,
)
from docindex_dagster.serving.http.problems import ProblemError
from docindex_dagster.serving.http.security import origin_of
from docindex_dagster.serving.http.served_project import Project, Served

router = APIRouter(prefix=openai_form.PREFIX, tags=["OpenAI"])
_PLAIN, _AGENT = "docindex", "docindex-agent"
_MODELS = Models((Model(_PLAIN), Model(_AGENT)))
_BEFORE_STEP = "\n\n"
_STREAM = {MEDIA_TYPE: {"schema": {"type": "string"}}}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client asks, and the turns before it."""

    question: str
    turns: tuple[Turn, ...]

    @classmethod
    def of(cls, messages: Sequence[ChatMessage]) -> "Asked":
        """Read messages. Those of neither the user nor the assistant are left out.

        Raises:
            ProblemError: the last one is no question that can be answered.
        """
        turns: list[Turn] = []
        asked = ""
        for message in messages:
            if message.role == "user":
                asked = f"{asked}\n\n{message.text}".strip()
            elif message.role == "assistant" and asked:
                turns.append(Turn(asked, message.text))
                asked = ""
        if not asked:
            raise ProblemError("query", "the last message is no question: it is to be one of the user, with text")
        if len(asked) > LONGEST_QUERY:
            raise ProblemError(
                "query", f"a question has {LONGEST_QUERY:,} characters at most; this one has {len(asked):,}"
            )
        return cls(asked, tuple(turns))

    def conversation(self, known: Conversations) -> Conversation:
        """What the question goes on from: the longest beginning of the turns that is known, and the rest of them."""
        names = _names(self.turns)
        for count in range(len(names), 0, -1):
            found = known.get(names[count - 1])
            if found is not None:
                return _with_turns(found, self.turns[count:])
        return _with_turns(Conversation(), self.turns)

    def name(self, answer: str) -> str:
        """Under which the conversation is kept, once the question is answered."""
        return _names([*self.turns, Turn(self.question, answer)])[-1]


@dataclass(slots=True, eq=False)
class _Text:
    """The text as a client sees it: what an agent writes before a step stays, in a paragraph of its own.

    Nothing in it is a link or a picture, which the client would show or load.
    """

    pieces: list[str] = field(default_factory=list)
    start: int = 0  # where the answer begins
    filter: LinkFilter = field(default_factory=LinkFilter)  # of the answer

    def add(self, event: Event) -> str:
        """Take an event; gives what it adds."""
        match event:
            case Delta(text):
                piece = self.filter.feed(text)
            case Step() | Answer():
                piece = self.filter.finish()
            case _:
                piece = ""
        self.pieces.append(piece)
        if isinstance(event, Step):
            if "".join(self.pieces)[self.start :].strip():
                self.pieces.append(_BEFORE_STEP)
                piece += _BEFORE_STEP
            self.start, self.filter = sum(map(len, self.pieces)), LinkFilter()
        return piece

    def place(self, citation: Citation) -> tuple[int, int]:
        """The characters that cite a passage."""
        start, end = self.filter.place(citation.start, citation.end)
        return self.start + start, self.start + end

    def __str__(self) -> str:
        return "".join(self.pieces)


@dataclass(slots=True, eq=False)
class _Exchange:
    """A request, while it is answered."""

    request: ChatRequest
    asked: Asked
    project: Served
    questions: Questions
    origin: str  # of the addresses of citations
    text: _Text = field(default_factory=_Text)
    id: str = field(default_factory=lambda: f"chatcmpl-{secrets.token_hex(12)}")

    async def events(self) -> AsyncGenerator[tuple[Event, str], None]:
        """What happens, each with what it adds to the text."""
        known, anywhere = self.questions.conversations, Where()
        conversation = await to_thread(self.asked.conversation, known)
        question = Question(
            self.asked.question,
            lambda reader: anywhere.filters(self.project.view(reader)),
            is_for_agent=self.request.model == _AGENT,
        )
        async with aclosing(self.questions.answered(question, conversation, extractive=None)) as events:
            async for event in events:
                piece = self.text.add(event)
                if isinstance(event, Answer):
                    known.put(self.asked.name(str(self.text)), event.conversation)
                yield event, piece

    async def whole(self) -> ChatCompletion:
        """All of it at the end."""
        async with aclosing(self.events()) as events:
            happened = [event async for event, _ in events]
        answer = next(event for event in happened if isinstance(event, Answer))
        spent = next(event for event in happened if isinstance(event, Spent))
        reply = Reply(str(self.text), tuple(self.annotations(answer)))
        choice = Choice(reply, "length" if answer.is_cut else "stop")
        return ChatCompletion(self.id, self.request.model, (choice,), _usage(spent))

    async def streamed(self) -> AsyncGenerator[bytes, None]:
        """The chunks as they come. Nothing is sent before the first word, so that a failure until then has a status."""
        options = self.request.stream_options
        chunks = Chunks(self.id, self.request.model, has_usage=options is not None and options.include_usage)
        has_begun, finish = False, "stop"
        async with aclosing(self.events()) as events:
            async for event, piece in events:
                if not has_begun and isinstance(event, Delta | Step):
                    has_begun = True
                    yield chunks.of({"role": "assistant", "content": ""})
                if piece:
                    yield chunks.of({"content": piece})
                if isinstance(event, Answer):
                    finish = "length" if event.is_cut else "stop"
                    if annotations := [asdict(one) for one in self.annotations(event)]:
                        yield chunks.of({"annotations": annotations})
                if isinstance(event, Spent):
                    yield chunks.of({}, finish)
                    if chunks.has_usage:
                        yield chunks.of_usage(asdict(_usage(event)))
                    yield openai_form.END

    def annotations(self, answer: Answer) -> Iterable[Annotation]:
        """The citations whose passages are there, by their places in what the client sees."""
        for citation in answer.citations:
            if citation.passage is not None:
                url = self.origin + self.questions.address(citation)
                yield Annotation(UrlCitation(url, _title(citation), *self.text.place(citation)))


@router.get("/models", responses=openai_form.documented())
def models() -> Models:
    """List what a client may choose as a model."""
    return _MODELS


@router.get("/models/{id}", responses=openai_form.documented("unknown-model"))
def model(id: str) -> Model:  # noqa: A002 the name in the path
    """Give one of them.

    Raises:
        ProblemError: there is no such one.
    """
    return _chosen(id)


@router.post(
    "/chat/completions",
    response_model=ChatCompletion,
    responses={
        200: {"description": "The answer", "content": _STREAM},
        **openai_form.documented("unknown-model", *PROBLEMS),
    },
)
async def chat_completions(project: Project, questions: Answering, asked: ChatRequest, request: Request) -> Response:
    """Answer the last message, as OpenAI's API does. Citations are annotations, which a stream has at its end.

    Messages of the system are left out, and so is every parameter but these. Without a language model the answer is
    made of passages as they are.

    Raises:
        ProblemError: there is no such model, or the last message is no question.
    """
    _chosen(asked.model)
    exchange = _Exchange(asked, Asked.of(asked.messages), project, questions, origin_of(request.scope))

    return WhileItStays(exchange, _failed, is_streamed=bool(asked.stream))


def _chosen(name: str) -> Model:
    found = next((model for model in _MODELS.data if model.id == name), None)
    if found is None:
        raise ProblemError("unknown-model", f"there is no model {name!r}; there are {_PLAIN} and {_AGENT}")
    return found


def _failed(error: Exception) -> bytes:
    return openai_form.event(openai_form.error_of(json.loads(bytes(problems.of_error(error).body))))


def _usage(spent: Spent) -> TokenUsage:
    return TokenUsage(spent.prompt_tokens, spent.completion_tokens, spent.prompt_tokens + spent.completion_tokens)


def _title(citation: Citation) -> str:
    path = in_line(citation.passage.path) if citation.passage else ""
    return f"{path}:{citation.start_line}-{citation.end_line} ({citation.state})"


def _names(turns: Sequence[Turn]) -> list[str]:
    """A name for each beginning of some turns; it holds a slash, so no client can ask for it."""
    names, hashed = [], hashlib.sha256()
    for turn in turns:
        for text in (turn.question, turn.answer):
            data = text.strip().encode("utf-8", "replace")
            hashed.update(len(data).to_bytes(8, "big") + data)
        names.append(f"v1/{hashed.hexdigest()}")
    return names


def _with_turns(conversation: Conversation, turns: Sequence[Turn]) -> Conversation:
    """A conversation with turns whose passages are not known; no number that they cite is given again."""
    cited = (number for turn in turns for mark in marks_of(turn.answer) for number in mark.numbers)
    passages = conversation.passages
    last = max((passages.last, *cited))
    return replace(conversation, turns=(*conversation.turns, *turns), passages=replace(passages, last=last))
