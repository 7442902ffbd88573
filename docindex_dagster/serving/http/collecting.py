"""Collecting questions: what clients, the page among them, say of the results of a search."""

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from docindex_dagster.evaluation.question_file import LONGEST
from docindex_dagster.operations.fields import Name
from docindex_dagster.serving import collecting
from docindex_dagster.serving.http.problems import documented
from docindex_dagster.serving.http.served import Project

router = APIRouter(tags=["questions"])
_PROBLEMS = documented("collecting-off", "query", "source", "no-index", "settings", "full-disk")
_LONGEST_PLACE = 5000  # characters: a path may have 4,096


class NewQuestion(BaseModel):
    """A question, and an indexed place that answers it."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1, max_length=LONGEST, description="What was searched for, in words.")
    place: Annotated[str, Field(min_length=1, max_length=_LONGEST_PLACE)] = Field(
        description="A `chunk_id` of a result, PATH:FIRST-LAST, PATH:LINE or PATH, as results write paths."
    )
    source: Name | None = Field(default=None, description="The source of the path, where several have one.")
    answers: bool = Field(default=True, description="false takes back what was noted before.")
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
    noted = collecting.note(project.live, new.question, new.place, new.source, new.origin, answers=new.answers)
    return NotedQuestion(
        question=noted.question,
        source=noted.target.source,
        path=str(noted.target),
        is_noted=noted.is_noted,
        is_new=noted.is_new,
    )
