"""Whether the server is well, and how its sources stand."""

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
    """That the server answers, and from what; whether a language model is set, null where the settings are wrong."""

    status: Literal["ok"]
    version: str
    generation: int
    sources: int
    has_model: bool | None


@router.get("/health", responses=documented("no-index"))
def health(project: Project) -> Health:
    """Say that there is an index that can be read, and which generation of it is published; 503 where there is none."""
    generation = project.reading(lambda reader: reader.generation)
    has_model: bool | None = None
    with suppress(SettingsError):
        has_model = project.settings.llm.provider != "none"
    return Health("ok", __version__, generation.number, len(generation.sources), has_model)


@router.get("/status", responses=documented("no-index", "settings", "source"))
def status(
    project: Project,
    *,
    look: Annotated[bool, Query(description="Look whether files changed since, for a second at most.")] = True,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[SourceStatus]:
    """List how each source stands, as `docindex status --json` does."""
    about = ("status", look)
    start = start_of(cursor, about)
    request = operation.StatusRequest(look_s=operation.LOOK_S if look else 0)
    found = operation.status(project.settings, request, project.runs_of, lambda _: None)
    return page_of(found.rows(), start, limit, about)
