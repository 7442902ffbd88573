"""Pages of sources and of jobs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse

from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.layout import Layout
from docindex_dagster.operations.status import SourceStatus, StatusRequest, status
from docindex_dagster.render.html import pictures
from docindex_dagster.render.html.templating import page, page_or_part, seconds_between
from docindex_dagster.runner.entries import State
from docindex_dagster.serving.http.problems import ProblemError
from docindex_dagster.serving.http.served_project import Project, Served
from docindex_dagster.serving.jobs.model import Job
from docindex_dagster.serving.web import files
from docindex_dagster.sources import registry
from docindex_dagster.sources.explanation import Skipped, skipped_files
from docindex_dagster.status import catalog

router = APIRouter()
_COMMITS = 8
_MOST_FILES = 50  # of a rule that are named
_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that keeps files out, and the first of them."""

    name: str
    count: int
    files: Sequence[Skipped]


@router.get("/sources")
@router.get("/part/sources")
def sources(project: Project, request: Request) -> HTMLResponse:
    """The state of each source, as a page or as its table alone."""
    found, warnings = _states(project)
    entries = catalog.entries_of(project.settings)
    return page_or_part(
        request,
        "sources.html",
        sources=found,
        warnings=warnings,
        jobs=under_way(project),
        bars={entry.source: pictures.languages(entry.languages) for entry in entries},
        declared=registry.sources(project.settings),
    )


@router.get("/source/{kind}/{name:path}")
def source(project: Project, request: Request, kind: str, name: str) -> HTMLResponse:
    """All that is known of one source.

    Raises:
        ProblemError: there is none.
    """
    key = f"{kind}/{name}"
    states, warnings = _states(project)
    one = next((status for status in states if status.source == key), None)
    if one is None:
        raise ProblemError("unknown-source", f"there is no source {key}")
    layout = Layout(project.settings.home)
    entry = next((entry for entry in catalog.entries_of(project.settings) if entry.source == key), None)
    return page(
        request,
        "source.html",
        source=one,
        entry=entry,
        declared=registry.sources(project.settings).get(key),
        bar=pictures.languages(entry.languages) if entry else None,
        commits=files.newest(project, key, _COMMITS) if entry and entry.commits else [],
        rules=_rules(layout, key),
        jobs=under_way(project, key),
        warnings=warnings,
    )


def _states(project: Served) -> tuple[list[SourceStatus], list[str]]:
    """How all sources stand, and what could not be found out."""
    warnings: list[str] = []
    return status(project.settings, StatusRequest(), project.runs_of, warnings.append).rows(), warnings


def _rules(layout: Layout, key: str) -> list[Rule]:
    """What the last run left out, by rule, the most first."""
    try:
        skipped = skipped_files(layout, key)
    except DocindexError:
        return []
    grouped = [(rule, list(files)) for rule, files in groupby(skipped, key=lambda file: file.rule)]
    return sorted((Rule(rule, len(files), files[:_MOST_FILES]) for rule, files in grouped), key=lambda one: -one.count)


@dataclass(frozen=True, slots=True)
class Shown:
    """A job with what its template needs."""

    job: Job
    seconds: float | None

    @property
    def took(self) -> str:
        """How long it takes, in words."""
        if self.seconds is None:
            return ""
        minutes, seconds = divmod(round(self.seconds), 60)
        return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


@router.get("/jobs")
@router.get("/part/jobs")
def jobs(project: Project, request: Request) -> HTMLResponse:
    """The list of jobs, as a page or alone."""
    return page_or_part(request, "jobs.html", jobs=shown(project.jobs.all()[:_SHOWN]))


@router.get("/part/work")
def at_work(project: Project, request: Request, source: str = "") -> HTMLResponse:
    """What has not ended, of one source or of all."""
    return page(request, "_work.html", jobs=under_way(project, source))


@router.get("/part/pulse")
def pulse(project: Project, request: Request) -> HTMLResponse:
    """What is at work, in a word for the head of the page."""
    found = under_way(project)
    return page(request, "_pulse.html", jobs=found, waiting=sum(one.job.state is State.QUEUED for one in found))


def under_way(project: Served, source: str = "") -> list[Shown]:
    """The jobs that have not ended; those at work first."""
    found = [job for job in project.jobs.all() if not job.state.has_ended and source in {"", job.request.source}]
    return shown(sorted(found, key=lambda job: (job.state is State.QUEUED, job.created_at)))


def shown(jobs: Sequence[Job]) -> list[Shown]:
    """Jobs as they are shown."""
    return [Shown(job, seconds_between(job.started_at, job.ended_at)) for job in jobs]
