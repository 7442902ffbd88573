"""Jobs: what runs now, what ran, and a word for the head of each page."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse

from docindex_dagster.runner.entries import State
from docindex_dagster.serving.http.served import Project, Served
from docindex_dagster.serving.jobs.model import Job
from docindex_dagster.serving.web.templating import page, page_or_part, seconds_between

router = APIRouter()
_SHOWN = 100


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
