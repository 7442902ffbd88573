"""The jobs: index a source, remove one, fold the memory of a domain, maintain the stores, clean up after old runs.

Schedules start the nightly jobs at the time in the settings. A sensor starts maintenance when publications have left
many table versions or unindexed rows behind.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, get_args
from zoneinfo import ZoneInfo

import dagster as dg

from docindex_dagster.core.access import writing
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.settings import ScheduleSettings, Settings, Weekday
from docindex_dagster.defs import catalog_asset, dead_runs, shared
from docindex_dagster.defs.memory import MEMORY
from docindex_dagster.defs.outcomes import FINISHED, last_runs
from docindex_dagster.defs.quality_asset import EVALUATION, QUALITY
from docindex_dagster.defs.resources import Project
from docindex_dagster.defs.sensors import STORES_INTERVAL_S
from docindex_dagster.defs.tags import MAINTENANCE_TAG, PARTITION_TAG, REASON_TAG, SOURCES_NAME, VERIFY_TAG
from docindex_dagster.runner.runs import drop_caches, removing
from docindex_dagster.sources import registry
from docindex_dagster.stores import maintenance

REMOVE_SOURCE = "remove_source"
_REST_S = 300  # between two runs of maintenance, which is always due while hundreds of sources are indexed first

index_source = dg.define_asset_job(
    "index_source",
    # By its group, since there is no asset to measure with where machines share the stores.
    selection=dg.AssetSelection.all() - dg.AssetSelection.assets(MEMORY) - dg.AssetSelection.groups(EVALUATION),
    description="Discover, chunk, embed and publish one source, then rebuild the catalogue. What did not change is "
    "reused. See docs/architecture.md.",
)

evaluate_retrieval = dg.define_asset_job(
    "evaluate_retrieval",
    selection=dg.AssetSelection.assets(QUALITY),
    description="Ask questions of the repositories' own history and of the user's, see whether searches find what "
    "answers them, and compare with the last nights. See docs/evaluation.md.",
)


def removal_config(key: str) -> dict[str, Any]:
    """The configuration of a run of `remove_source`."""
    return {"ops": {withdraw_source.name: {"config": {"source": key}}}}


class RemoveSource(dg.Config):
    """Which source to remove, such as `library/django`."""

    source: str


@dg.op(description="Publish a generation without the source, then delete its tables, its runs and its partition.")
def withdraw_source(context: dg.OpExecutionContext, config: RemoveSource, project: Project) -> None:
    """Take a source out of the index. Its files, and its table in `docindex.toml`, are not touched."""
    settings, key = project.read_settings(), config.source
    dead_runs.begin(context.instance, settings, context.run_id)
    with _withdrawn(context, settings, key) if settings.storage.url else removing(settings, key, context.log.info):
        forget_source(context.instance, settings, key)


def forget_source(instance: dg.DagsterInstance, settings: Settings, key: str) -> None:
    """Delete the runs and the partition of a source that has left the index."""
    for run in instance.get_runs(dg.RunsFilter(tags={PARTITION_TAG: key}, statuses=FINISHED)):
        instance.delete_run(run.run_id)
    instance.delete_dynamic_partition(SOURCES_NAME, key)
    catalog_asset.report(instance, shared.known(instance, settings))


@contextmanager
def _withdrawn(context: dg.OpExecutionContext, settings: Settings, key: str) -> Iterator[None]:
    """Withdraw a source where machines share the stores, and hold its locks; the publisher takes it out of these."""
    from docindex_dagster.objects import prepared, shared_stores

    owner, wait = f"removal of {key}", context.log.info
    with writing(settings) as layout, ExitStack() as held:
        held.enter_context(exclusive(layout.source_lock(key), owner, wait))
        locks = shared.locks_of(context.instance, settings)
        if locks is not None:
            held.enter_context(locks.exclusive(key, owner, wait))
        prepared.withdraw(shared_stores.bucket_of(settings), key, context.run_id)
        drop_caches(layout, key, wait)
        if key in registry.sources(settings):
            shared.note_taken_out(context.instance, settings, key)  # or the sensor would add it again
        yield


@dg.graph(name=REMOVE_SOURCE)
def _removal() -> None:
    """One step, so that it is done or not done."""
    withdraw_source()


def remove_source(project: Project) -> dg.JobDefinition:
    """The job that takes a source out.

    It gets its resource here: Dagster makes a sensor anew, and warns of it, whose job is without its resources.
    """
    return _removal.to_job(
        resource_defs={"project": project},
        description="Remove a source from the index and from Dagster. Its files and docindex.toml are not touched; a "
        "source that is still declared stays out until `docindex index` names it or its partition is added again. "
        "See docs/operations.md, “The life of a partition”.",
    )


@dg.op(description="Compact the LanceDB table and bring its indexes up to date, where publications have left much.")
def compact_and_index(context: dg.OpExecutionContext, project: Project) -> None:
    """Maintain the stores, if it is due; publications go on meanwhile."""
    settings = project.read_settings()
    dead_runs.begin(context.instance, settings, context.run_id)
    with writing(settings) as layout:
        done = maintenance.maintain(layout, on_wait=lambda owner: context.log.info(f"waits for {owner}"))
    context.add_output_metadata(asdict(done[0]) if done else {})
    context.log.info("the table is compacted and indexed" if done else "there was nothing to do")


@dg.job(
    tags={MAINTENANCE_TAG: "true"},
    description="Compact the LanceDB table and bring its indexes up to date, beside publications. The sensor stores "
    "asks for it. See docs/operations.md, “Disk space”.",
)
def maintain_stores() -> None:
    """One step, which may be cut off anywhere: what is published stays, and the next run begins anew."""
    compact_and_index()


@dg.op(description="Delete old runs and events that are not the newest of their kind, and the files of deleted runs.")
def delete_old_runs(context: dg.OpExecutionContext, project: Project) -> None:
    """Clean up as the settings say; the numbers stand at the output of the step."""
    settings = project.read_settings()
    dead_runs.begin(context.instance, settings, context.run_id)
    from docindex_dagster.defs.retention import (
        clean_up,  # with Dagster's databases, which take most of a second to load
    )

    days = settings.retention.days
    done = clean_up(context.instance, datetime.now(UTC) - timedelta(days=days))
    context.log.info(
        f"Runs older than {days} days: {done.runs} deleted, {done.spared} kept as the newest of an asset, a check, a "
        f"partition or a job. Also gone: {done.events} events and {done.files} files, {done.freed_bytes:,} bytes."
    )
    context.add_output_metadata({"days": days, **asdict(done)})


@dg.job(
    description="Delete runs and events older than `retention.days`, and their files. The newest of each asset, check, "
    "partition and job stay, so that nothing is un-materialised. See docs/operations.md."
)
def clean_up_dagster() -> None:
    """One step, which may be cut off anywhere: the next run goes on."""
    delete_old_runs()


def schedules(settings: ScheduleSettings, *, is_evaluated: bool = True) -> list[dg.ScheduleDefinition]:
    """All schedules; `is_evaluated`: whether `retrieval_quality` is one of the assets."""
    evaluation = [_nightly_evaluation(settings)] if is_evaluated else []
    return [_nightly_reindex(settings), _nightly_clean_up(settings), *evaluation]


def _each_night(settings: ScheduleSettings) -> dict[str, Any]:
    running = dg.DefaultScheduleStatus.RUNNING
    return {"cron_schedule": settings.nightly, "execution_timezone": settings.timezone, "default_status": running}


def _nightly_reindex(settings: ScheduleSettings) -> dg.ScheduleDefinition:
    @dg.schedule(
        name="nightly_reindex",
        job=index_source,
        **_each_night(settings),
        description="A run of every source. It makes up for what failed and for what no sensor saw; unchanged files "
        "are reused. Once a week every file is read and every row of the stores compared (schedule.verify); see "
        "docs/operations.md, “The night”.",
    )
    def schedule(context: dg.ScheduleEvaluationContext, project: Project) -> Iterator[dg.RunRequest]:
        present = project.read_settings()
        taken_out = shared.taken_out_of(context.instance, present)
        declared = [key for key in registry.sources(present) if key not in taken_out]
        at = context.scheduled_execution_time
        weekday = get_args(Weekday)[at.astimezone(ZoneInfo(present.schedule.timezone)).weekday()]
        verifies = weekday == present.schedule.verify
        tags = {VERIFY_TAG: "true", REASON_TAG: "weekly verification"} if verifies else {REASON_TAG: "nightly"}
        context.instance.add_dynamic_partitions(SOURCES_NAME, declared)
        for key in declared:
            yield dg.RunRequest(run_key=f"{at.isoformat()}:{key}", partition_key=key, tags=tags)

    return schedule


def _nightly_clean_up(settings: ScheduleSettings) -> dg.ScheduleDefinition:
    return dg.ScheduleDefinition(
        name="nightly_clean_up",
        job=clean_up_dagster,
        **_each_night(settings),
        description="Deletes old runs and events from Dagster's record (retention.days); see docs/operations.md, "
        "“Retention”.",
    )


def _nightly_evaluation(settings: ScheduleSettings) -> dg.ScheduleDefinition:
    @dg.schedule(
        name="nightly_evaluation",
        job=evaluate_retrieval,
        **_each_night(settings),
        description="Measures how good searches are, by a sample of questions (evaluation.questions); see "
        "docs/evaluation.md, “Each night”.",
    )
    def schedule(context: dg.ScheduleEvaluationContext, project: Project) -> dg.RunRequest | dg.SkipReason:
        if not project.read_settings().evaluation.questions:
            return dg.SkipReason("evaluation.questions is 0")
        return dg.RunRequest(run_key=context.scheduled_execution_time.isoformat(), tags={REASON_TAG: "nightly"})

    return schedule


@dg.sensor(
    name="stores",
    job_name=maintain_stores.name,  # the job itself would have to have its resources already
    minimum_interval_seconds=STORES_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Asks for maintenance of the stores when publications have left many versions of the LanceDB table, or "
    "many rows that no index has. See docs/operations.md, “Disk space”.",
)
def stores_due(context: dg.SensorEvaluationContext, project: Project) -> dg.SensorResult:
    """Look at what is published, and at how the last maintenance ended."""
    reason = maintenance.why_due(project.layout)
    if reason is None:
        return dg.SensorResult(skip_reason="no maintenance is due")
    last = last_runs(context.instance, {MAINTENANCE_TAG: "true"})
    is_resting = not last.failures and time.time() < last.ended + _REST_S
    if is_resting or not last.may_ask():
        return dg.SensorResult(skip_reason=f"{reason}; the last run is under way, or has ended a moment ago")
    return dg.SensorResult(run_requests=[dg.RunRequest(tags={REASON_TAG: reason})])
