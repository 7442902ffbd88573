"""The history of the indexed repositories: a list of commits, and each as a page."""

from dataclasses import dataclass
from typing import Annotated, Any

import pyarrow.compute as pc
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import HTMLResponse

from docindex_dagster import operations
from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import COMMIT_PATH
from docindex_dagster.operations.fields import Name
from docindex_dagster.operations.log import LogRequest
from docindex_dagster.render.html.templating import page
from docindex_dagster.serving.http.files import split_place
from docindex_dagster.serving.http.problems import ProblemError
from docindex_dagster.serving.http.served import Project, Served
from docindex_dagster.serving.web.mistakes import trouble_of
from docindex_dagster.stores.generation import read_generation
from docindex_dagster.stores.published import read_commits
from docindex_dagster.stores.reader import Reader

router = APIRouter()
_COMMITS = 40  # of a page
_MOST_PAGES = 100


class Asked(BaseModel):
    """Which commits are meant. What is empty is not asked."""

    q: Annotated[str, Field(max_length=20_000)] = ""
    source: Name = ""
    author: Name = ""
    since: Annotated[str, Field(max_length=10, pattern=r"^(\d{4}-\d\d-\d\d)?$")] = ""
    path: Name = ""
    page: Annotated[int, Field(ge=1, le=_MOST_PAGES)] = 1

    def request(self) -> LogRequest:
        """The same for the operation.

        Raises:
            QueryError: there is no such day.
        """
        sources = [self.source] if self.source else []
        given = {"author": self.author, "since": self.since, "path": self.path}
        return LogRequest.parse(query=self.q, sources=sources, **{name: text for name, text in given.items() if text})


@dataclass(frozen=True, slots=True)
class Commits:
    """A page of the history."""

    rows: list[dict[str, Any]]
    has_more: bool = False


@router.get("/log")
def log(project: Project, request: Request, asked: Annotated[Asked, Query()]) -> HTMLResponse:
    """The newest commits, or those about a query."""
    found, trouble = Commits([]), None
    try:
        if read_generation(Layout(project.settings.home)) is not None:
            found = _found(project, asked)
    except (DocindexError, ProblemError) as error:
        trouble = trouble_of(error)
    status = trouble.kind.status if trouble else 200
    return page(request, "log.html", status, asked=asked, found=found, trouble=trouble, keys=_keys(project))


def newest(project: Served, key: str, most: int) -> list[dict[str, Any]]:
    """The newest commits of a source."""
    return _found(project, Asked(source=key)).rows[:most]


def _found(project: Served, asked: Asked) -> Commits:
    start = (asked.page - 1) * _COMMITS
    end = start + _COMMITS

    request = asked.request()
    rows = project.viewing(lambda view: operations.log.log(view, request, end + 1))
    return Commits(rows[start:end], len(rows) > end)


def commit(project: Served, request: Request, place: str) -> HTMLResponse:
    """The page of a commit."""

    def ask(reader: Reader) -> tuple[dict[str, Any], frozenset[str]]:
        key, path = split_place(place, reader.generation.sources)
        commits = read_commits(reader.layout, key)
        named = commits.filter(pc.equal(commits["commit"], path.removeprefix(COMMIT_PATH))).to_pylist()
        if not named:
            raise ProblemError("unknown-file", f"{key} has no indexed commit {path.removeprefix(COMMIT_PATH)}")
        return named[0], frozenset(commits["commit"].to_pylist())

    found, known = project.reading(ask)
    return page(request, "commit.html", commit=found, parents=[(name, name in known) for name in found["parents"]])


def _keys(project: Served) -> list[str]:
    try:
        return project.reading(lambda reader: [key for key, one in reader.generation.sources.items() if one.commits])
    except DocindexError:
        return []
