"""Endpoints for search, contexts, exact matches, similar chunks and commits."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field, PlainSerializer

from docindex_dagster import operations
from docindex_dagster.core.errors import SettingsError
from docindex_dagster.operations.context import ContextRequest
from docindex_dagster.operations.listing import Listing
from docindex_dagster.operations.log import LOG
from docindex_dagster.operations.similar import SIMILAR
from docindex_dagster.operations.view import View
from docindex_dagster.search.context import ContextPassage
from docindex_dagster.search.matches import Match
from docindex_dagster.search.model import Hit
from docindex_dagster.serving.http.client_disconnect import cancel_on_disconnect
from docindex_dagster.serving.http.paging import Answer, Paged, cursor_at, page_of, start_of
from docindex_dagster.serving.http.problems import ProblemError, documented
from docindex_dagster.serving.http.served_project import Project, ServedProject

router = APIRouter(tags=["search"], dependencies=[Depends(cancel_on_disconnect)])
_PROBLEMS = documented("query", "source", "no-index", "settings", "upstream")
MOST_RESULTS = 1000  # of a search, across all pages
_Answer = TypeVar("_Answer")
_Moment = Annotated[datetime, PlainSerializer(str, return_type=str)]  # in the format of the command line


class SearchRequest(Paged, operations.search.SearchRequest):
    """A search."""


class MatchesRequest(Paged, operations.search.MatchesRequest):
    """A search for an exact text or a pattern."""

    limit: int = Field(default=100, ge=1, le=1000, description="Maximum number of matches.")


@dataclass(frozen=True, slots=True)
class PackedContext:
    """The best passages that fit into a budget, as data and as Markdown."""

    query: str
    found: int
    budget: int
    tokens: int
    passages: tuple[ContextPassage, ...]
    markdown: str
    generation: int
    warnings: list[str]


class MatchesAnswer(Answer[Match]):
    """Locations of an exact text, and their total number."""

    total: int
    files: int


@router.get("/search", responses=_PROBLEMS)
def search(project: Project, request: Annotated[SearchRequest, Query()]) -> Answer[Hit]:
    """Find chunks, best first. The items are the same as in `docindex search --json`."""
    return _search(project, request)


@router.post("/search", operation_id="search_by_body", responses=_PROBLEMS)
def search_by_body(project: Project, request: SearchRequest) -> Answer[Hit]:
    """Find chunks like `GET /search`, for long or private queries."""
    return _search(project, request)


def _search(project: ServedProject, request: SearchRequest) -> Answer[Hit]:
    def ask(view: View, limit: int) -> list[Hit]:
        with _blame_request(request):
            return operations.search.search(view, request, limit)

    return _page_of_results(project, request, ask, Answer[Hit])


@contextmanager
def _blame_request(request: operations.search.SearchRequest) -> Iterator[None]:
    """Report an unusable reranker as an error of the request if the request names it."""
    try:
        yield
    except SettingsError as error:
        if request.rerank is None:
            raise
        raise ProblemError("query", f"rerank: {error}") from error


def _page_of_results(
    project: ServedProject, request: Paged, ask: Callable[[View, int], list[Any]], answer: type[Answer[_Answer]]
) -> Answer[_Answer]:
    """Return a page of results from one generation. `ask` gets the number of results up to the end of the page."""
    start = start_of(request.cursor, request.about())
    limit = min(start + request.limit + 1, MOST_RESULTS)
    warnings: list[str] = []

    def page(view: View) -> Answer[_Answer]:
        found = page_of(ask(view, limit), start, request.limit, request.about())
        return answer(**dict(found), generation=view.reader.generation.number, warnings=warnings)

    return project.viewing(page, warnings.append)


@router.get("/matches", responses=_PROBLEMS)
def matches(project: Project, request: Annotated[MatchesRequest, Query()]) -> MatchesAnswer:
    """List all locations of an exact text or a pattern (RE2), ordered by source, path and line."""
    start = start_of(request.cursor, request.about())
    end = start + request.limit
    warnings: list[str] = []

    def page(view: View) -> MatchesAnswer:
        found = operations.search.matches(view, request, end)
        return MatchesAnswer(
            items=list(found.matches[start:end]),
            next=cursor_at(end, request.about()) if end < found.total else None,
            generation=view.reader.generation.number,
            warnings=warnings,
            total=found.total,
            files=found.files,
        )

    return project.viewing(page, warnings.append)


@router.get("/context", responses=_PROBLEMS)
def context(project: Project, request: Annotated[ContextRequest, Query()]) -> PackedContext:
    """Pack the best passages into a token budget, in reading order, without repeats."""
    return _context(project, request)


@router.post("/context", operation_id="context_by_body", responses=_PROBLEMS)
def context_by_body(project: Project, request: ContextRequest) -> PackedContext:
    """Pack passages like `GET /context`, for long or private queries."""
    return _context(project, request)


def _context(project: ServedProject, request: ContextRequest) -> PackedContext:
    warnings: list[str] = []

    def ask(view: View) -> PackedContext:
        with _blame_request(request):
            packed = operations.context.context(view, request)
        values = (packed.query, packed.found, packed.budget, packed.tokens, packed.passages, packed.markdown)
        return PackedContext(*values, generation=view.reader.generation.number, warnings=warnings)

    return project.viewing(ask, warnings.append)


class ChangedFile(BaseModel):
    """A change to a file in a commit: A(dded), M(odified), D(eleted), R(enamed), or T (type changed)."""

    status: str
    path: str
    renamed_from: str | None
    insertions: int | None
    deletions: int | None
    functions: list[str] | None = Field(description="The enclosing functions or headings that git reports.")


class Commit(BaseModel):
    """A commit, in the format of `docindex log --json`. Times are UTC."""

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


def _add_endpoint(path: str, operation: Listing[Any], item: Any) -> None:
    """Add the endpoint of an operation that lists results of a type."""
    model = type(operation.request.__name__, (Paged, operation.request), {"__doc__": operation.request.__doc__})

    def endpoint(project: ServedProject, request: Any) -> Any:
        return _page_of_results(project, request, partial(_run, operation, request), Answer[item])

    project, request = inspect.signature(endpoint).parameters.values()
    parameters = [project.replace(annotation=Project), request.replace(annotation=Annotated[model, Query()])]
    vars(endpoint)["__signature__"] = inspect.Signature(parameters)
    router.add_api_route(
        path,
        endpoint,
        name=path.removeprefix("/"),
        description=operation.summary,
        response_model=Answer[item],
        responses=_PROBLEMS,
    )


def _run(operation: Listing[Any], request: Any, view: View, limit: int) -> list[Any]:
    return operation.run(view, request, limit)


_add_endpoint("/similar", SIMILAR, Hit)
_add_endpoint("/log", LOG, Commit)
