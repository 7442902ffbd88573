"""Questions, answered with checked citations: as one body, or as server-sent events while they are answered."""

from asyncio import to_thread
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.sse import format_sse_event
from pydantic import Field

from docindex_dagster.answering.citations import CheckedCitation
from docindex_dagster.answering.events import Answer, Event, Found, Spent, Step
from docindex_dagster.answering.passages import Passage
from docindex_dagster.answering.rendering import as_html
from docindex_dagster.llm.chat import Delta
from docindex_dagster.operations import ask as operation
from docindex_dagster.serving.http import problems
from docindex_dagster.serving.http.client_disconnect import MEDIA_TYPE, WhileItStays, as_json, wants_events
from docindex_dagster.serving.http.conversations import PROBLEMS, Answering, Questions, Talk
from docindex_dagster.serving.http.problems import documented
from docindex_dagster.serving.http.served_project import Project, Served

router = APIRouter(tags=["ask"])
_PROBLEMS = documented("source", "unknown-conversation", "conversation-busy", "no-model", *PROBLEMS)
_STREAM = {MEDIA_TYPE: {"schema": {"type": "string"}}}
_ANSWERS = {200: {"description": "The answer", "content": _STREAM}, **_PROBLEMS}
_NAMES = {Found: "sources", Step: "step", Delta: "delta", Spent: "usage"}
_NAME = "^[A-Za-z0-9_-]{1,64}$"


class AskRequest(operation.AskRequest):
    """A question."""

    conversation: str | None = Field(
        default=None, pattern=_NAME, description="Goes on with this one, as an answer named it. Default: a new one."
    )
    extractive: bool | None = Field(
        default=None,
        description="true: the best passages, without the model; false: never so. Default: where no model is set.",
    )
    html: bool = Field(default=False, description="Whether the answer is given as HTML as well.")


@dataclass(frozen=True, slots=True)
class Written:
    """The event `answer`: the text as a whole, with its citations."""

    text: str
    html: str | None
    citations: tuple[CheckedCitation, ...]
    conversation: str
    model: str | None
    is_broken: bool
    is_cut: bool
    is_prompt_cut: bool


@dataclass(frozen=True, slots=True)
class Answered:
    """A question and its answer.

    Attributes:
        question: as it was asked.
        answer: Markdown, with marks such as `[3]`.
        html: the same as HTML, whose marks are links; null where it was not asked for.
        citations: of the answer, in their order.
        passages: that were read for it or are cited, by their numbers.
        steps: the tools that were called.
        conversation: what a further question goes on with.
        model: who wrote it; null where it is made of passages as they are.
        usage: what it took.
        query: what was searched for.
        warnings: what made the search worse.
        commits: of the history, where the question is about it; their hashes.
        generation: of the index.
        is_cut: whether it stopped at a limit of tokens.
        is_prompt_cut: whether the model is held to have read a part of what was sent alone.
    """

    question: str
    answer: str
    html: str | None
    citations: tuple[CheckedCitation, ...]
    passages: tuple[Passage, ...]
    steps: tuple[Step, ...]
    conversation: str
    model: str | None
    usage: Spent
    query: str
    warnings: tuple[str, ...]
    commits: tuple[str, ...]
    generation: int
    is_cut: bool
    is_prompt_cut: bool


@dataclass(frozen=True, slots=True)
class _Exchange:
    """A question of a client, and who answers it."""

    asked: AskRequest
    project: Served
    questions: Questions

    async def events(self) -> AsyncGenerator[tuple[Talk, Event], None]:
        """What happens, in the conversation that it happens in."""
        asked = self.asked
        question = operation.question(asked, self.project.view)
        async with self.questions.conversations.continued(asked.conversation) as talk:
            answered = self.questions.answered(question, talk.conversation, extractive=asked.extractive)
            async with aclosing(answered) as events:
                async for event in events:
                    talk.note(event)
                    yield talk, event

    async def written(self, talk: Talk, answer: Answer) -> Written:
        """The answer as clients get it."""
        html = (
            await to_thread(as_html, answer.text, answer.citations, self.questions.address) if self.asked.html else None
        )
        return Written(
            text=answer.text,
            html=html,
            citations=tuple(map(CheckedCitation.of, answer.citations)),
            conversation=talk.id,
            model=answer.model,
            is_broken=answer.is_broken,
            is_cut=answer.is_cut,
            is_prompt_cut=answer.is_prompt_cut,
        )

    async def streamed(self) -> AsyncGenerator[bytes, None]:
        """The events as they are sent."""
        async with aclosing(self.events()) as events:
            async for talk, event in events:
                if isinstance(event, Answer):
                    yield _event("answer", await self.written(talk, event))
                else:
                    yield _event(_NAMES[type(event)], event)

    async def whole(self) -> Answered:
        """All of it, at its end."""
        async with aclosing(self.events()) as events:
            happened = [one async for one in events]
        found = next(event for _, event in happened if isinstance(event, Found))
        spent = next(event for _, event in happened if isinstance(event, Spent))
        talk, answer = next((talk, event) for talk, event in happened if isinstance(event, Answer))
        steps = tuple(event for _, event in happened if isinstance(event, Step))
        written = await self.written(talk, answer)
        cited = (citation.passage for citation in answer.citations if citation.passage)
        read = (passage for step in steps for passage in step.passages)
        by_number = {passage.number: passage for passage in (*cited, *found.passages, *read)}
        return Answered(
            question=self.asked.question,
            answer=written.text,
            html=written.html,
            citations=written.citations,
            passages=tuple(by_number[number] for number in sorted(by_number)),
            steps=steps,
            conversation=written.conversation,
            model=written.model,
            usage=spent,
            query=found.query,
            warnings=found.warnings,
            commits=found.commits,
            generation=found.generation,
            is_cut=written.is_cut,
            is_prompt_cut=written.is_prompt_cut,
        )


@router.post("/ask", response_model=Answered, responses=_ANSWERS)
async def ask(project: Project, questions: Answering, asked: AskRequest, request: Request) -> Response:
    """Answer a question from numbered passages, with each citation checked.

    With `Accept: text/event-stream` it comes as server-sent events, while it is written: `sources`, `step` and `delta`
    as often as they happen, `answer`, `usage`; or `error`, with a problem. Who leaves ends it at once.
    """
    exchange = _Exchange(asked, project, questions)

    return WhileItStays(exchange, _failed, is_streamed=wants_events(request.headers.get("accept", "")))


def _failed(error: Exception) -> bytes:
    return format_sse_event(event="error", data_str=bytes(problems.of_error(error).body).decode())


def _event(name: str, data: Any) -> bytes:
    return format_sse_event(event=name, data_str=as_json(data).decode())
