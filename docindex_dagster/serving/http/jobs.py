"""Jobs, and runs that others started: which there are, how far they are, and ending them."""

from collections.abc import AsyncIterator
from typing import Annotated

import anyio
from fastapi import APIRouter, Depends, Header
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool

from docindex_dagster.serving.http.paging import Cursor, Limit, Page, page_of, start_of
from docindex_dagster.serving.http.problems import documented
from docindex_dagster.serving.http.served_project import Project
from docindex_dagster.serving.jobs.model import Job, JobEvent

router = APIRouter(tags=["jobs"])
_POLL_S = 0.25  # between two looks for events


def _seen(
    project: Project,
    id: str,  # noqa: A002 the name in the path
    last_event_id: Annotated[
        str | None, Header(pattern="^[0-9]{1,18}$", description="The last event that was seen.")
    ] = None,
) -> int:
    """The last event that a client has seen; before the answer begins, since then it could be no problem any more."""
    project.jobs.get(id)
    return int(last_event_id or 0)


_Seen = Annotated[int, Depends(_seen)]


@router.get("/jobs", responses=documented())
def jobs(project: Project, limit: Limit = 50, cursor: Cursor = None) -> Page[Job]:
    """List the jobs, and the runs that sensors, schedules and commands started, the newest first."""
    return page_of(project.jobs.all(), start_of(cursor, "jobs"), limit, "jobs")


@router.get("/jobs/{id}", responses=documented("unknown-job"))
def job(project: Project, id: str) -> Job:  # noqa: A002 the name in the path
    """Give one job: its state, its phase, and of how much of it so much is done."""
    return project.jobs.get(id)


@router.delete("/jobs/{id}", status_code=202, responses=documented("unknown-job", "job-ended", "jobs-off", "job"))
def cancel(project: Project, id: str) -> Job:  # noqa: A002 the name in the path
    """End a job or run. One that waits has ended at once; the run of one at work ends as canceled."""
    return project.jobs.cancel(id)


@router.get("/jobs/{id}/events", response_class=EventSourceResponse, responses=documented("unknown-job"))
async def events(project: Project, id: str, seen: _Seen) -> AsyncIterator[ServerSentEvent]:  # noqa: A002 as above
    """Follow a job as server-sent events, from its first one or from behind the last that was seen, to its end."""
    while True:
        is_over = (await run_in_threadpool(project.jobs.get, id)).state.has_ended
        for event in await run_in_threadpool(project.jobs.events, id, seen):
            seen = event.number
            yield _sent(event)
        if is_over:
            return
        await anyio.sleep(_POLL_S)


def _sent(event: JobEvent) -> ServerSentEvent:
    return ServerSentEvent(id=str(event.number), event=event.name, data=event.data)
