"""Jobs, and runs that others started: which there are, how far they are, and ending them."""

from collections.abc import AsyncIterator
from typing import Annotated

import anyio
from fastapi import APIRouter, Header
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool

from docindex_dagster.serving.http.paging import Cursor, Limit, Page, page_of, start_of
from docindex_dagster.serving.http.problems import ProblemError
from docindex_dagster.serving.http.served import Project
from docindex_dagster.serving.jobs.model import Job, JobEvent

router = APIRouter(tags=["jobs"])
_POLL_S = 0.25  # between two looks for events


@router.get("/jobs")
def jobs(project: Project, limit: Limit = 50, cursor: Cursor = None) -> Page[Job]:
    """List the jobs, and the runs that sensors, schedules and commands started, the newest first."""
    return page_of(project.jobs.all(), start_of(cursor, "jobs"), limit, "jobs")


@router.get("/jobs/{id}")
def job(project: Project, id: str) -> Job:  # noqa: A002 the name in the path
    """Give one job: its state, its phase, and of how much of it so much is done."""
    return project.jobs.get(id)


@router.delete("/jobs/{id}", status_code=202)
def cancel(project: Project, id: str) -> Job:  # noqa: A002 the name in the path
    """End a job or run. One that waits has ended at once; the run of one at work ends as canceled."""
    return project.jobs.cancel(id)


@router.get("/jobs/{id}/events", response_class=EventSourceResponse)
async def events(
    project: Project,
    id: str,  # noqa: A002 the name in the path
    last_event_id: Annotated[str | None, Header(max_length=20, description="The last event that was seen.")] = None,
) -> AsyncIterator[ServerSentEvent]:
    """Follow a job as server-sent events, from its first one or from behind the last that was seen, to its end."""
    seen = _number(last_event_id)
    await run_in_threadpool(project.jobs.get, id)
    while True:
        has_ended = await run_in_threadpool(project.jobs.has_ended, id)
        found = await run_in_threadpool(project.jobs.events, id, seen)
        for event in found:
            seen = event.number
            yield _sent(event)
        if has_ended:
            return
        await anyio.sleep(_POLL_S)


def _number(last_event_id: str | None) -> int:
    if last_event_id is None:
        return 0
    if not (last_event_id.isascii() and last_event_id.isdecimal()):
        raise ProblemError("invalid-request", "Last-Event-ID: no event has this id")
    return int(last_event_id)


def _sent(event: JobEvent) -> ServerSentEvent:
    return ServerSentEvent(id=str(event.number), event=event.name, data=event.data)
