"""Jobs that index or remove a source, evaluate retrieval, maintain the stores and clean up old runs.

Schedules start the nightly jobs at the configured time. A sensor starts maintenance when publications have left many
table versions or unindexed rows behind.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, get_args
from zoneinfo import ZoneInfo

import dagster as dg

from docindex_dagster.core.access import writable_home
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
_REST_S = 300  # between two maintenance runs, which would be due constantly during the first index of many sources

index_source = dg.define_asset_job(
    "index_source",
    # Selected by group, because machines with shared stores have no quality asset.
    selection=dg.AssetSelection.all() - dg.AssetSelection.assets(MEMORY) - dg.AssetSelection.groups(EVALUATION),
    description="Discover, chunk, embed and publish one source, then rebuild the catalog. Unchanged data is reused. "
    "See docs/explanation/architecture.md.",
)

evaluate_retrieval = dg.define_asset_job(
    "evaluate_retrieval",
    selection=dg.AssetSelection.assets(QUALITY),
    description="Search for questions from the repositories' history and from users, check whether the answers are "
    "found, and compare with recent nights. See docs/how-to/evaluate-search.md.",
)


def removal_config(key: str) -> dict[str, Any]:
    """Return the run config for `remove_source`."""
    return {"ops": {withdraw_source.name: {"config": {"source": key}}}}


class RemoveSource(dg.Config):
    """The source to remove, such as `library/django`."""

    source: str


@dg.op(description="Publish a generation without the source, then delete its tables, runs and partition.")
def withdraw_source(context: dg.OpExecutionContext, config: RemoveSource, project: Project) -> None:
    """Remove a source from the index, but not its files or its table in `docindex.toml`."""
    settings, key = project.read_settings(), config.source
    dead_runs.record_process(context.instance, settings, context.run_id)
    with _withdrawn(context, settings, key) if settings.storage.url else removing(settings, key, context.log.info):
        forget_source(context.instance, settings, key)


def forget_source(instance: dg.DagsterInstance, settings: Settings, key: str) -> None:
    """Delete the runs and the partition of a source that was removed from the index."""
    for run in instance.get_runs(dg.RunsFilter(tags={PARTITION_TAG: key}, statuses=FINISHED)):
        instance.delete_run(run.run_id)
    instance.delete_dynamic_partition(SOURCES_NAME, key)
    catalog_asset.report(instance, shared.with_shared_state(instance, settings))


@contextmanager
def _withdrawn(context: dg.OpExecutionContext, settings: Settings, key: str) -> Iterator[None]:
    """Withdraw a source from shared stores while holding its locks; the publisher then removes it."""
    from docindex_dagster.objects import prepared, shared_stores

    owner, wait = f"removal of {key}", context.log.info
    with writable_home(settings) as layout, ExitStack() as held:
        held.enter_context(exclusive(layout.source_lock(key), owner, wait))
        locks = shared.locks_of(context.instance, settings)
        if locks is not None:
            held.enter_context(locks.exclusive(key, owner, wait))
        prepared.withdraw(shared_stores.configured_bucket(settings), key, context.run_id)
        drop_caches(layout, key, wait)
        if key in registry.sources(settings):
            shared.note_removed(context.instance, settings, key)  # otherwise the sensor would add it again
        yield


@dg.graph(name=REMOVE_SOURCE)
def _removal() -> None:
    """Remove the source in a single step, so that the job either completes or changes nothing."""
    withdraw_source()


def remove_source(project: Project) -> dg.JobDefinition:
    """Return the job that removes a source.

    It binds its resource, because Dagster rebuilds a sensor, with a warning, if the job of the sensor has unbound
    resources.
    """
    return _removal.to_job(
        resource_defs={"project": project},
        description="Remove a source from the index and from Dagster. Its files and docindex.toml are not touched. A "
        "source that is still declared stays removed until you run `docindex index` for it or add its partition again. "
        "See docs/explanation/freshness.md.",
    )


@dg.op(description="Compact the LanceDB table and update its indexes, if publications have left enough to do.")
def compact_and_index(context: dg.OpExecutionContext, project: Project) -> None:
    """Maintain the stores, if due; publications continue meanwhile."""
    settings = project.read_settings()
    dead_runs.record_process(context.instance, settings, context.run_id)
    with writable_home(settings) as layout:
        done = maintenance.maintain(layout, on_wait=lambda owner: context.log.info(f"waiting for {owner}"))
    context.add_output_metadata(asdict(done[0]) if done else {})
    context.log.info("compacted and indexed the table" if done else "nothing to do")


@dg.job(
    tags={MAINTENANCE_TAG: "true"},
    description="Compact the LanceDB table and update its indexes, concurrently with publications. The sensor stores "
    "requests it. See docs/how-to/free-disk-space.md.",
)
def maintain_stores() -> None:
    """Run maintenance in a single step, which may be interrupted at any point: the next run starts over."""
    compact_and_index()


@dg.op(description="Delete old runs and events, except the newest of each kind, and the files of deleted runs.")
def delete_old_runs(context: dg.OpExecutionContext, project: Project) -> None:
    """Clean up according to the settings; the output of the step has the counts."""
    settings = project.read_settings()
    dead_runs.record_process(context.instance, settings, context.run_id)
    from docindex_dagster.defs.retention import (
        clean_up,  # deferred, because Dagster's database modules take most of a second to load
    )

    days = settings.retention.days
    done = clean_up(context.instance, datetime.now(UTC) - timedelta(days=days))
    context.log.info(
        f"Deleted {done.runs} runs older than {days} days; kept {done.spared} as the newest of an asset, a check, a "
        f"partition or a job. Also deleted {done.events} events and {done.files} files, {done.freed_bytes:,} bytes."
    )
    context.add_output_metadata({"days": days, **asdict(done)})


@dg.job(
    description="Delete runs and events older than `retention.days`, and their files. The newest of each asset, check, "
    "partition and job are kept, so that assets stay materialized. See docs/how-to/run-for-a-team.md."
)
def clean_up_dagster() -> None:
    """Clean up in a single step, which may be interrupted at any point: the next run continues."""
    delete_old_runs()


def schedules(settings: ScheduleSettings, *, is_evaluated: bool = True) -> list[dg.ScheduleDefinition]:
    """Return all schedules; `is_evaluated` tells whether `retrieval_quality` is one of the assets."""
    evaluation = [_nightly_evaluation(settings)] if is_evaluated else []
    return [_nightly_reindex(settings), _nightly_clean_up(settings), *evaluation]


def _nightly_defaults(settings: ScheduleSettings) -> dict[str, Any]:
    running = dg.DefaultScheduleStatus.RUNNING
    return {"cron_schedule": settings.nightly, "execution_timezone": settings.timezone, "default_status": running}


def _nightly_reindex(settings: ScheduleSettings) -> dg.ScheduleDefinition:
    @dg.schedule(
        name="nightly_reindex",
        job=index_source,
        **_nightly_defaults(settings),
        description="Runs every source, to make up for failures and for changes that no sensor saw. Unchanged files "
        "are reused. Once a week, every file is read and every row of the stores compared (schedule.verify). See "
        "docs/how-to/run-for-a-team.md.",
    )
    def schedule(context: dg.ScheduleEvaluationContext, project: Project) -> Iterator[dg.RunRequest]:
        current_settings = project.read_settings()
        removed = shared.removed_keys(context.instance, current_settings)
        declared = [key for key in registry.sources(current_settings) if key not in removed]
        at = context.scheduled_execution_time
        weekday = get_args(Weekday)[at.astimezone(ZoneInfo(current_settings.schedule.timezone)).weekday()]
        verifies = weekday == current_settings.schedule.verify
        tags = {VERIFY_TAG: "true", REASON_TAG: "weekly verification"} if verifies else {REASON_TAG: "nightly"}
        context.instance.add_dynamic_partitions(SOURCES_NAME, declared)
        for key in declared:
            yield dg.RunRequest(run_key=f"{at.isoformat()}:{key}", partition_key=key, tags=tags)

    return schedule


def _nightly_clean_up(settings: ScheduleSettings) -> dg.ScheduleDefinition:
    return dg.ScheduleDefinition(
        name="nightly_clean_up",
        job=clean_up_dagster,
        **_nightly_defaults(settings),
        description="Deletes old runs and events from Dagster's records (retention.days). "
        "See docs/how-to/free-disk-space.md.",
    )


def _nightly_evaluation(settings: ScheduleSettings) -> dg.ScheduleDefinition:
    @dg.schedule(
        name="nightly_evaluation",
        job=evaluate_retrieval,
        **_nightly_defaults(settings),
        description="Measures search quality on a sample of questions (evaluation.questions). See "
        "docs/how-to/evaluate-search.md.",
    )
    def schedule(context: dg.ScheduleEvaluationContext, project: Project) -> dg.RunRequest | dg.SkipReason:
        if not project.read_settings().evaluation.questions:
            return dg.SkipReason("evaluation.questions is 0")
        return dg.RunRequest(run_key=context.scheduled_execution_time.isoformat(), tags={REASON_TAG: "nightly"})

    return schedule


@dg.sensor(
    name="stores",
    job_name=maintain_stores.name,  # passing the job itself would require its resources here
    minimum_interval_seconds=STORES_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Requests maintenance of the stores when publications have left many versions of the LanceDB table, or "
    "many unindexed rows. See docs/how-to/free-disk-space.md.",
)
def stores_due(context: dg.SensorEvaluationContext, project: Project) -> dg.SensorResult:
    """Check what is published, and how the last maintenance ended."""
    reason = maintenance.why_due(project.layout)
    if reason is None:
        return dg.SensorResult(skip_reason="no maintenance is due")
    last = last_runs(context.instance, {MAINTENANCE_TAG: "true"})
    is_resting = not last.failures and time.time() < last.ended + _REST_S
    if is_resting or not last.may_request():
        return dg.SensorResult(skip_reason=f"{reason}; the last run is still in progress, or has just ended")
    return dg.SensorResult(run_requests=[dg.RunRequest(tags={REASON_TAG: reason})])
