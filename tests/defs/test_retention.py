"""A cleanup deletes old runs with their files and keeps the UI's state of assets, partitions and checks."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from threading import Barrier, Event
from typing import Any
from uuid import uuid4

import dagster as dg
import pytest
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluation
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.event_api import PartitionKeyFilter
from dagster._core.events import DagsterEvent
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.loader import LoadingContextForTest
from dagster._core.storage.partition_status_cache import get_and_update_asset_status_cache_value

from docindex_dagster.core.errors import StoreError
from docindex_dagster.defs.jobs import clean_up_dagster
from docindex_dagster.defs.resources import Project as ProjectResource
from docindex_dagster.defs.retention import clean_up

SOURCE, PAGES, SHELF, CATALOG = (dg.AssetKey(name) for name in ("source", "pages", "shelf", "catalog"))
PARTITIONS = dg.StaticPartitionsDefinition(["a", "b", "c"])
CHECK = dg.AssetCheckKey(PAGES, "complete")
VERSION = "dagster/data_version"


@dg.asset(deps=[SOURCE], partitions_def=PARTITIONS, check_specs=[dg.AssetCheckSpec("complete", asset=PAGES)])
def pages(context: dg.AssetExecutionContext):
    sys.stdout.write("reading the pages\n")
    if "fails" in context.run.tags:
        raise dg.Failure("the disk is gone")
    passed = "incomplete" not in context.run.tags
    return dg.MaterializeResult(check_results=[dg.AssetCheckResult(passed=passed, check_name="complete")])


@dg.asset(deps=[pages], partitions_def=PARTITIONS)
def shelf() -> None:
    """Made from the pages."""


@dg.asset(deps=[shelf])
def catalog() -> None:
    """Covers all partitions."""


@dg.job
def tidy() -> None:
    """Has no assets."""


DEFINITIONS = dg.Definitions(
    assets=[dg.AssetSpec(SOURCE, partitions_def=PARTITIONS), pages, shelf, catalog],
    jobs=[
        dg.define_asset_job("index", dg.AssetSelection.all()),
        dg.define_asset_job("read", dg.AssetSelection.assets(pages)),
        dg.define_asset_job("list", dg.AssetSelection.assets(catalog)),
    ],
)


def opened(home: Path, **classes: tuple[str, str, dict[str, str]]) -> dg.DagsterInstance:
    """Return a real SQLite instance with some Dagster classes replaced, each given as module, name and settings."""
    replaced = {
        what: {"module": module, "class": name, "config": config} for what, (module, name, config) in classes.items()
    }
    return dg.DagsterInstance.local_temp(str(home), overrides={**replaced, "telemetry": {"enabled": False}})


def sqlite(home: Path) -> dict[str, tuple[str, str, dict[str, str]]]:
    """Return an instance with Dagster's own classes, except for logs that no test reads."""
    history = home / "history"
    return {
        "run_storage": ("dagster._core.storage.runs", "SqliteRunStorage", {"base_dir": str(history)}),
        "event_log_storage": (
            "dagster._core.storage.event_log",
            "SqliteEventLogStorage",
            {"base_dir": str(history / "runs")},
        ),
        "schedule_storage": (
            "dagster._core.storage.schedules",
            "SqliteScheduleStorage",
            {"base_dir": str(home / "schedules")},
        ),
        "compute_logs": ("dagster._core.storage.noop_compute_log_manager", "NoOpComputeLogManager", {}),
    }


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "dagster"
    folder.mkdir()
    return folder


@pytest.fixture
def instance(home: Path) -> Iterator[dg.DagsterInstance]:
    with opened(home, **sqlite(home)) as instance:
        yield instance


def run(instance: dg.DagsterInstance, partition: str | None, *tags: str, job: str = "index") -> str:
    """Run a job for a partition and return the id of the run."""
    result = DEFINITIONS.resolve_job_def(job).execute_in_process(
        instance=instance, partition_key=partition, tags=dict.fromkeys(tags, "yes"), raise_on_error=False
    )
    return result.run_id


def died(instance: dg.DagsterInstance, partition: str) -> str:
    """Create a run without assets that failed before its first step and return its id."""
    created = instance.create_run_for_job(tidy, tags={"dagster/partition": partition})
    instance.report_run_failed(created)
    return created.run_id


def observe(instance: dg.DagsterInstance, partition: str, version: str) -> None:
    """Report the version of a source without a run, as a sensor does."""
    instance.report_runless_asset_event(dg.AssetObservation(SOURCE, partition=partition, tags={VERSION: version}))


def evaluate(
    instance: dg.DagsterInstance, check: dg.AssetCheckKey, partition: str | None = None, *, passed: bool = True
) -> None:
    """Report a check result without a run. Dagster accepts one result per partition, and any number without."""
    instance.report_runless_asset_event(
        AssetCheckEvaluation(check.asset_key, check.name, passed=passed, metadata={}, partition=partition)
    )


def now() -> datetime:
    return datetime.now(UTC)


def runs_of(instance: dg.DagsterInstance) -> set[str]:
    return set(instance.get_run_ids())


def events(instance: dg.DagsterInstance, asset: dg.AssetKey, partition: str) -> list[tuple[int, str]]:
    """Return ids and runs of a partition's materializations or observations, newest first."""
    wanted = dg.AssetRecordsFilter(asset, asset_partitions=[partition])
    records = instance.fetch_materializations(wanted, limit=100).records
    records = records or instance.fetch_observations(wanted, limit=100).records
    return [(record.storage_id, record.run_id) for record in records]


def stale_status(instance: dg.DagsterInstance, asset: dg.AssetKey, partition: str) -> StaleStatus:
    graph = DEFINITIONS.resolve_asset_graph()
    return CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance)).get_status(asset, partition)


def view(instance: dg.DagsterInstance) -> dict[str, Any]:
    """Return what the UI pages show about the newest events."""
    storage = instance.event_log_storage
    keys = [SOURCE, PAGES, SHELF, CATALOG]
    partitions = PARTITIONS.get_partition_keys()
    newest = {(key, partition): events(instance, key, partition)[:1] for key in keys for partition in partitions}
    return {
        "newest": newest,
        "logs": {row[0][1]: len(instance.all_logs(row[0][1])) for row in newest.values() if row and row[0][1]},
        "materialised": [instance.get_materialized_partitions(key) for key in keys],
        "latest": [instance.get_latest_materialization_event(key) for key in keys],
        "assets": [record.asset_entry.last_run_id for record in instance.get_asset_records(keys)],
        "unfinished": [
            storage.get_latest_asset_partition_materialization_attempts_without_materializations(key) for key in keys
        ],
        "status": [get_and_update_asset_status_cache_value(instance, key, PARTITIONS) for key in (PAGES, SHELF)],
        "stale": [stale_status(instance, key, partition) for key in (PAGES, SHELF) for partition in partitions],
        "versions": [
            storage.get_latest_tags_by_partition(key, kind, [VERSION])
            for key in keys
            for kind in (dg.DagsterEventType.ASSET_MATERIALIZATION, dg.DagsterEventType.ASSET_OBSERVATION)
        ],
        "checks": [
            storage.get_latest_asset_check_execution_by_key([CHECK], part)
            for part in (None, *(PartitionKeyFilter(key=key) for key in (None, *partitions)))
        ],
        "check": storage.get_asset_check_summary_records([CHECK]),
        "runs": [
            instance.get_runs(dg.RunsFilter(tags={"dagster/partition": partition}), limit=1) for partition in partitions
        ],
    }


def test_what_the_ui_says_of_assets_partitions_and_checks_stays(instance):
    for partition in ("a", "b"):
        observe(instance, partition, "1")
        run(instance, partition)
        run(instance, partition)
    run(instance, "a", "incomplete", job="read")
    run(instance, "b", "fails")
    observe(instance, "b", "2")
    run(instance, "c", "fails")
    run(instance, "c", "fails", job="read")
    instance.report_runless_asset_event(dg.AssetMaterialization(SHELF, partition="c"))
    before, runs = view(instance), runs_of(instance)

    done = clean_up(instance, now())

    assert view(instance) == before
    assert done.runs == len(runs - runs_of(instance)) == 2
    assert done.spared == 6


def test_each_partition_keeps_its_newest_materialisation_and_the_newest_run_of_each_job(instance):
    run(instance, "a")
    died(instance, "a")
    failed = died(instance, "a")
    materialised = run(instance, "a")
    other = died(instance, "b")
    last = run(instance, "b")

    done = clean_up(instance, now())

    assert runs_of(instance) == {materialised, failed, other, last}
    assert (done.runs, done.spared) == (2, 4)
    assert [run_id for _, run_id in events(instance, PAGES, "a")] == [materialised]
    # A run that is kept keeps everything it reported.
    history = instance.event_log_storage.get_asset_check_execution_history(CHECK, limit=10)
    assert [record.run_id for record in history] == [last, materialised]


def test_what_is_younger_stays(instance):
    runs = {run(instance, "a"), run(instance, "a")}
    for version in ("1", "2"):
        observe(instance, "a", version)
        evaluate(instance, CHECK)

    done = clean_up(instance, now() - timedelta(days=1))

    assert runs_of(instance) == runs
    assert len(events(instance, SOURCE, "a")) == 2
    assert len(instance.event_log_storage.get_asset_check_execution_history(CHECK, limit=10)) == 4
    assert (done.runs, done.spared, done.events, done.files) == (0, 0, 0, 0)


def test_the_time_may_be_given_in_any_time_zone(instance):
    run(instance, "a")
    newest = run(instance, "a")
    east = timezone(timedelta(hours=9))

    assert clean_up(instance, now().astimezone(east) - timedelta(hours=1)).runs == 0
    assert clean_up(instance, now().astimezone(timezone(timedelta(hours=-9)))).runs == 1
    assert runs_of(instance) == {newest}


def test_runs_that_are_not_finished_are_not_touched(instance, home):
    job = DEFINITIONS.resolve_job_def("index")
    finished = {dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED}
    unfinished = set()
    for status in set(dg.DagsterRunStatus) - finished - {dg.DagsterRunStatus.QUEUED}:  # only a daemon can queue a run
        waiting = instance.create_run_for_job(job, status=status, tags={"dagster/partition": "a"})
        instance.report_engine_event("waiting", waiting)
        unfinished.add(waiting.run_id)
    run(instance, "a")
    newest = run(instance, "a")

    done = clean_up(instance, now())

    assert done.runs == 1
    assert runs_of(instance) == {newest, *unfinished}
    assert {file.stem for file in (home / "history" / "runs").glob("*-*.db")} == {newest, *unfinished}
    assert all(instance.all_logs(run_id) for run_id in unfinished)


def test_files_and_logs_of_runs_that_are_gone_are_removed_and_no_others(home):
    with opened(home) as instance:
        gone, kept = run(instance, "a"), run(instance, "a")
        deleted = run(instance, "b")
        instance.delete_run(deleted)
        observe(instance, "a", "1")
        databases, storage = home / "history" / "runs", home / "storage"
        (databases / f"{deleted}.db-wal").write_bytes(b"left")
        (storage / "shelf").mkdir(exist_ok=True)
        assert all((databases / f"{name}.db").exists() for name in (gone, kept, deleted))
        assert all((storage / name).is_dir() for name in (gone, kept, deleted))

        done = clean_up(instance, now())

        assert {file.stem for file in databases.glob("*.db*")} == {kept, "index", ".db"}
        assert {folder.name for folder in storage.iterdir() if len(folder.name) == len(kept)} == {kept}
        assert (storage / "shelf").is_dir()
        assert done.files >= 5
        assert done.freed_bytes > 100_000
        assert instance.all_logs(kept)


def test_of_events_without_a_run_the_newest_of_each_kind_stay(instance):
    evaluate(instance, CHECK, "a")
    evaluate(instance, CHECK, "b")
    for number in range(3):
        for partition in ("a", "b"):
            observe(instance, partition, str(number))
            instance.report_runless_asset_event(dg.AssetMaterialization(SHELF, partition=partition))
        evaluate(instance, CHECK, passed=number == 1)
    limit = now()
    observe(instance, "a", "new")
    before = view(instance)

    done = clean_up(instance, limit)

    assert view(instance) == before
    storage = instance.event_log_storage
    assert [len(events(instance, SOURCE, partition)) for partition in ("a", "b")] == [1, 1]
    assert [len(events(instance, SHELF, partition)) for partition in ("a", "b")] == [1, 1]
    assert len(storage.get_asset_check_execution_history(CHECK, limit=10)) == 3
    assert len(storage.get_event_tags_for_asset(SOURCE)) == 2
    assert done.events == 11
    # A second database holds them too.
    assert len(storage.get_logs_for_run("")) == 7


def test_a_check_that_was_planned_and_not_evaluated_does_not_hide_how_it_went_last(instance):
    run(instance, "a", job="read")
    incomplete = run(instance, "a", "incomplete", job="read")
    # Repeat every other event for which this run is the newest.
    instance.report_runless_asset_event(dg.AssetMaterialization(PAGES, partition="a"))
    evaluate(instance, dg.AssetCheckKey(SHELF, "dusted"))
    run(instance, None, job="list")
    planned = run(instance, "a", "fails", job="read")

    clean_up(instance, now())

    history = instance.event_log_storage.get_asset_check_execution_history(CHECK, limit=10)
    assert [record.run_id for record in history] == [planned, incomplete]
    assert {planned, incomplete} <= runs_of(instance)


def test_the_index_of_events_gives_its_space_back(instance, home):
    for _ in range(50):
        long = {"report": "x" * 20_000}
        instance.report_runless_asset_event(dg.AssetObservation(SOURCE, partition="a", metadata=long))
    instance.event_log_storage.dispose()  # this writes the database's log into the database
    index = home / "history" / "runs" / "index.db"
    before = index.stat().st_size
    assert before > 1_000_000

    done = clean_up(instance, now())

    assert done.freed_bytes == before - index.stat().st_size > 900_000


def test_what_is_up_to_date_is_not_stale_because_its_input_was_observed_again(instance):
    observe(instance, "a", "1")
    run(instance, "a")
    observe(instance, "a", "1")
    observe(instance, "a", "1")
    assert stale_status(instance, PAGES, "a") is StaleStatus.FRESH

    clean_up(instance, now())

    assert stale_status(instance, PAGES, "a") is StaleStatus.FRESH
    assert len(events(instance, SOURCE, "a")) == 2


def test_no_later_event_gets_the_id_of_a_deleted_one(instance):
    # The run that ends last started first, so nothing else about it is the newest.
    first = instance.create_run_for_job(tidy, tags={"dagster/partition": "a"})
    died(instance, "a")
    instance.report_run_failed(first)
    last = instance.event_log_storage.get_maximum_record_id()

    clean_up(instance, now())
    observe(instance, "a", "1")

    assert events(instance, SOURCE, "a")[0][0] > last


def test_the_runs_of_a_backfill_stay_until_it_is_done(instance):
    def cleaned_up(status: BulkActionStatus) -> int:
        instance.update_backfill(backfill.with_status(status))
        return clean_up(instance, now()).runs

    backfill = PartitionBackfill(
        "nightly",
        BulkActionStatus.REQUESTED,
        from_failure=False,
        tags={},
        backfill_timestamp=now().timestamp(),
        asset_selection=[PAGES],
    )
    instance.add_backfill(backfill)
    of_backfill = run(instance, "a")
    instance.add_run_tags(of_backfill, {"dagster/backfill": "nightly"})
    run(instance, "a")

    assert cleaned_up(BulkActionStatus.CANCELING) == 0
    assert cleaned_up(BulkActionStatus.COMPLETED_SUCCESS) == 1


def test_a_clean_up_goes_on_where_one_was_cut_off(instance, home):
    gone, kept = run(instance, "a"), run(instance, "a")
    instance.run_storage.delete_run(gone)  # the first step of a deletion

    done = clean_up(instance, now())

    assert done.runs == 0
    assert done.events > 0
    assert [run_id for _, run_id in events(instance, PAGES, "a")] == [kept]
    history = instance.event_log_storage.get_asset_check_execution_history(CHECK, limit=10)
    assert [record.run_id for record in history] == [kept]
    assert not (home / "history" / "runs" / f"{gone}.db").exists()


def test_partitions_stay_materialised_where_all_runs_were_lost(instance):
    for _ in range(2):
        run(instance, "a")
    for lost in runs_of(instance):
        instance.run_storage.delete_run(lost)

    clean_up(instance, now())

    assert instance.get_materialized_partitions(SHELF) == {"a"}
    assert len(events(instance, SHELF, "a")) == 1


def test_others_read_and_write_meanwhile(instance, home):
    for number in range(20):
        observe(instance, "a", str(number))
        died(instance, "b")
    limit, is_over, started = now(), Event(), Barrier(4, timeout=60)

    def keep(action: Callable[[dg.DagsterInstance], Any]) -> int:
        times = 0
        with opened(home, **sqlite(home)) as other:
            started.wait()
            while not is_over.is_set() or not times:
                action(other)
                times += 1
        return times

    with ThreadPoolExecutor(3) as threads:
        observed = threads.submit(keep, lambda other: observe(other, "c", "1"))
        seen = threads.submit(keep, view)
        indexed = threads.submit(keep, lambda other: run(other, "c"))
        started.wait()
        try:
            done = clean_up(instance, limit)
        finally:
            is_over.set()

    assert (done.runs, done.spared) == (19, 1)
    assert seen.result() > 0
    assert len(events(instance, SOURCE, "a")) == 1
    assert len(events(instance, SOURCE, "c")) == min(observed.result(), 100)
    assert len(events(instance, SHELF, "c")) == indexed.result()


def test_pools_get_back_what_a_deleted_run_held(instance):
    storage = instance.event_log_storage
    storage.set_concurrency_slots("embedding", 1)
    held = run(instance, "a", "fails")
    run(instance, "a", "fails")
    assert storage.claim_concurrency_slot("embedding", held, "embeddings").is_claimed

    clean_up(instance, now())

    assert held not in runs_of(instance)
    assert storage.claim_concurrency_slot("embedding", str(uuid4()), "embeddings").is_claimed


def test_another_sql_storage_is_cleaned_by_its_own_means():
    with dg.DagsterInstance.ephemeral() as instance:
        run(instance, "a")
        materialised, failed = run(instance, "a"), run(instance, "a", "fails")
        before = view(instance)

        done = clean_up(instance, now())

        assert view(instance) == before
        assert runs_of(instance) == {materialised, failed}
        assert (done.runs, done.spared) == (1, 2)


def test_a_storage_that_is_not_sql_is_refused(home):
    config = {
        "module_name": "dagster._core.storage.sqlite_storage",
        "class_name": "DagsterSqliteStorage",
        "config_yaml": f"base_dir: {home}",
    }
    wrapped = {"event_log_storage": ("dagster._core.storage.legacy_storage", "LegacyEventLogStorage", config)}
    with (
        opened(home, **(sqlite(home) | wrapped)) as instance,
        pytest.raises(StoreError, match=r"cannot clean up .*LegacyEventLogStorage: .* dagster\.yaml"),
    ):
        clean_up(instance, now())


def test_the_job_deletes_what_is_older_than_the_settings_say_and_tells_how_much(instance, tmp_path):
    (tmp_path / "docindex.toml").write_text("[retention]\ndays = 7\n")
    old, young, newest = (run(instance, "a") for _ in range(3))
    ended = DagsterEvent(dg.DagsterEventType.PIPELINE_SUCCESS.value, "index")
    instance.run_storage.handle_run_event(old, ended, now() - timedelta(days=8))
    instance.run_storage.handle_run_event(young, ended, now() - timedelta(days=6))

    result = clean_up_dagster.execute_in_process(
        instance=instance, resources={"project": ProjectResource(root=str(tmp_path))}
    )

    assert runs_of(instance) == {young, newest, result.run_id}
    (output,) = (event for event in result.all_node_events if event.is_successful_output)
    numbers = {name: value.value for name, value in output.step_output_data.metadata.items()}
    assert numbers.keys() == {"days", "runs", "spared", "events", "files", "freed_bytes"}
    assert (numbers["days"], numbers["runs"], numbers["spared"]) == (7, 1, 0)
    messages = [entry.user_message for entry in instance.all_logs(result.run_id)]
    assert any("Deleted 1 runs older than 7 days; kept 0" in message for message in messages)
