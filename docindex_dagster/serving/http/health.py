"""Endpoints for the health of the server and the status of the sources."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Query

from docindex_dagster import __version__
from docindex_dagster.core.errors import SettingsError
from docindex_dagster.operations import status as operation
from docindex_dagster.operations.status import SourceStatus
from docindex_dagster.serving.http.paging import Cursor, Limit, Page, page_of, start_of
from docindex_dagster.serving.http.problems import documented
from docindex_dagster.serving.http.served_project import Project

router = APIRouter(tags=["status"])


@dataclass(frozen=True, slots=True)
class Health:
    """The state of the server. `has_model` says whether a model is configured; null if the settings are invalid."""

    status: Literal["ok"]
    version: str
    generation: int
    sources: int
    has_model: bool | None


@router.get("/health", responses=documented("no-index"))
def health(project: Project) -> Health:
    """Return the published generation of the index. Without a readable index, the status is 503."""
    generation = project.reading(lambda reader: reader.generation)
    has_model: bool | None = None
    with suppress(SettingsError):
        has_model = project.settings.llm.provider != "none"
    return Health("ok", __version__, generation.number, len(generation.sources), has_model)


@router.get("/status", responses=documented("no-index", "settings", "source"))
def status(
    project: Project,
    *,
    look: Annotated[bool, Query(description="Check for up to a second whether files have changed.")] = True,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[SourceStatus]:
    """List the status of each source, like `docindex status --json`."""
    about = ("status", look)
    start = start_of(cursor, about)
    request = operation.StatusRequest(look_s=operation.LOOK_S if look else 0)
    found = operation.status(project.settings, request, project.runs_of, lambda _: None)
    return page_of(found.rows(), start, limit, about)
