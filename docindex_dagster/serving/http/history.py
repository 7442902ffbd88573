"""The history of the indexed repositories."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

from docindex_dagster.search.log import CommitFilters, commits_of
from docindex_dagster.search.scope import keys_of
from docindex_dagster.serving.http.paging import page_of, start_of
from docindex_dagster.serving.http.problems import documented
from docindex_dagster.serving.http.searching import LONGEST_QUERY, MOST_RESULTS, Answer, Name, Names
from docindex_dagster.serving.http.served import Project, Served
from docindex_dagster.serving.moments import Moment
from docindex_dagster.stores.reader import Reader

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


class LogRequest(BaseModel):
    """Which commits are meant."""

    model_config = ConfigDict(extra="forbid")

    query: Annotated[str, Field(max_length=LONGEST_QUERY)] = Field(default="", description="Empty: the latest.")
    sources: Names = Field(default=[], description="Only these sources, by key or name.")
    author: Name | None = Field(default=None, description="Part of the author's name or e-mail address.")
    since: Moment | None = Field(default=None, description="Not before this moment; UTC where it names no zone.")
    path: Name | None = Field(default=None, description="One of its files matches this glob.")
    limit: int = Field(default=10, ge=1, le=200, description="How many commits at most.")
    cursor: str | None = Field(default=None, max_length=200, description="`next` of the page before.")

    def filters(self, project: Served, reader: Reader) -> CommitFilters:
        """What every commit must meet."""
        keys = keys_of(project.settings, reader.generation, self.sources)
        return CommitFilters(keys, self.author, self.since, self.path)


@router.get("/log", responses=documented("query", "source", "no-index", "settings", "upstream"))
def commits(project: Project, request: Annotated[LogRequest, Query()]) -> Answer[Commit]:
    """List commits as `docindex log --json` does: the best for a query, else the latest first."""
    about = request.model_copy(update={"cursor": None, "limit": 1})
    start = start_of(request.cursor, about)
    warnings: list[str] = []

    def ask(reader: Reader) -> Answer[Commit]:
        most, filters = min(start + request.limit + 1, MOST_RESULTS), request.filters(project, reader)
        found = commits_of(project.settings, reader, request.query, top_k=most, filters=filters, warn=warnings.append)
        part = page_of(found, start, request.limit, about)
        items = [*map(Commit.model_validate, part.items)]
        return Answer(**dict(part) | {"items": items}, generation=reader.generation.number, warnings=warnings)

    return project.reading(ask)
