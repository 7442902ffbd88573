"""Pages of sources and jobs."""

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
from docindex_dagster.serving.http.served_project import Project, ServedProject
from docindex_dagster.serving.jobs.model import Job
from docindex_dagster.serving.web import files
from docindex_dagster.sources import registry
from docindex_dagster.sources.explanation import Skipped, skipped_files
from docindex_dagster.status import catalog

router = APIRouter()
_COMMITS = 8
_MAX_FILES = 50  # listed per rule
_MAX_JOBS = 100


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that excludes files, with the first of these files."""

    name: str
    count: int
    files: Sequence[Skipped]


@router.get("/sources")
@router.get("/part/sources")
def sources(project: Project, request: Request) -> HTMLResponse:
    """Return the state of each source, as a page or only as a table."""
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
    """Return the page of one source.

    Raises:
        ProblemError: it does not exist.
    """
    key = f"{kind}/{name}"
    states, warnings = _states(project)
    source_status = next((status for status in states if status.source == key), None)
    if source_status is None:
        raise ProblemError("unknown-source", f"source {key} not found")
    layout = Layout(project.settings.home)
    entry = next((entry for entry in catalog.entries_of(project.settings) if entry.source == key), None)
    return page(
        request,
        "source.html",
        source=source_status,
        entry=entry,
        declared=registry.sources(project.settings).get(key),
        bar=pictures.languages(entry.languages) if entry else None,
        commits=files.newest(project, key, _COMMITS) if entry and entry.commits else [],
        rules=_rules(layout, key),
        jobs=under_way(project, key),
        warnings=warnings,
    )


def _states(project: ServedProject) -> tuple[list[SourceStatus], list[str]]:
    """Return the status of all sources, and warnings about what could not be determined."""
    warnings: list[str] = []
    return status(project.settings, StatusRequest(), project.runs_of, warnings.append).rows(), warnings


def _rules(layout: Layout, key: str) -> list[Rule]:
    """Return what the last run excluded, by rule, most files first."""
    try:
        skipped = skipped_files(layout, key)
    except DocindexError:
        return []
    grouped = [(rule, list(files)) for rule, files in groupby(skipped, key=lambda file: file.rule)]
    return sorted((Rule(rule, len(files), files[:_MAX_FILES]) for rule, files in grouped), key=lambda rule: -rule.count)


@dataclass(frozen=True, slots=True)
class Shown:
    """A job with what its template needs."""

    job: Job
    seconds: float | None

    @property
    def took(self) -> str:
        """The duration of the job, as text."""
        if self.seconds is None:
            return ""
        minutes, seconds = divmod(round(self.seconds), 60)
        return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


@router.get("/jobs")
@router.get("/part/jobs")
def jobs(project: Project, request: Request) -> HTMLResponse:
    """Return the list of jobs, as a page or alone."""
    return page_or_part(request, "jobs.html", jobs=shown(project.jobs.all()[:_MAX_JOBS]))


@router.get("/part/work")
def unfinished_jobs(project: Project, request: Request, source: str = "") -> HTMLResponse:
    """Return the jobs that have not ended, of one source or of all."""
    return page(request, "_work.html", jobs=under_way(project, source))


@router.get("/part/pulse")
def pulse(project: Project, request: Request) -> HTMLResponse:
    """Return a short summary of running jobs for the page header."""
    found = under_way(project)
    return page(request, "_pulse.html", jobs=found, waiting=sum(item.job.state is State.QUEUED for item in found))


def under_way(project: ServedProject, source: str = "") -> list[Shown]:
    """Return the jobs that have not ended, running ones first."""
    found = [job for job in project.jobs.all() if not job.state.has_ended and source in {"", job.request.source}]
    return shown(sorted(found, key=lambda job: (job.state is State.QUEUED, job.created_at)))


def shown(jobs: Sequence[Job]) -> list[Shown]:
    """Return jobs in the form that templates need."""
    return [Shown(job, seconds_between(job.started_at, job.ended_at)) for job in jobs]
