"""The events of a step are written together: none is lost, others see them soon, and the rows are those of Dagster."""

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy.exc import OperationalError

from docindex_dagster.defs import storage
from docindex_dagster.defs.internals import RUNLESS_RUN_ID, SqliteEventLogStorage
from docindex_dagster.defs.storage import EventLogStorage

KINDS = dg.DagsterEventType
SHELVES = dg.DynamicPartitionsDefinition(name="shelves")
FAILING = "shelf-that-fails"


@dg.asset(partitions_def=SHELVES, check_specs=[dg.AssetCheckSpec(name, asset="words") for name in ("sorted", "unique")])
def words() -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster would read it as outputs
    checks = [dg.AssetCheckResult(passed=name == "sorted", check_name=name) for name in ("sorted", "unique")]
    return dg.MaterializeResult(metadata={"count": 3}, check_results=checks)


@dg.asset(partitions_def=SHELVES, deps=[words])
def letters(context: dg.AssetExecutionContext) -> None:
    context.log.info("counting letters")
    if context.partition_key == FAILING:
        raise ValueError("no letters")


@contextmanager
def opened(folder: Path) -> Iterator[dg.DagsterInstance]:
    """An instance with our log of events."""
    folder.mkdir(exist_ok=True)
    log = {"module": storage.__name__, "class": "EventLogStorage", "config": {"base_dir": str(folder / "log")}}
    overrides = {"telemetry": {"enabled": False}, "event_log_storage": log}
    with dg.DagsterInstance.local_temp(str(folder), overrides=overrides) as instance:
        assert isinstance(instance.event_log_storage, EventLogStorage)
        instance.add_dynamic_partitions("shelves", ["a", FAILING])
        yield instance


def run(instance: dg.DagsterInstance, *more: dg.AssetsDefinition, shelf: str = "a") -> dg.ExecuteInProcessResult:
    """A run of all assets, and of more of them."""
    return dg.materialize([words, letters, *more], instance=instance, partition_key=shelf, raise_on_error=False)


def kinds(events: list[dg.EventLogEntry]) -> list[tuple[str, str | None]]:
    """What events say, and of which step; messages are left out."""
    return [
        (event.dagster_event.event_type_value, event.dagster_event.step_key) for event in events if event.dagster_event
    ]


def as_others_see(folder: Path, run_id: str) -> list[dg.EventLogEntry]:
    """The log of a run, as a process with Dagster's own storage reads it now."""
    log = SqliteEventLogStorage(str(folder / "log"))
    try:
        return list(log.get_logs_for_run(run_id))
    finally:
        log.dispose()


@pytest.mark.parametrize("shelf", ["a", FAILING])
def test_the_log_has_each_event_of_a_run_in_the_order_in_which_they_happened(tmp_path, shelf):
    with opened(tmp_path) as instance:
        done = run(instance, shelf=shelf)
        found = as_others_see(tmp_path, done.run_id)

    assert done.success == (shelf == "a")
    happened = [(event.event_type_value, event.step_key) for event in done.all_events]
    planned = [one for one in kinds(found) if one[0].endswith("PLANNED")]
    assert kinds(found) == [*planned, *happened]
    assert len(planned) == 4
    assert "counting letters" in [event.user_message for event in found]
    assert [event.timestamp for event in found] == sorted(event.timestamp for event in found)


def test_when_a_step_has_ended_other_processes_see_all_of_it(tmp_path):
    seen: list[dg.EventLogEntry] = []

    @dg.asset(partitions_def=SHELVES, deps=[letters])
    def last(context: dg.AssetExecutionContext) -> None:
        seen.extend(as_others_see(tmp_path, context.run.run_id))

    with opened(tmp_path) as instance:
        done = run(instance, last)
        assert done.success
        written = kinds(as_others_see(tmp_path, done.run_id))

    assert kinds(seen) == written[: len(kinds(seen))]
    assert kinds(seen)[-2:] == [("STEP_SUCCESS", "letters"), ("STEP_START", "last")]


KILLED = f"""
import os, signal, sys
from pathlib import Path
import dagster as dg
from {__name__} import SHELVES, letters, opened, run

@dg.asset(partitions_def=SHELVES, deps=[letters])
def last(context):
    print(context.run.run_id, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

with opened(Path(sys.argv[1])) as instance:
    run(instance, last)
"""


def test_of_a_run_that_is_killed_all_earlier_steps_are_there(tmp_path):
    killed = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", KILLED, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    run_id = killed.stdout.strip()

    found = kinds(as_others_see(tmp_path, run_id))
    assert found[-2:] == [("STEP_SUCCESS", "letters"), ("STEP_START", "last")]
    assert found.count(("ASSET_CHECK_EVALUATION", "words")) == 2
    log = SqliteEventLogStorage(str(tmp_path / "log"))
    checked = log.get_latest_asset_check_execution_by_key(list(words.check_keys))
    log.dispose()
    assert {key.name: record.status.value for key, record in checked.items()} == {
        "sorted": "SUCCEEDED",
        "unique": "FAILED",
    }


def rows(database: Path) -> dict[str, list[dict[str, object]]]:
    """All that a database holds, but for the times at which rows were made."""
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = sqlite3.Row
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            table: [
                {name: row[name] for name in row.keys() if name not in {"create_timestamp", "migration_completed"}}  # noqa: SIM118 a row has no other way
                for row in connection.execute(f"SELECT * FROM {table}")
            ]
            for table in sorted(tables)
        }


def test_the_databases_hold_the_rows_that_dagster_would_have_written(tmp_path):
    with opened(tmp_path / "run") as instance:
        runs = [run(instance, shelf=shelf).run_id for shelf in ("a", FAILING, "a")]
        instance.report_runless_asset_event(dg.AssetMaterialization("atlas", tags={"dagster/data_version": "1"}))
        evaluation = dg.AssetCheckEvaluation(asset_key=words.key, check_name="sorted", passed=True)
        instance.report_runless_asset_event(evaluation)
        entries = [entry for one in (*runs, RUNLESS_RUN_ID) for entry in instance.all_logs(one)]

    ours, theirs = EventLogStorage(str(tmp_path / "ours")), SqliteEventLogStorage(str(tmp_path / "theirs"))
    for log in (ours, theirs):
        for entry in entries:
            log.store_event(entry)
        log.dispose()

    written = {name: rows(tmp_path / name / "index.db") for name in ("ours", "theirs")}
    assert written["ours"] == written["theirs"]
    assert {"event_logs", "asset_event_tags", "asset_check_executions", "asset_keys"} <= {
        table for table, found in written["ours"].items() if found
    }
    for one in runs:
        assert rows(tmp_path / "ours" / f"{one}.db") == rows(tmp_path / "theirs" / f"{one}.db")


@pytest.fixture
def entries(tmp_path) -> list[dg.EventLogEntry]:
    """The events of a run."""
    with opened(tmp_path / "run") as instance:
        return list(instance.all_logs(run(instance).run_id))


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Another process writes a database, and does not end."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def test_what_cannot_be_written_when_someone_reads_is_written_later(tmp_path, entries, monkeypatch):
    monkeypatch.setattr(storage, "_BUSY_TIMEOUT_S", 0.05)
    log = EventLogStorage(str(tmp_path / "log"))
    run_id = entries[0].run_id
    log.get_logs_for_run(run_id)
    log.store_event(entries[0])

    with locked(tmp_path / "log" / "index.db"), pytest.raises(OperationalError, match="locked"):
        log.get_logs_for_run(run_id)

    assert log.get_logs_for_run(run_id) == entries[:1]
    log.dispose()


def test_whoever_stores_an_event_hears_that_it_was_not_written(tmp_path, entries, monkeypatch):
    """What was gathered is lost with it, in each database; what comes after is written."""
    monkeypatch.setattr(storage, "_BUSY_TIMEOUT_S", 0.05)
    log = EventLogStorage(str(tmp_path / "log"))
    run_id = entries[0].run_id
    log.get_logs_for_run(run_id)
    begin = next(place for place, entry in enumerate(entries) if entry.dagster_event_type is KINDS.RUN_START)
    for entry in entries[:begin]:
        log.store_event(entry)

    with locked(tmp_path / "log" / f"{run_id}.db"), pytest.raises(OperationalError, match="locked"):
        log.store_event(entries[begin])

    log.store_event(entries[-1])
    assert log.get_logs_for_run(run_id) == entries[-1:]
    log.dispose()
    assert [row["dagster_event_type"] for row in rows(tmp_path / "log" / "index.db")["event_logs"]] == [
        KINDS.RUN_SUCCESS.value
    ]


def test_what_is_gathered_is_written_when_the_log_is_closed(tmp_path, entries):
    log = EventLogStorage(str(tmp_path / "log"))
    log.store_event(entries[0])
    log.dispose()

    assert as_others_see(tmp_path, entries[0].run_id) == entries[:1]


def test_the_ends_of_steps_and_whatever_is_rare_are_written_when_they_are_stored(tmp_path, entries):
    log = EventLogStorage(str(tmp_path / "log"))
    written = set()
    for place, entry in enumerate(entries, 1):
        log.store_event(entry)
        if as_others_see(tmp_path, entry.run_id) == entries[:place]:
            written.add(entry.dagster_event_type)
    log.dispose()

    assert written >= {KINDS.RUN_START, KINDS.STEP_START, KINDS.STEP_SUCCESS, KINDS.RUN_SUCCESS, None}
    assert not written & {KINDS.STEP_OUTPUT, KINDS.ASSET_MATERIALIZATION, KINDS.ASSET_CHECK_EVALUATION}


def test_an_event_without_a_run_is_written_when_it_is_stored(tmp_path):
    with opened(tmp_path) as instance:
        instance.report_runless_asset_event(dg.AssetMaterialization("atlas"))
        assert len(as_others_see(tmp_path, RUNLESS_RUN_ID)) == 1


def test_a_run_knows_what_it_has_made_since_it_last_asked(tmp_path):
    asked: list[tuple[str, str]] = []

    def ask(context: dg.AssetExecutionContext) -> None:
        (record,) = context.instance.get_asset_records([words.key])
        (made,) = context.instance.fetch_materializations(words.key, limit=1).records
        assert record.asset_entry.last_materialization_record.run_id == made.run_id
        asked.append((context.run.run_id, made.run_id))

    @dg.asset(partitions_def=SHELVES)
    def before(context: dg.AssetExecutionContext) -> None:
        ask(context)

    @dg.asset(partitions_def=SHELVES, deps=[before, words])
    def after(context: dg.AssetExecutionContext) -> None:
        ask(context)

    with opened(tmp_path) as instance:
        first = run(instance).run_id
        second = dg.materialize([before, words, after], instance=instance, partition_key="a").run_id

    assert asked == [(second, first), (second, second)]


def test_each_check_names_the_materialisation_of_its_own_run(tmp_path):
    with opened(tmp_path) as instance:
        runs = [run(instance).run_id for _ in range(2)]
        evaluations = {
            one: [
                event.asset_check_evaluation_data.target_materialization_data
                for entry in instance.all_logs(one, of_type=KINDS.ASSET_CHECK_EVALUATION)
                if (event := entry.dagster_event)
            ]
            for one in runs
        }
        newest = instance.fetch_materializations(words.key, limit=2).records

    for one, made in zip(reversed(runs), newest, strict=True):
        assert [(target.run_id, target.storage_id) for target in evaluations[one]] == [(one, made.storage_id)] * 2


def test_a_materialisation_names_what_was_made_before_it_in_the_same_run(tmp_path):
    with opened(tmp_path) as instance:
        for _ in range(2):
            run(instance)
        made, sources = (instance.fetch_materializations(asset.key, limit=2).records for asset in (letters, words))

    tags = [record.asset_materialization.tags for record in made]
    assert [one["dagster/input_event_pointer/words"] for one in tags] == [str(record.storage_id) for record in sources]
    assert len({one["dagster/input_data_version/words"] for one in tags}) == 2


def test_a_step_knows_that_a_partition_is_gone_which_it_deleted(tmp_path):
    found: list[bool] = []

    @dg.asset(partitions_def=SHELVES, deps=[letters])
    def last(context: dg.AssetExecutionContext) -> None:
        found.append(context.instance.has_dynamic_partition("shelves", "b"))
        context.instance.delete_dynamic_partition("shelves", "b")
        found.append(context.instance.has_dynamic_partition("shelves", "b"))

    with opened(tmp_path) as instance:
        instance.add_dynamic_partitions("shelves", ["b"])
        assert run(instance, last).success

    assert found == [True, False]


def test_without_a_run_nothing_is_remembered(tmp_path):
    with opened(tmp_path) as instance, opened(tmp_path) as other:
        run(instance)
        before = instance.get_asset_records([words.key])[0].asset_entry.last_run_id
        done = run(other)

        assert before != done.run_id
        assert instance.get_asset_records([words.key])[0].asset_entry.last_run_id == done.run_id
        assert instance.fetch_materializations(words.key, limit=1).records[0].run_id == done.run_id
        other.delete_dynamic_partition("shelves", "a")
        assert not instance.has_dynamic_partition("shelves", "a")
