"""Endpoints for search, contexts, exact matches, similar places and commits."""

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
from docindex_dagster.serving.http.client_disconnect import until_it_leaves
from docindex_dagster.serving.http.paging import Answer, Paged, cursor_at, page_of, start_of
from docindex_dagster.serving.http.problems import ProblemError, documented
from docindex_dagster.serving.http.served_project import Project, Served

router = APIRouter(tags=["search"], dependencies=[Depends(until_it_leaves)])
_PROBLEMS = documented("query", "source", "no-index", "settings", "upstream")
MOST_RESULTS = 1000  # of a search, over all its pages
_Answer = TypeVar("_Answer")
_Moment = Annotated[datetime, PlainSerializer(str, return_type=str)]  # as the command prints it


class SearchRequest(Paged, operations.search.SearchRequest):
    """A search."""


class MatchesRequest(Paged, operations.search.MatchesRequest):
    """A search for an exact text or a pattern."""

    limit: int = Field(default=100, ge=1, le=1000, description="How many matches at most.")


@dataclass(frozen=True, slots=True)
class PackedContext:
    """The best passages that fit into a budget, and the same as Markdown."""

    query: str
    found: int
    budget: int
    tokens: int
    passages: tuple[ContextPassage, ...]
    markdown: str
    generation: int
    warnings: list[str]


class MatchesAnswer(Answer[Match]):
    """Places of an exact text, and how many there are in all."""

    total: int
    files: int


@router.get("/search", responses=_PROBLEMS)
def search(project: Project, request: Annotated[SearchRequest, Query()]) -> Answer[Hit]:
    """Find chunks, best first. The items are those of `docindex search --json`."""
    return _search(project, request)


@router.post("/search", operation_id="search_by_body", responses=_PROBLEMS)
def search_by_body(project: Project, request: SearchRequest) -> Answer[Hit]:
    """Find chunks as `GET /search` does, for queries that are long or private."""
    return _search(project, request)


def _search(project: Served, request: SearchRequest) -> Answer[Hit]:
    def ask(view: View, most: int) -> list[Hit]:
        with _blaming(request):
            return operations.search.search(view, request, most)

    return _listed(project, request, ask, Answer[Hit])


@contextmanager
def _blaming(request: operations.search.SearchRequest) -> Iterator[None]:
    """Report a reranker that cannot be used as a mistake of who asks for it."""
    try:
        yield
    except SettingsError as error:
        if request.rerank is None:
            raise
        raise ProblemError("query", f"rerank: {error}") from error


def _listed(
    project: Served, request: Paged, ask: Callable[[View, int], list[Any]], answer: type[Answer[_Answer]]
) -> Answer[_Answer]:
    """A page of what is found, of one generation. `ask` gets how many results are wanted, those before included."""
    start = start_of(request.cursor, request.about())
    most = min(start + request.limit + 1, MOST_RESULTS)
    warnings: list[str] = []

    def page(view: View) -> Answer[_Answer]:
        part = page_of(ask(view, most), start, request.limit, request.about())
        return answer(**dict(part), generation=view.reader.generation.number, warnings=warnings)

    return project.viewing(page, warnings.append)


@router.get("/matches", responses=_PROBLEMS)
def matches(project: Project, request: Annotated[MatchesRequest, Query()]) -> MatchesAnswer:
    """List every place of an exact text or of a pattern (RE2), in order of source, path and line."""
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
    """Pack the best passages into a budget of tokens, in reading order, without repeats."""
    return _context(project, request)


@router.post("/context", operation_id="context_by_body", responses=_PROBLEMS)
def context_by_body(project: Project, request: ContextRequest) -> PackedContext:
    """Pack passages as `GET /context` does, for queries that are long or private."""
    return _context(project, request)


def _context(project: Served, request: ContextRequest) -> PackedContext:
    warnings: list[str] = []

    def ask(view: View) -> PackedContext:
        with _blaming(request):
            packed = operations.context.context(view, request)
        values = (packed.query, packed.found, packed.budget, packed.tokens, packed.passages, packed.markdown)
        return PackedContext(*values, generation=view.reader.generation.number, warnings=warnings)

    return project.viewing(ask, warnings.append)


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


def _add(path: str, operation: Listing[Any], item: Any) -> None:
    """Add the endpoint of an operation that lists results of a type."""
    model = type(operation.request.__name__, (Paged, operation.request), {"__doc__": operation.request.__doc__})

    def endpoint(project: Served, request: Any) -> Any:
        return _listed(project, request, partial(_run, operation, request), Answer[item])

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


def _run(operation: Listing[Any], request: Any, view: View, most: int) -> list[Any]:
    return operation.run(view, request, most)


_add("/similar", SIMILAR, Hit)
_add("/log", LOG, Commit)
