"""The runs of an instance as jobs, whoever started them, and stopping them so that they stay stopped."""

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
# Tags of Dagster's own, by which it says what asked for a run.
_ASKED_BY = {
    "dagster/sensor_name": "sensor",
    "dagster/schedule_name": "schedule",
    "dagster/backfill": "backfill",
}


def newest(instance: dg.DagsterInstance, settings: Settings, limit: int) -> list[Job]:
    """The newest runs that index or remove a source; the reasons of failures are in `one` alone, each in a file."""
    records = instance.get_run_records(limit=limit)
    return [job for record in records if (job := _as_job(record, settings)) is not None]


def one(instance: dg.DagsterInstance, settings: Settings, run_id: str) -> Job | None:
    """A run as a job; None where there is none, or it neither indexes nor removes a source."""
    record = instance.get_run_record_by_id(run_id)
    if record is None:
        return None
    why = (outcomes.reason(instance, run_id),) if record.dagster_run.status is dg.DagsterRunStatus.FAILURE else ()
    return _as_job(record, settings, why)


def _as_job(record: dg.RunRecord, settings: Settings, reasons: tuple[str, ...] = ()) -> Job | None:
    run = record.dagster_run
    request = _request(run)
    if request is None:
        return None
    state = _STATES.get(run.status, State.RUNNING)
    is_at_work = state in {State.RUNNING, State.CANCELLING}
    source = run.tags.get(PARTITION_TAG) if is_at_work else None
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
    """What started a run."""
    asked_by = next((name for tag, name in _ASKED_BY.items() if tag in run.tags), None)
    if asked_by is not None:
        return asked_by
    if run.remote_job_origin is not None:  # by a code location: a run in a process of its own has none
        return "Dagster UI"
    return run.tags.get(LAUNCHER_TAG, "command line")


def cancel(instance: dg.DagsterInstance, settings: Settings, run_id: str) -> None:
    """Stop a run: one that waits at once, one that works by an interrupt of its process, here or by its launcher.

    Raises:
        UnknownJobError: there is no such run.
        EndedJobError: it has ended.
        JobError: it works where it cannot be reached.
    """
    run = instance.get_run_by_id(run_id)
    if run is None:
        raise UnknownJobError(f"there is no run {run_id!r}")
    if run.is_finished:
        raise EndedJobError(f"run {run_id} has ended already: {run.status.value.lower()}")
    process = live_process(run)
    if process is not None:
        if run.status is not dg.DagsterRunStatus.CANCELING:
            instance.report_run_canceling(run)  # an interrupt then makes it CANCELED, else FAILURE
        decline(instance, settings, run)
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGINT)
    elif run.remote_job_origin is not None and instance.run_coordinator.cancel_run(run_id):
        decline(instance, settings, run)
    else:
        raise JobError(f"run {run_id} works in a process that cannot be reached from here; end it where it works")


def decline(instance: dg.DagsterInstance, settings: Settings, run: dg.DagsterRun) -> None:
    """Note in a run that was cancelled what there was of its source then: sensors ask for it once that changes."""
    source = registry.sources(settings).get(run.tags.get(PARTITION_TAG, ""))
    if source is None:
        return
    try:
        state = state_now(source)
    except (DocindexError, OSError):  # it cannot be read: what it is later is something else
        return
    instance.add_run_tags(run.run_id, {DECLINED_TAG: state})
