"""Expectations about each private Dagster name: after an upgrade, these tests fail first and show what to fix."""

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import dagster as dg
import pytest

from docindex_dagster.defs import internals, retention

PACKAGE = Path(internals.__file__).parents[1]
PARTITIONS = dg.DynamicPartitionsDefinition(name="shelves")


@dg.asset(partitions_def=PARTITIONS)
def words():
    rows = dg.MetadataValue.table(records=[dg.TableRecord({"word": "shelf-mark"})])
    return dg.MaterializeResult(metadata={"words": rows})


@dg.asset(deps=[words], partitions_def=PARTITIONS, check_specs=[dg.AssetCheckSpec("sorted", asset="letters")])
def letters():
    return dg.MaterializeResult(check_results=[dg.AssetCheckResult(passed=True)])


@contextmanager
def recorded(folder: Path) -> Iterator[dg.DagsterInstance]:
    """Dagster's own storage, with a run of two assets and a check, and an event without a run."""
    with dg.DagsterInstance.local_temp(str(folder), overrides={"telemetry": {"enabled": False}}) as opened:
        opened.add_dynamic_partitions("shelves", ["a"])
        dg.materialize([words, letters], instance=opened, partition_key="a", tags={internals.BACKFILL_ID_TAG: "b"})
        opened.report_runless_asset_event(dg.AssetMaterialization("atlas"))
        yield opened


@pytest.fixture(scope="module")
def instance(tmp_path_factory) -> Iterator[dg.DagsterInstance]:
    """An instance shared by all read-only tests."""
    with recorded(tmp_path_factory.mktemp("dagster")) as opened:
        yield opened


def test_no_other_module_takes_private_names():
    taken = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [item.name for item in node.names])
        if re.match(r"dagster(_shared|_graphql|_webserver)?\._", name)
    }
    assert taken == {"defs/internals.py"}


def test_each_name_has_its_reason():
    table = [line for line in (internals.__doc__ or "").splitlines() if line.startswith("| `")]
    named = {name for line in table for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    assert {name for name in internals.__all__ if name != "NO_COMPUTE_LOGS"} == named


def test_names_are_still_private():
    """A name that Dagster has made public no longer belongs here."""
    assert not [name for name in internals.__all__ if hasattr(dg, name)]


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("EVENTS", {"id", "run_id", "event", "dagster_event_type", "timestamp", "asset_key", "partition"}),
        ("EVENT_TAGS", {"event_id"}),
        (
            "CHECKS",
            {"id", "asset_key", "check_name", "partition", "run_id", "execution_status"}
            | {"evaluation_event_storage_id", "evaluation_event_timestamp", "evaluation_event"},
        ),
        ("RUNS", {"id", "run_id", "status", "pipeline_name", "partition"}),
        ("RUN_TAGS", {"run_id"}),
    ],
)
def test_tables_have_the_columns_that_retention_reads(table, columns):
    assert columns <= set(getattr(internals, table).c.keys())


def test_no_table_refers_to_a_run_or_an_event_that_retention_does_not_know(instance):
    """Otherwise a new table with rows per run or event would grow without bound."""
    known = {
        "event_logs",
        "asset_event_tags",
        "asset_check_executions",
        "asset_keys",  # one row per asset
        "concurrency_slots",  # freed per run, together with its pending steps
        "pending_steps",
    }
    with instance.event_log_storage.index_connection() as connection:
        names = internals.EVENTS.metadata.tables
        by_run = {
            name
            for name, table in names.items()
            if {"run_id", "event_id", "last_execution_target_run_id"} & set(table.c.keys())
        }
        assert connection.execute(internals.EVENTS.select()).first()
    assert by_run <= known


def test_statuses_of_checks_and_runs_are_the_words_in_the_tables(instance):
    with instance.event_log_storage.index_connection() as connection:
        checks = {row.execution_status for row in connection.execute(internals.CHECKS.select())}
        events = {row.dagster_event_type for row in connection.execute(internals.EVENTS.select())}
    with instance.run_storage.connect() as connection:
        runs = {row.status for row in connection.execute(internals.RUNS.select())}
    assert checks == {"SUCCEEDED"}
    assert dg.DagsterEventType.ASSET_MATERIALIZATION.value in events
    assert runs == {dg.DagsterRunStatus.SUCCESS.value}


def test_times_are_utc_without_a_zone(instance):
    now = datetime.now(UTC).replace(tzinfo=None)
    with instance.event_log_storage.index_connection() as connection:
        times = [row.timestamp for row in connection.execute(internals.EVENTS.select())]
    assert times
    assert all(abs((now - time).total_seconds()) < 3600 for time in times)


def test_events_and_runs_are_in_sqlite_files_that_retention_finds(instance):
    events, runs = instance.event_log_storage, instance.run_storage
    assert isinstance(events, internals.SqliteEventLogStorage)
    assert issubclass(internals.SqliteEventLogStorage, internals.SqlEventLogStorage)
    assert isinstance(runs, internals.SqlRunStorage)
    files = {path.stem for path in Path(events.path_for_shard(internals.INDEX_SHARD_NAME)).parent.glob("*.db")}
    assert {internals.INDEX_SHARD_NAME, *instance.get_run_ids()} <= files


def test_an_event_without_a_run_has_the_run_of_none(instance):
    of_asset = instance.fetch_materializations(dg.AssetKey("atlas"), limit=1).records[0]
    assert of_asset.run_id == internals.RUNLESS_RUN_ID
    with instance.event_log_storage.run_connection(internals.RUNLESS_RUN_ID) as connection:
        assert connection.execute(internals.EVENTS.select()).first()


def test_a_materialisation_names_the_events_that_it_was_made_from(instance):
    made, source = (
        instance.fetch_materializations(dg.AssetKey(name), limit=1).records[0] for name in ("letters", "words")
    )
    provenance = internals.extract_data_provenance_from_entry(made.event_log_entry)
    assert provenance is not None
    assert provenance.input_storage_ids == {dg.AssetKey("words"): source.storage_id}
    assert source.storage_id in retention.newest(instance.event_log_storage).events


def test_backfills_are_asked_for_by_status(instance):
    unfinished = [
        status for status in internals.BulkActionStatus if status not in internals.BULK_ACTION_TERMINAL_STATUSES
    ]
    assert internals.BulkActionStatus.REQUESTED in unfinished
    assert internals.BulkActionStatus.COMPLETED_SUCCESS not in unfinished
    assert instance.get_backfills(internals.BulkActionsFilter(statuses=unfinished)) == []
    assert len(instance.get_run_ids(dg.RunsFilter(tags={internals.BACKFILL_ID_TAG: ["b"]}))) == 1


def test_logs_of_a_run_lie_in_a_folder_of_its_name(instance):
    manager = instance.compute_log_manager
    assert isinstance(manager, internals.LocalComputeLogManager)
    run = str(uuid4())
    path = Path(manager.get_captured_local_path([run, "compute_logs", "step"], "out"))
    assert path.parents[1].name == run
    assert path.parents[2] == Path(manager.get_captured_local_path(["any"], "out")).parent


def test_rows_of_tables_stand_where_erasure_looks(tmp_path):
    """Erasure rewrites the stored form of events, which Dagster does not document."""
    with recorded(tmp_path) as instance:
        events = instance.event_log_storage
        assert isinstance(events, internals.SqliteEventLogStorage)
        retention.erase_samples(instance)
        folder = Path(events.path_for_shard(internals.INDEX_SHARD_NAME)).parent
        assert not [path.name for path in folder.iterdir() if b"shelf-mark" in path.read_bytes()]
        entry = instance.get_latest_materialization_event(dg.AssetKey("words"))
        assert entry.asset_materialization.metadata["words"].records == []
