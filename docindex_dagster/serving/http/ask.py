"""Endpoint for questions. Answers have checked citations and come as one body or as server-sent events."""

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
from docindex_dagster.serving.http.client_disconnect import MEDIA_TYPE, CancelableResponse, as_json, wants_events
from docindex_dagster.serving.http.conversations import PROBLEMS, Answering, Questions, Talk
from docindex_dagster.serving.http.problems import documented
from docindex_dagster.serving.http.served_project import Project, ServedProject

router = APIRouter(tags=["ask"])
_PROBLEMS = documented("source", "unknown-conversation", "conversation-busy", "no-model", *PROBLEMS)
_STREAM = {MEDIA_TYPE: {"schema": {"type": "string"}}}
_ANSWERS = {200: {"description": "The answer", "content": _STREAM}, **_PROBLEMS}
_NAMES = {Found: "sources", Step: "step", Delta: "delta", Spent: "usage"}
_NAME = "^[A-Za-z0-9_-]{1,64}$"


class AskRequest(operation.AskRequest):
    """A question."""

    conversation: str | None = Field(
        default=None, pattern=_NAME, description="The id of a conversation from an earlier answer. Default: a new one."
    )
    extractive: bool | None = Field(
        default=None,
        description="true: the best passages, without the model. false: always the model. Default: true if no "
        "model is configured.",
    )
    html: bool = Field(default=False, description="Whether to return the answer as HTML as well.")


@dataclass(frozen=True, slots=True)
class AnswerEvent:
    """The event `answer`: the complete text with its citations."""

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
        question: the question.
        answer: the answer in Markdown, with marks such as `[3]`.
        html: the answer as HTML, with marks as links; null unless requested.
        citations: the citations of the answer, in order.
        passages: the passages that were read or cited, by number.
        steps: the tool calls.
        conversation: the id for a follow-up question.
        model: the model that wrote the answer; null if it consists of the passages themselves.
        usage: the tokens, cost and time of the answer.
        query: the search query.
        warnings: problems that degraded the search.
        commits: the hashes of the commits in the prompt, if the question is about the history.
        generation: the generation of the index.
        is_cut: whether the answer stopped at a token limit.
        is_prompt_cut: whether the model probably read only part of the prompt.
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
    """A client's question, with the project and the service that answers it."""

    asked: AskRequest
    project: ServedProject
    questions: Questions

    async def events(self) -> AsyncGenerator[tuple[Talk, Event], None]:
        """Yield the events, each with its conversation."""
        asked = self.asked
        question = operation.question(asked, self.project.view)
        async with self.questions.conversations.resume(asked.conversation) as talk:
            stream = self.questions.answer(question, talk.conversation, extractive=asked.extractive)
            async with aclosing(stream) as events:
                async for event in events:
                    talk.note(event)
                    yield talk, event

    async def to_event(self, talk: Talk, answer: Answer) -> AnswerEvent:
        """Convert an answer to its form for clients."""
        html = (
            await to_thread(as_html, answer.text, answer.citations, self.questions.address) if self.asked.html else None
        )
        return AnswerEvent(
            text=answer.text,
            html=html,
            citations=tuple(map(CheckedCitation.of, answer.citations)),
            conversation=talk.id,
            model=answer.model,
            is_broken=answer.is_broken,
            is_cut=answer.is_cut,
            is_prompt_cut=answer.is_prompt_cut,
        )

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield the events in the form sent to the client."""
        async with aclosing(self.events()) as events:
            async for talk, event in events:
                if isinstance(event, Answer):
                    yield _event("answer", await self.to_event(talk, event))
                else:
                    yield _event(_NAMES[type(event)], event)

    async def complete(self) -> Answered:
        """Return the complete result at the end."""
        async with aclosing(self.events()) as events:
            collected = [item async for item in events]
        found = next(event for _, event in collected if isinstance(event, Found))
        spent = next(event for _, event in collected if isinstance(event, Spent))
        talk, answer = next((talk, event) for talk, event in collected if isinstance(event, Answer))
        steps = tuple(event for _, event in collected if isinstance(event, Step))
        written = await self.to_event(talk, answer)
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

    With `Accept: text/event-stream`, the response consists of server-sent events while the answer is written:
    `sources`, any number of `step` and `delta` events, `answer` and `usage`; or `error` with a problem. If the client
    disconnects, the work ends immediately.
    """
    exchange = _Exchange(asked, project, questions)

    return CancelableResponse(exchange, _failed, is_streamed=wants_events(request.headers.get("accept", "")))


def _failed(error: Exception) -> bytes:
    return format_sse_event(event="error", data_str=bytes(problems.of_error(error).body).decode())


def _event(name: str, data: Any) -> bytes:
    return format_sse_event(event=name, data_str=as_json(data).decode())
