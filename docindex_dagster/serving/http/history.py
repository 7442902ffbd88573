"""The history of the indexed repositories."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field, PlainSerializer

from docindex_dagster.operations import log as operation
from docindex_dagster.operations.view import View
from docindex_dagster.serving.http.paging import page_of, start_of
from docindex_dagster.serving.http.problems import documented
from docindex_dagster.serving.http.searching import MOST_RESULTS, Answer, Listing
from docindex_dagster.serving.http.served import Project

router = APIRouter(tags=["search"])
_Moment = Annotated[datetime, PlainSerializer(str, return_type=str)]  # as the command prints it


class ChangedFile(BaseModel):
    """What a commit did to a file: A(dded), M(odified), D(eleted), R(enamed), or T, another kind of file."""

    status: str
    path: str
    renamed_from: str | None
    insertions: int | None
    deletions: int | None
    functions: list[str] | None = Field(description="The lines by which git names the places that changed.")


class Commit(BaseModel):
    """A commit, as `docindex log --json` prints it. Times are UTC."""

    source: str
    commit: str
    row_hash: str
    parents: list[str]
    author: str
    author_email: str
    authored_at: _Moment | None
    committed_at: _Moment | None
    subject: str
    message: str
    files: list[ChangedFile]
    file_count: int
    insertions: int | None
    deletions: int | None


class LogRequest(Listing, operation.LogRequest):
    """Which commits are meant."""


@router.get("/log", responses=documented("query", "source", "no-index", "settings", "upstream"))
def commits(project: Project, request: Annotated[LogRequest, Query()]) -> Answer[Commit]:
    """List commits as `docindex log --json` does: the best for a query, else the latest first."""
    start = start_of(request.cursor, request.about())
    warnings: list[str] = []

    def ask(view: View) -> Answer[Commit]:
        found = operation.log(view, request, min(start + request.limit + 1, MOST_RESULTS))
        part = page_of(found, start, request.limit, request.about())
        items = [*map(Commit.model_validate, part.items)]
        return Answer(**dict(part) | {"items": items}, generation=view.reader.generation.number, warnings=warnings)

    return project.viewing(ask, warnings.append)
