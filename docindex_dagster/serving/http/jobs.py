"""Endpoints to list, follow and cancel jobs and other runs."""

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
_POLL_S = 0.25  # between two checks for events


def _last_event_seen(
    project: Project,
    id: str,  # noqa: A002 the name in the path
    last_event_id: Annotated[
        str | None, Header(pattern="^[0-9]{1,18}$", description="The last event received.")
    ] = None,
) -> int:
    """Return the last event received. As a dependency, it can still raise a problem, before the stream starts."""
    project.jobs.get(id)
    return int(last_event_id or 0)


_Seen = Annotated[int, Depends(_last_event_seen)]


@router.get("/jobs", responses=documented())
def jobs(project: Project, limit: Limit = 50, cursor: Cursor = None) -> Page[Job]:
    """List jobs, and runs started by sensors, schedules and commands, newest first."""
    return page_of(project.jobs.all(), start_of(cursor, "jobs"), limit, "jobs")


@router.get("/jobs/{id}", responses=documented("unknown-job"))
def job(project: Project, id: str) -> Job:  # noqa: A002 the name in the path
    """Return a job with its state, phase and progress."""
    return project.jobs.get(id)


@router.delete("/jobs/{id}", status_code=202, responses=documented("unknown-job", "job-ended", "jobs-off", "job"))
def cancel(project: Project, id: str) -> Job:  # noqa: A002 the name in the path
    """Cancel a job or run. If it is waiting, it ends immediately; if it is running, its run ends as canceled."""
    return project.jobs.cancel(id)


@router.get("/jobs/{id}/events", response_class=EventSourceResponse, responses=documented("unknown-job"))
async def events(project: Project, id: str, seen: _Seen) -> AsyncIterator[ServerSentEvent]:  # noqa: A002 as above
    """Stream the events of a job as server-sent events, from the first or after the last one received, to its end."""
    while True:
        is_over = (await run_in_threadpool(project.jobs.get, id)).state.has_ended
        for event in await run_in_threadpool(project.jobs.events, id, seen):
            seen = event.number
            yield _to_sse(event)
        if is_over:
            return
        await anyio.sleep(_POLL_S)


def _to_sse(event: JobEvent) -> ServerSentEvent:
    return ServerSentEvent(id=str(event.number), event=event.name, data=event.data)
