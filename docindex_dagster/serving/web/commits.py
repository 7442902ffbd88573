"""The history of the indexed repositories: a list of commits, and each as a page."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import pyarrow.compute as pc
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import HTMLResponse

from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import COMMIT_PATH
from docindex_dagster.serving.http import history
from docindex_dagster.serving.http.files import split_place
from docindex_dagster.serving.http.history import Commit, LogRequest
from docindex_dagster.serving.http.problems import ProblemError
from docindex_dagster.serving.http.served import Project, Served
from docindex_dagster.serving.web.mistakes import told
from docindex_dagster.serving.web.templating import page
from docindex_dagster.stores.generation import read_generation
from docindex_dagster.stores.published import read_commits
from docindex_dagster.stores.reader import Reader

router = APIRouter()
_COMMITS = 40
_Name = Annotated[str, Field(max_length=1000)]


class Asked(BaseModel):
    """Which commits are meant. What is empty is not asked."""

    q: Annotated[str, Field(max_length=20_000)] = ""
    source: _Name = ""
    author: _Name = ""
    since: Annotated[str, Field(max_length=10, pattern=r"^(\d{4}-\d\d-\d\d)?$")] = ""
    path: _Name = ""
    cursor: Annotated[str, Field(max_length=200)] = ""

    def request(self) -> LogRequest:
        """The same as the API takes it."""
        return LogRequest(
            query=self.q,
            sources=[self.source] if self.source else [],
            author=self.author or None,
            since=_day(self.since),
            path=self.path or None,
            limit=_COMMITS,
            cursor=self.cursor or None,
        )


@dataclass(frozen=True, slots=True)
class Commits:
    """A part of the history."""

    rows: list[Commit]
    next: str | None = None


@router.get("/log")
def log(project: Project, request: Request, asked: Annotated[Asked, Query()]) -> HTMLResponse:
    """The newest commits, or those about a query."""
    found, trouble = Commits([]), None
    try:
        if read_generation(Layout(project.settings.home)) is not None:
            answer = history.commits(project, asked.request())
            found = Commits(answer.items, answer.next)
    except (DocindexError, ProblemError) as error:
        trouble = told(error)
    keys = _keys(project)
    status = trouble.status if trouble else 200
    return page(request, "log.html", status, asked=asked, found=found, trouble=trouble, keys=keys, words=asked.q)


def newest(project: Served, key: str, most: int) -> list[Commit]:
    """The newest commits of a source."""
    return history.commits(project, LogRequest(sources=[key], limit=most)).items


def commit(project: Served, request: Request, place: str) -> HTMLResponse:
    """The page of a commit."""

    def ask(reader: Reader) -> tuple[Commit, frozenset[str]]:
        key, path = split_place(place, reader.generation.sources)
        commits = read_commits(reader.layout, key)
        named = commits.filter(pc.equal(commits["commit"], path.removeprefix(COMMIT_PATH))).to_pylist()
        if not named:
            raise ProblemError("unknown-file", f"{key} has no indexed commit {path.removeprefix(COMMIT_PATH)}")
        return Commit.model_validate(named[0]), frozenset(commits["commit"].to_pylist())

    found, known = project.reading(ask)
    return page(request, "commit.html", commit=found, parents=[(name, name in known) for name in found.parents])


def _keys(project: Served) -> list[str]:
    try:
        return project.reading(lambda reader: [key for key, one in reader.generation.sources.items() if one.commits])
    except DocindexError:
        return []


def _day(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None
    except ValueError:
        raise ProblemError("invalid-request", f"since: {text} is no day") from None
