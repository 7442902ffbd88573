"""Collecting questions: what clients, the page among them, say of the results of a search."""

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
    """A question, and an indexed place that answers it, as results write paths."""

    origin: Literal["api", "page"] = Field(default="api", description="Who says so, which is noted with it.")


@dataclass(frozen=True, slots=True)
class NotedQuestion:
    """What became of a question.

    Attributes:
        question: as it is written.
        source: of the place.
        path: of the file that answers it, with its lines, as a file of questions has it.
        is_noted: whether it is in the file now.
        is_new: whether this request changed that.
    """

    question: str
    source: str
    path: str
    is_noted: bool
    is_new: bool


@router.post("/questions", responses=_PROBLEMS)
def note_question(project: Project, new: NewQuestion) -> NotedQuestion:
    """Note that an indexed place answers a question, in `questions.jsonl` of the server's home.

    Only where `evaluation.collect` is set. The same again counts once, whoever noted it first.
    """
    noted = note(project.live, new, new.origin)
    return NotedQuestion(
        question=noted.question,
        source=noted.target.source,
        path=str(noted.target),
        is_noted=noted.is_noted,
        is_new=noted.is_new,
    )
