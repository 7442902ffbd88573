"""Endpoints for indexed files, for why a file is not indexed, and for the knowledge graph."""

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from docindex_dagster import operations
from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.references import parse
from docindex_dagster.graph.analysis import Statistics, statistics
from docindex_dagster.graph.queries import Step
from docindex_dagster.operations.fields import LONGEST_NAME, Names
from docindex_dagster.operations.graph import Question
from docindex_dagster.operations.view import View
from docindex_dagster.operations.why import PathAnswer, explain_file
from docindex_dagster.search.file_text import FileText, read_file
from docindex_dagster.search.freshness import file_resolver
from docindex_dagster.serving.http.paging import Paged, page_of, start_of
from docindex_dagster.serving.http.problems import ProblemError, documented
from docindex_dagster.serving.http.served_project import Project
from docindex_dagster.sources.model import Source
from docindex_dagster.stores.reader import Reader

router = APIRouter(tags=["files"])
_PROBLEMS = documented("query", "source", "no-index", "settings")


@dataclass(frozen=True, slots=True)
class MarkedFile:
    """A file as it was indexed, with the requested lines; null for the entire file."""

    file: FileText
    start: int | None
    end: int | None
    generation: int


@dataclass(frozen=True, slots=True)
class Edge(Step):
    """An edge, with the path on disk of the file that it comes from; null if the file does not exist."""

    file: str | None = None


class GraphAnswer(BaseModel):
    """Edges, nearest first, and notes on what is unknown."""

    items: list[Edge]
    next: str | None
    notes: list[str]
    generation: int


@router.get("/files/{place:path}", responses=documented("unknown-source", "unknown-file", "no-index", "settings"))
def file(
    project: Project,
    place: str,
    start: Annotated[int | None, Query(alias="from", ge=1, description="The first line to mark.")] = None,
    end: Annotated[int | None, Query(alias="to", ge=1, description="The last line to mark; default: `from`.")] = None,
) -> MarkedFile:
    """Return a complete file as it was indexed. Address it as KIND/NAME/PATH, like search results do."""

    def answer(reader: Reader) -> MarkedFile:
        key, path = split_place(place, reader.generation.sources)
        try:
            found = read_file(project.settings, reader, key, path)
        except QueryError as error:
            raise ProblemError("unknown-file", str(error)) from error
        last = start if end is None else end
        if start is not None and not start <= (last or start) <= found.last_line:
            raise ProblemError("invalid-request", f"from and to: {path} has lines 1 to {found.last_line}")
        return MarkedFile(found, start, last if start else None, reader.generation.number)

    return project.reading(answer)


def split_place(place: str, keys: Iterable[str]) -> tuple[str, str]:
    """Split a location into source and path. They are joined by a slash, but both may contain slashes.

    Raises:
        ProblemError: the location does not start with an indexed source.
    """
    matching = [key for key in keys if place.startswith(f"{key}/")]
    if not matching:
        raise ProblemError("unknown-source", f"{place} does not start with the name of an indexed source")
    key = max(matching, key=len)  # prefer the source of a branch
    return key, place.removeprefix(f"{key}/")


@router.get("/why", responses=documented("unknown-source", "unknown-file", "source", "settings"))
def why(
    project: Project,
    source: Annotated[str, Query(max_length=LONGEST_NAME, description="The key of a source, such as git/flask.")],
    path: Annotated[str, Query(max_length=LONGEST_NAME, description="A path in the source.")],
) -> PathAnswer:
    """Return whether a file is indexed, and if not, which rule excludes it.

    Raises:
        ProblemError: unknown source, or the path points outside the source.
    """
    declared = project.source(source)
    below = [
        reading.path for reading in parse(path, (source,)) if "\0" not in path and _is_below(declared, reading.path)
    ]
    if not below:
        raise ProblemError("unknown-file", f"{path!r} is not a path inside the folder of {source}")
    there = (name for name in below if declared.mode(name) is not None)
    return explain_file(project.settings, declared, next(there, below[0]))


def _is_below(source: Source, name: str) -> bool:
    wanted = Path(os.path.normpath(source.file(name)))
    return wanted.is_relative_to(source.path) and wanted != source.path


class StatisticsRequest(operations.fields.Request):
    """The sources whose part of the graph to count."""

    sources: Names = Field(default=[], description="Default: all.")


class GraphRequest(Paged, operations.graph.GraphRequest):
    """A question about the graph."""

    limit: int = Field(default=100, ge=1, le=1000, description="Maximum number of edges.")


@router.get("/graph/stats", responses=_PROBLEMS)
def graph_statistics(project: Project, request: Annotated[StatisticsRequest, Query()]) -> Statistics:
    """Return the statistics of the graph, like `docindex graph stats --json`."""
    return project.viewing(lambda view: statistics(view.graph(request.sources)))


@router.get("/graph/{question}", responses=_PROBLEMS)
def graph(project: Project, question: Question, request: Annotated[GraphRequest, Query()]) -> GraphAnswer:
    """Ask who calls a symbol, what it calls, what may break, what is nearby, or how two symbols are connected.

    The items are the same as in `docindex graph QUESTION --json`.
    """
    about = (question, request.about())
    start = start_of(request.cursor, about)

    def answer(view: View) -> GraphAnswer:
        found, file_of = operations.graph.graph(view, question, request), file_resolver(view.declared)
        part = page_of(found.steps, start, request.limit, about)
        return GraphAnswer(
            items=[Edge(**asdict(step), file=file_of(step.source, step.path)) for step in part.items],
            next=part.next,
            notes=found.notes,
            generation=view.reader.generation.number,
        )

    return project.viewing(answer)
