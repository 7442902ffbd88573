"""OpenAI-compatible API: docindex appears as a model, and its citations as annotations.

No state is stored for a client: each request contains all earlier turns. A hash of them finds the conversation, so that
its passages keep their numbers. If that fails, new passages are numbered from the highest cited number on.
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
from docindex_dagster.core.safe_text import on_one_line
from docindex_dagster.llm.chat import Delta
from docindex_dagster.operations.fields import LONGEST_QUERY
from docindex_dagster.operations.search import Where
from docindex_dagster.serving.http import openai_form, problems
from docindex_dagster.serving.http.client_disconnect import MEDIA_TYPE, CancelableResponse
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
from docindex_dagster.serving.http.served_project import Project, ServedProject

router = APIRouter(prefix=openai_form.PREFIX, tags=["OpenAI"])
_PLAIN, _AGENT = "docindex", "docindex-agent"
_MODELS = Models((Model(_PLAIN), Model(_AGENT)))
_BEFORE_STEP = "\n\n"
_STREAM = {MEDIA_TYPE: {"schema": {"type": "string"}}}


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    """A client's question and the turns before it."""

    question: str
    turns: tuple[Turn, ...]

    @classmethod
    def of(cls, messages: Sequence[ChatMessage]) -> "ChatQuestion":
        """Parse messages. All roles except user and assistant are ignored.

        Raises:
            ProblemError: the last message is not a valid question.
        """
        turns: list[Turn] = []
        text = ""
        for message in messages:
            if message.role == "user":
                text = f"{text}\n\n{message.text}".strip()
            elif message.role == "assistant" and text:
                turns.append(Turn(text, message.text))
                text = ""
        if not text:
            raise ProblemError("query", "the last message must be a question: a user message with text")
        if len(text) > LONGEST_QUERY:
            raise ProblemError(
                "query", f"the question may have at most {LONGEST_QUERY:,} characters, got {len(text):,}"
            )
        return cls(text, tuple(turns))

    def conversation(self, known: Conversations) -> Conversation:
        """Return the conversation to continue: the longest known prefix of the turns, and the remaining turns."""
        names = _keys(self.turns)
        for count in range(len(names), 0, -1):
            found = known.get(names[count - 1])
            if found is not None:
                return _with_turns(found, self.turns[count:])
        return _with_turns(Conversation(), self.turns)

    def name(self, answer: str) -> str:
        """Return the key of the conversation after the answer."""
        return _keys([*self.turns, Turn(self.question, answer)])[-1]


@dataclass(slots=True, eq=False)
class _Text:
    """The text as the client sees it. Text before an agent's step stays, as a paragraph of its own.

    Links and images, which the client would show or load, are escaped.
    """

    pieces: list[str] = field(default_factory=list)
    start: int = 0  # the start of the answer
    filter: LinkFilter = field(default_factory=LinkFilter)  # for the answer

    def add(self, event: Event) -> str:
        """Add an event and return the text that it adds."""
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

    def range_of(self, citation: Citation) -> tuple[int, int]:
        """Return the character range of a citation."""
        start, end = self.filter.shown_range(citation.start, citation.end)
        return self.start + start, self.start + end

    def __str__(self) -> str:
        return "".join(self.pieces)


@dataclass(slots=True, eq=False)
class _Exchange:
    """A request while it is answered."""

    request: ChatRequest
    asked: ChatQuestion
    project: ServedProject
    questions: Questions
    origin: str  # of citation URLs
    text: _Text = field(default_factory=_Text)
    id: str = field(default_factory=lambda: f"chatcmpl-{secrets.token_hex(12)}")

    async def events(self) -> AsyncGenerator[tuple[Event, str], None]:
        """Yield the events, each with the text that it adds."""
        known, anywhere = self.questions.conversations, Where()
        conversation = await to_thread(self.asked.conversation, known)
        question = Question(
            self.asked.question,
            lambda reader: anywhere.filters(self.project.view(reader)),
            is_for_agent=self.request.model == _AGENT,
        )
        async with aclosing(self.questions.answer(question, conversation, extractive=None)) as events:
            async for event in events:
                piece = self.text.add(event)
                if isinstance(event, Answer):
                    known.put(self.asked.name(str(self.text)), event.conversation)
                yield event, piece

    async def complete(self) -> ChatCompletion:
        """Return the complete result at the end."""
        async with aclosing(self.events()) as events:
            collected = [event async for event, _ in events]
        answer = next(event for event in collected if isinstance(event, Answer))
        spent = next(event for event in collected if isinstance(event, Spent))
        reply = Reply(str(self.text), tuple(self.annotations(answer)))
        choice = Choice(reply, "length" if answer.is_cut else "stop")
        return ChatCompletion(self.id, self.request.model, (choice,), _usage(spent))

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield the chunks as they arrive. Nothing is sent before the first word, so earlier failures have a status."""
        options = self.request.stream_options
        chunks = Chunks(self.id, self.request.model, has_usage=options is not None and options.include_usage)
        has_started, finish = False, "stop"
        async with aclosing(self.events()) as events:
            async for event, piece in events:
                if not has_started and isinstance(event, Delta | Step):
                    has_started = True
                    yield chunks.of({"role": "assistant", "content": ""})
                if piece:
                    yield chunks.of({"content": piece})
                if isinstance(event, Answer):
                    finish = "length" if event.is_cut else "stop"
                    if annotations := [asdict(annotation) for annotation in self.annotations(event)]:
                        yield chunks.of({"annotations": annotations})
                if isinstance(event, Spent):
                    yield chunks.of({}, finish)
                    if chunks.has_usage:
                        yield chunks.of_usage(asdict(_usage(event)))
                    yield openai_form.END

    def annotations(self, answer: Answer) -> Iterable[Annotation]:
        """Yield the citations with existing passages, by their position in the text that the client sees."""
        for citation in answer.citations:
            if citation.passage is not None:
                url = self.origin + self.questions.address(citation)
                yield Annotation(UrlCitation(url, _title(citation), *self.text.range_of(citation)))


@router.get("/models", responses=openai_form.documented())
def models() -> Models:
    """List the models that a client can choose."""
    return _MODELS


@router.get("/models/{id}", responses=openai_form.documented("unknown-model"))
def model(id: str) -> Model:  # noqa: A002 the name in the path
    """Return a model.

    Raises:
        ProblemError: the model does not exist.
    """
    return _model_named(id)


@router.post(
    "/chat/completions",
    response_model=ChatCompletion,
    responses={
        200: {"description": "The answer", "content": _STREAM},
        **openai_form.documented("unknown-model", *PROBLEMS),
    },
)
async def chat_completions(project: Project, questions: Answering, asked: ChatRequest, request: Request) -> Response:
    """Answer the last message like OpenAI's API. Citations are annotations, which a stream sends at the end.

    System messages and all other parameters are ignored. Without a language model, the answer consists of the best
    passages.

    Raises:
        ProblemError: the model does not exist, or the last message is not a question.
    """
    _model_named(asked.model)
    exchange = _Exchange(asked, ChatQuestion.of(asked.messages), project, questions, origin_of(request.scope))

    return CancelableResponse(exchange, _failed, is_streamed=bool(asked.stream))


def _model_named(name: str) -> Model:
    found = next((model for model in _MODELS.data if model.id == name), None)
    if found is None:
        raise ProblemError("unknown-model", f"model {name!r} not found; available models: {_PLAIN} and {_AGENT}")
    return found


def _failed(error: Exception) -> bytes:
    return openai_form.event(openai_form.error_of(json.loads(bytes(problems.of_error(error).body))))


def _usage(spent: Spent) -> TokenUsage:
    return TokenUsage(spent.prompt_tokens, spent.completion_tokens, spent.prompt_tokens + spent.completion_tokens)


def _title(citation: Citation) -> str:
    path = on_one_line(citation.passage.path) if citation.passage else ""
    return f"{path}:{citation.start_line}-{citation.end_line} ({citation.state})"


def _keys(turns: Sequence[Turn]) -> list[str]:
    """Return a key for each prefix of the turns. It contains a slash, so it cannot be the id of a conversation."""
    names, hashed = [], hashlib.sha256()
    for turn in turns:
        for text in (turn.question, turn.answer):
            data = text.strip().encode("utf-8", "replace")
            hashed.update(len(data).to_bytes(8, "big") + data)
        names.append(f"v1/{hashed.hexdigest()}")
    return names


def _with_turns(conversation: Conversation, turns: Sequence[Turn]) -> Conversation:
    """Add turns whose passages are unknown. The numbers that they cite are not assigned again."""
    cited = (number for turn in turns for mark in marks_of(turn.answer) for number in mark.numbers)
    passages = conversation.passages
    last = max((passages.last, *cited))
    return replace(conversation, turns=(*conversation.turns, *turns), passages=replace(passages, last=last))
