"""The recorder, which turns runs in the journal into runs of `index_source`, exactly once each.

It executes the job with assets that return what the journal says about each stage, without indexing anything. Each
run has its id in advance, so after a crash the recorder finds what it began. It deletes an unfinished run and records
it again, and only marks a finished one as settled in the journal.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import dagster as dg
from sqlalchemy import delete

from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive_if_free
from docindex_dagster.core.settings import Settings
from docindex_dagster.defs.dead_runs import report_dead_runs
from docindex_dagster.defs.recorded_runs import decline
from docindex_dagster.defs.resources import Project
from docindex_dagster.defs.tags import ENDED_AT_TAG, LAUNCHER_TAG, LOST_TAG, PARTITION_TAG, SOURCES_NAME, tags_of
from docindex_dagster.runner import journal
from docindex_dagster.runner.entries import Entry, StageEntry, State
from docindex_dagster.runner.run import NOT_RUN

_INDEX_SOURCE = "index_source"
_INTERVAL_S = 15
_BUDGET_S = 40  # a tick may take 60 s
_QUIET_CONFIG = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class JournaledRun:
    """The resource `run` of a recorded run, which returns what the journal says about each stage."""

    def __init__(self) -> None:
        self.failures: tuple[str, ...] = ()
        self.stages: Mapping[str, StageEntry] = {}

    def entry(self, stage: str, _context: dg.AssetExecutionContext) -> StageEntry:
        """Return the result of a stage.

        Raises:
            DocindexError: The stage failed, or the run ended before it.
        """
        if stage not in self.stages:
            raise DocindexError("; ".join(self.failures) or NOT_RUN)
        if failure := self.stages[stage].failure:
            raise DocindexError(failure)
        return self.stages[stage]


Build = Callable[[Mapping[str, Any]], dg.Definitions]
"""Function that builds the definitions of a project with other resources, by name."""


def record(instance: dg.DagsterInstance, settings: Settings, build: Build, budget_s: float | None = None) -> int:
    """Record the finished runs in the journal, oldest first, unless another process is doing so.

    Args:
        instance: The instance in which to record them.
        settings: The settings of the project.
        build: Builds the definitions of the project.
        budget_s: Start no further run after this many seconds.

    Returns:
        The number of recorded runs.

    Raises:
        LinkError: The home contains a symbolic link.
    """
    layout, started, count = Layout(settings.home), time.monotonic(), 0
    if not layout.entries(layout.journal):
        return 0
    with exclusive_if_free(layout.recorder_lock, "recorder") as is_free:
        if is_free:
            run, definitions = JournaledRun(), None
            for path, entry in journal.runs(layout):
                if budget_s is not None and time.monotonic() - started > budget_s:
                    break
                if entry.end is None:
                    continue
                if entry.has_stages:
                    definitions = definitions or build({"run": run})
                    run.failures, run.stages = entry.end.failures, journal.stages(path)
                    _record(instance, settings, definitions, entry)
                    count += 1
                journal.settle(path, entry)
    return count


def _record(instance: dg.DagsterInstance, settings: Settings, definitions: dg.Definitions, entry: Entry) -> None:
    known = instance.get_run_by_id(entry.run.run_id)
    if known is not None and known.is_finished:
        return
    _forget(instance, entry.run.run_id)
    report_dead_runs(instance, settings, {PARTITION_TAG: entry.run.source})  # this run made up for them
    instance.add_dynamic_partitions(SOURCES_NAME, [entry.run.source])
    job = definitions.resolve_job_def(_INDEX_SOURCE)
    key, run_id, tags = entry.run.source, entry.run.run_id, dict(_tags(entry))
    if entry.state is State.CANCELED:
        canceled = instance.create_run_for_job(job, run_id=run_id, tags={**tags, PARTITION_TAG: key})
        decline(instance, settings, canceled)
        instance.report_run_canceled(canceled)
        return
    job.execute_in_process(
        instance=instance, raise_on_error=False, run_config=_QUIET_CONFIG, partition_key=key, run_id=run_id, tags=tags
    )


def _forget(instance: dg.DagsterInstance, run_id: str) -> None:
    """Delete what a killed recorder left of a run, even if it was killed while deleting it."""
    from docindex_dagster.defs.internals import CHECKS, SqlEventLogStorage  # deferred: loads Dagster's migrations

    instance.delete_run(run_id)  # deletes the events even if the run itself is already deleted
    storage = instance.event_log_storage
    if isinstance(storage, SqlEventLogStorage):
        with storage.index_connection() as connection:  # Dagster keeps these rows, and rejects duplicates
            connection.execute(delete(CHECKS).where(CHECKS.c.run_id == run_id))


def _tags(entry: Entry) -> Iterator[tuple[str, str]]:
    run, end = entry.run, entry.end
    yield LAUNCHER_TAG, run.launched_by
    if end is not None:
        yield ENDED_AT_TAG, datetime.fromtimestamp(end.ended_at, UTC).isoformat(timespec="milliseconds")
    yield from tags_of(run.mode, run.only).items()
    if entry.state is State.LOST:
        yield LOST_TAG, "true"


def journal_recorded(build: Build) -> dg.SensorDefinition:
    """Return the sensor of a project whose definitions `build` builds."""

    @dg.sensor(
        minimum_interval_seconds=_INTERVAL_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Records finished runs of `docindex index`, `docindex watch` and the jobs of `docindex serve`, "
        "with their materializations and checks. It requests no runs. See docs/explanation/freshness.md.",
    )
    def journal_recorded(context: dg.SensorEvaluationContext, project: Project) -> dg.SkipReason:
        count = record(context.instance, project.read_settings(), build, _BUDGET_S)
        return dg.SkipReason(f"recorded {count} run{'' if count == 1 else 's'}")

    return journal_recorded
