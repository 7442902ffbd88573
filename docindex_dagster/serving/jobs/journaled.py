"""The runs in the journal as jobs, whoever started them."""

import os
import signal
from contextlib import suppress

from docindex_dagster.core.errors import EndedJobError, JobError, UnknownJobError
from docindex_dagster.core.layout import Layout
from docindex_dagster.runner import entries, journal
from docindex_dagster.runner.entries import Entry
from docindex_dagster.serving.jobs import progress
from docindex_dagster.serving.jobs.model import Job, JobRequest, State, iso_time

_STATES = {
    entries.State.RUNNING: State.RUNNING,
    entries.State.SUCCEEDED: State.SUCCEEDED,
    entries.State.FAILED: State.FAILED,
    entries.State.LOST: State.LOST,
    entries.State.CANCELED: State.CANCELED,
}


def all_of(layout: Layout) -> list[Job]:
    """All runs in the journal, newest first."""
    return [_as_job(layout, entry) for _, entry in journal.runs(layout)][::-1]


def get(layout: Layout, run_id: str) -> Job | None:
    """One run; None where the journal does not have it."""
    entry = journal.find(layout, run_id)
    return None if entry is None else _as_job(layout, entry)


def cancel(layout: Layout, run_id: str) -> None:
    """Interrupt the process of a run.

    Raises:
        UnknownJobError: the journal does not have it.
        EndedJobError: it has ended.
        JobError: it is one of `docindex watch`.
    """
    entry = journal.find(layout, run_id)
    if entry is None:
        raise UnknownJobError(f"run {run_id!r} not found")
    if entry.end is not None:
        raise EndedJobError(f"run {run_id} has ended already: {entry.state}")
    if entry.begin.launched_by == "watch":
        raise JobError(f"run {run_id} belongs to process {entry.begin.pid}, which watches the sources: stop that one")
    journal.mark_cancelling(layout, run_id)
    with suppress(ProcessLookupError):
        os.kill(entry.begin.pid, signal.SIGINT)


def _as_job(layout: Layout, entry: Entry) -> Job:
    begin, end, state = entry.begin, entry.end, _STATES[entry.state]
    position = progress.NOT_BEGUN if end is not None else progress.of_run(layout, begin.source, begin.run_id)
    return Job(
        id=begin.run_id,
        request=JobRequest("index", begin.source, begin.mode, begin.only),
        state=state,
        phase=position.phase,
        done=position.done,
        total=position.total,
        percent=100 if state is State.SUCCEEDED else position.percent,
        created_at=iso_time(begin.began_at),
        started_at=iso_time(begin.began_at),
        ended_at=iso_time(end.ended_at) if end is not None else None,
        run_id=begin.run_id,
        summary=None,
        failures=end.failures if end is not None else (),
        launched_by=begin.launched_by,
    )
