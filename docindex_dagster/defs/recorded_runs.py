"""Recorded runs as jobs, whoever started them, and cancellation that sensors respect."""

import json
import os
import signal
from contextlib import suppress
from dataclasses import asdict

import dagster as dg

from docindex_dagster.core.errors import DocindexError, EndedJobError, JobError, UnknownJobError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings
from docindex_dagster.defs import outcomes
from docindex_dagster.defs.dead_runs import live_process
from docindex_dagster.defs.jobs import REMOVE_SOURCE
from docindex_dagster.defs.sensors.files import state_now
from docindex_dagster.defs.tags import (
    DECLINED_TAG,
    FULL_TAG,
    LAUNCHER_TAG,
    ONLY_TAG,
    PARTITION_TAG,
    SOURCE_TAG,
    VERIFY_TAG,
)
from docindex_dagster.memory import domains
from docindex_dagster.runner.entries import State
from docindex_dagster.serving.jobs.model import DONE, Job, JobRequest, iso_time, position_of
from docindex_dagster.sources import registry

_STATES = {
    dg.DagsterRunStatus.QUEUED: State.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED: State.QUEUED,
    dg.DagsterRunStatus.CANCELING: State.CANCELLING,
    dg.DagsterRunStatus.SUCCESS: State.SUCCEEDED,
    dg.DagsterRunStatus.FAILURE: State.FAILED,
    dg.DagsterRunStatus.CANCELED: State.CANCELED,
}
# Dagster's own tags for what requested a run.
_REQUESTED_BY = {
    "dagster/sensor_name": "sensor",
    "dagster/schedule_name": "schedule",
    "dagster/backfill": "backfill",
}


def newest_jobs(instance: dg.DagsterInstance, settings: Settings, limit: int) -> list[Job]:
    """Return the newest runs that index or remove a source. Only `one` reads failure reasons, each from a file."""
    records = instance.get_run_records(limit=limit)
    return [job for record in records if (job := _as_job(record, settings)) is not None]


def find_job(instance: dg.DagsterInstance, settings: Settings, run_id: str) -> Job | None:
    """Return a run as a job, or None if it does not exist or neither indexes nor removes a source."""
    record = instance.get_run_record_by_id(run_id)
    if record is None:
        return None
    reasons = (outcomes.reason(instance, run_id),) if record.dagster_run.status is dg.DagsterRunStatus.FAILURE else ()
    return _as_job(record, settings, reasons)


def _as_job(record: dg.RunRecord, settings: Settings, reasons: tuple[str, ...] = ()) -> Job | None:
    run = record.dagster_run
    request = _request(run)
    if request is None:
        return None
    state = _STATES.get(run.status, State.RUNNING)
    is_active = state in {State.RUNNING, State.CANCELLING}
    source = run.tags.get(PARTITION_TAG) if is_active else None
    position = DONE if state is State.SUCCEEDED else position_of(Layout(settings.home), source, run.run_id)
    return Job(
        id=run.run_id,
        request=request,
        state=state,
        **asdict(position),
        created_at=iso_time(record.create_timestamp.timestamp()),
        started_at=iso_time(record.start_time) if record.start_time else None,
        ended_at=iso_time(record.end_time) if record.end_time else None,
        run_id=run.run_id,
        summary=None,
        failures=reasons,
        launched_by=launcher(run),
    )


def _request(run: dg.DagsterRun) -> JobRequest | None:
    if run.job_name == REMOVE_SOURCE:
        return JobRequest("remove", run.tags[SOURCE_TAG]) if SOURCE_TAG in run.tags else None
    if PARTITION_TAG not in run.tags or domains.is_key(run.tags[PARTITION_TAG]):
        return None
    source, paths = run.tags[PARTITION_TAG], tuple(json.loads(run.tags.get(ONLY_TAG, "[]")))
    if FULL_TAG in run.tags:
        return JobRequest("index", source, "full")
    return JobRequest("index", source, "verify" if VERIFY_TAG in run.tags else "changes", paths)


def launcher(run: dg.DagsterRun) -> str:
    """Return what started a run."""
    requester = next((name for tag, name in _REQUESTED_BY.items() if tag in run.tags), None)
    if requester is not None:
        return requester
    if run.remote_job_origin is not None:  # runs launched outside a code location have none
        return "Dagster UI"
    return run.tags.get(LAUNCHER_TAG, "command line")


def cancel(instance: dg.DagsterInstance, settings: Settings, run_id: str) -> None:
    """Cancel a run: dequeue it if it is queued, or interrupt its process, directly or through its launcher.

    Raises:
        UnknownJobError: The run does not exist.
        EndedJobError: The run has ended.
        JobError: The process of the run cannot be reached.
    """
    run = instance.get_run_by_id(run_id)
    if run is None:
        raise UnknownJobError(f"run not found: {run_id!r}")
    if run.is_finished:
        raise EndedJobError(f"run {run_id} has already ended: {run.status.value.lower()}")
    process = live_process(run)
    if process is not None:
        if run.status is not dg.DagsterRunStatus.CANCELING:
            instance.report_run_canceling(run)  # an interrupt then results in CANCELED rather than FAILURE
        decline(instance, settings, run)
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGINT)
    elif run.remote_job_origin is not None and instance.run_coordinator.cancel_run(run_id):
        decline(instance, settings, run)
    else:
        raise JobError(f"cannot reach the process of run {run_id} from here: stop it on its own machine")


def decline(instance: dg.DagsterInstance, settings: Settings, run: dg.DagsterRun) -> None:
    """Record in a canceled run the current state of its source, so that sensors wait for a change."""
    source = registry.sources(settings).get(run.tags.get(PARTITION_TAG, ""))
    if source is None:
        return
    try:
        state = state_now(source)
    except (DocindexError, OSError):  # the source is unreadable, so any later state counts as a change
        return
    instance.add_run_tags(run.run_id, {DECLINED_TAG: state})
