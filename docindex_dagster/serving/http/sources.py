"""Endpoints to list, add, remove and index sources, and to choose the default source of searches."""

import os
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Header, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from docindex_dagster.core.errors import SettingsError
from docindex_dagster.core.settings import is_parent_of_libraries
from docindex_dagster.core.urls import is_url
from docindex_dagster.operations import index as operation
from docindex_dagster.operations.fields import RawText
from docindex_dagster.serving.http.paging import Cursor, Limit, Page, page_of, start_of
from docindex_dagster.serving.http.problems import ProblemError, documented
from docindex_dagster.serving.http.security import is_from_here
from docindex_dagster.serving.http.served_project import Project
from docindex_dagster.serving.jobs.model import Job, JobRequest
from docindex_dagster.sources import config_edits, registry
from docindex_dagster.sources.registry import DeclaredSource
from docindex_dagster.status import catalog
from docindex_dagster.status.catalog import CatalogEntry

router = APIRouter(tags=["sources"])
_MAX_NAME = 1000
_MAX_GLOBS, _MAX_PATHS = 100, 1000
_Globs = Annotated[list[Annotated[str, Field(max_length=_MAX_NAME)]], Field(max_length=_MAX_GLOBS)]
# Problems that starting a job may cause.
_JOB_PROBLEMS = ("unknown-source", "source", "key-reused", "jobs-off", "queue-full", "settings")
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="Reusing a key within a day returns the job that the first request started.",
    ),
]


class NewSource(BaseModel):
    """A source to declare: a URL, or a folder on the server's machine, which only clients on that machine may name."""

    model_config = ConfigDict(extra="forbid")

    place: str = Field(
        min_length=1, max_length=_MAX_NAME, description="A URL to clone, or a folder (relative to the project)."
    )
    kind: Literal["library", "git"] | None = Field(default=None, description="Default: git for repositories.")
    name: str | None = Field(default=None, max_length=200, description="Default: the name of the folder or repository.")
    branch: str | None = Field(default=None, max_length=200, description="The branch, tag or commit to follow.")
    submodules: bool = False
    include: _Globs = []
    exclude: _Globs = []


class IndexRequest(operation.IndexRequest):
    """Options of an index run."""

    paths: list[RawText] = Field(
        default=[], max_length=_MAX_PATHS, description="Only these files, named as in results; default: all."
    )


@router.get("/sources", responses=documented("settings", "source"))
def sources(project: Project, limit: Limit = 100, cursor: Cursor = None) -> Page[DeclaredSource]:
    """List the declared sources."""
    settings = project.settings
    found = [DeclaredSource.of(settings, source) for source in registry.sources(settings).values()]
    return page_of(found, start_of(cursor, "sources"), limit, "sources")


@router.post("/sources", status_code=201, responses=documented("exists", "source", "settings"))
def add(project: Project, new: NewSource, request: Request, response: Response) -> DeclaredSource:
    """Declare a source, like `docindex source add`. Start a job to index it.

    Raises:
        ProblemError: the source is already declared, or this client may not declare it.
    """
    if is_parent_of_libraries(new.place):
        raise ProblemError("source", "declare a folder of libraries in docindex.toml or with `docindex source add`")
    if not _is_remote(new.place) and not is_from_here(request.scope):
        raise ProblemError("forbidden", "only clients on the server's machine can declare its folders; use a URL")
    settings = project.settings
    known = registry.sources_following(settings, new.place.rstrip("/"))
    if known and new.branch is None and new.name is None:
        raise ProblemError("exists", f"{known[0].key} already follows this URL")
    values = {
        "name": new.name,
        "submodules": new.submodules or None,
        "include": new.include or None,
        "exclude": new.exclude or None,
    }
    place = new.place if is_url(new.place) else str(settings.root / new.place)
    try:
        (key,) = config_edits.declare(settings.root, place, new.kind, new.branch, **values)
    except SettingsError as error:  # the requested source is invalid, not the current settings
        raise ProblemError("source", str(error)) from error
    response.headers["Location"] = f"/api/v1/sources/{quote(key)}"
    settings = project.settings
    return DeclaredSource.of(settings, registry.sources(settings)[key])


@router.get("/sources/{kind}/{name:path}/stats", responses=documented("unknown-source", "not-indexed", "settings"))
def stats(project: Project, kind: str, name: str) -> CatalogEntry:
    """Return the statistics of a source's index and of its repository.

    Raises:
        ProblemError: the source does not exist or is not indexed yet.
    """
    key = f"{kind}/{name}"
    found = {entry.source: entry for entry in catalog.entries_of(project.settings)}.get(key)
    if found is None:
        project.source(key)
        raise ProblemError("not-indexed", f"{key} is not indexed yet")
    return found


@router.put("/sources/{kind}/{name:path}/default", responses=documented("unknown-source", "settings"))
def use(project: Project, kind: str, name: str) -> DeclaredSource:
    """Make a source the default of searches, like `docindex source use`."""
    source = project.source(f"{kind}/{name}")
    config_edits.use(project.settings.root, source.key)
    return DeclaredSource.of(project.settings, source)


@router.delete(
    "/sources/{kind}/{name:path}/default", status_code=204, responses=documented("unknown-source", "settings")
)
def use_all(project: Project, kind: str, name: str) -> None:
    """Reset searches to all sources by default, if this source is the default."""
    source = project.source(f"{kind}/{name}")
    if project.settings.search.default_source == source.key:
        config_edits.use(project.settings.root, None)


@router.post("/sources/{kind}/{name:path}/index", status_code=202, responses=documented(*_JOB_PROBLEMS, "job"))
def index(
    project: Project,
    kind: str,
    name: str,
    response: Response,
    request: IndexRequest | None = None,
    idempotency_key: IdempotencyKey = None,
) -> Job:
    """Start a job that updates the index of a source, with a recorded run like that of `docindex index`."""
    asked = request or IndexRequest()
    key = project.source(f"{kind}/{name}").key
    return _submit(project, JobRequest("index", key, asked.mode, tuple(asked.paths)), idempotency_key, response)


@router.get("/sources/{kind}/{name:path}", responses=documented("unknown-source", "settings"))
def source(project: Project, kind: str, name: str) -> DeclaredSource:
    """Return a source."""
    return DeclaredSource.of(project.settings, project.source(f"{kind}/{name}"))


@router.delete("/sources/{kind}/{name:path}", status_code=202, responses=documented(*_JOB_PROBLEMS))
def remove(project: Project, kind: str, name: str, response: Response, idempotency_key: IdempotencyKey = None) -> Job:
    """Start a job that removes a source from the index, Dagster and docindex.toml. Its files are not touched."""
    key = project.source(f"{kind}/{name}").key
    config_edits.check_removable(project.settings.root, key)
    return _submit(project, JobRequest("remove", key), idempotency_key, response)


def _submit(project: Project, request: JobRequest, key: str | None, response: Response) -> Job:
    job = project.jobs.submit(request, key)
    response.headers["Location"] = f"/api/v1/jobs/{job.id}"
    return job


def _is_remote(place: str) -> bool:
    """Return whether a location is a URL on another machine."""
    return is_url(place) and not place.lower().startswith("file:") and not os.path.lexists(place)
