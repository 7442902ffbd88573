"""Endpoint that collects feedback from clients, including the page, on which results answer a question."""

from dataclasses import dataclass
from typing import Literal

from fastapi import APIRouter
from pydantic import Field

from docindex_dagster.operations.collect import NoteRequest, note
from docindex_dagster.serving.http.problems import documented
from docindex_dagster.serving.http.served_project import Project

router = APIRouter(tags=["questions"])
_PROBLEMS = documented("collecting-off", "query", "source", "no-index", "settings", "full-disk")


class NewQuestion(NoteRequest):
    """A question and the indexed location that answers it, in the notation of search results."""

    origin: Literal["api", "page"] = Field(default="api", description="The kind of client, which is recorded as well.")


@dataclass(frozen=True, slots=True)
class NotedQuestion:
    """The result of recording a question.

    Attributes:
        question: the question as recorded.
        source: the source of the location.
        path: the file and lines that answer it, in the notation of question files.
        is_noted: whether the pair is now recorded.
        is_new: whether this request changed that.
    """

    question: str
    source: str
    path: str
    is_noted: bool
    is_new: bool


@router.post("/questions", responses=_PROBLEMS)
def note_question(project: Project, new: NewQuestion) -> NotedQuestion:
    """Record that an indexed location answers a question, in `questions.jsonl` in the server's home.

    Requires `evaluation.collect`. Duplicates count once, regardless of who recorded them first.
    """
    noted = note(project.live, new, new.origin)
    return NotedQuestion(
        question=noted.question,
        source=noted.target.source,
        path=str(noted.target),
        is_noted=noted.is_noted,
        is_new=noted.is_new,
    )
