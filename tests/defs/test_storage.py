"""Runs of the command line are written with connections that are kept; Dagster's own classes read the same files."""

import sqlite3
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import text

from docindex_dagster.cli import launch
from docindex_dagster.core.settings import load_settings
from docindex_dagster.defs.internals import SqliteEventLogStorage
from docindex_dagster.defs.storage import Engines, EventLogStorage
from docindex_dagster.runner.runs import RunOutcome
from tests.defs.conftest import CONFIG, GUIDE, KEY
from tests.recording import index_and_record


def indexed(tmp_path, monkeypatch) -> tuple[RunOutcome, type]:
    """Index a small library as the command line does; how it went, and what stored its events."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    (tmp_path / "docindex.toml").write_text(CONFIG)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "guide.md").write_text(GUIDE)
    settings = load_settings(tmp_path)
    with launch.instance(settings) as instance:
        return index_and_record(settings, KEY, instance), type(instance.event_log_storage)


def test_dagsters_own_storage_reads_the_run_its_events_and_its_materialisations(tmp_path, monkeypatch):
    outcome, storage = indexed(tmp_path, monkeypatch)
    assert outcome.succeeded
    assert storage is EventLogStorage

    with dg.DagsterInstance.from_config(str(tmp_path / ".docindex" / "dagster")) as instance:
        assert not isinstance(instance.event_log_storage, EventLogStorage)
        assert instance.get_run_by_id(outcome.run_id).status is dg.DagsterRunStatus.SUCCESS
        assert instance.get_materialized_partitions(dg.AssetKey("lancedb_table")) == {KEY}
        kinds = {entry.dagster_event_type for entry in instance.all_logs(outcome.run_id) if entry.is_dagster_event}
        assert dg.DagsterEventType.ASSET_CHECK_EVALUATION in kinds


def test_a_storage_that_the_user_chose_is_left_alone(tmp_path, monkeypatch):
    chosen = tmp_path / "runs-elsewhere"
    (tmp_path / "dagster.yaml").write_text(
        "event_log_storage:\n  module: dagster._core.storage.event_log\n  class: ConsolidatedSqliteEventLogStorage\n"
        f"  config: {{base_dir: {chosen}}}\n"
    )

    outcome, storage = indexed(tmp_path, monkeypatch)

    assert outcome.succeeded
    assert storage.__name__ == "ConsolidatedSqliteEventLogStorage"
    assert any(chosen.iterdir())


def databases(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.db"))


def schema(database: Path) -> tuple[list[str], list[str], str]:
    """The tables and indexes of a database, its version, and how it is written."""
    with closing(sqlite3.connect(database)) as connection:
        made = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL ORDER BY name")]
        version = [number for (number,) in connection.execute("SELECT version_num FROM alembic_version")]
        return made, version, connection.execute("PRAGMA journal_mode").fetchone()[0]


def test_the_database_of_a_run_is_the_one_that_dagster_makes(tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for storage in (EventLogStorage(str(ours)), SqliteEventLogStorage(str(theirs))):
        for run_id in ("first", "second"):
            assert storage.get_logs_for_run(run_id) == []
        storage.dispose()

    found = {schema(database) == schema(theirs / "first.db") for database in (ours / "first.db", ours / "second.db")}
    assert found == {True}
    assert [database.stem for database in databases(ours)] == ["first", "index", "second"]


@pytest.mark.parametrize("is_empty", [False, True])
def test_a_database_that_another_process_made_is_left_as_it_is(tmp_path, is_empty):
    """One that has no tables yet gets them, as Dagster does it."""
    made = EventLogStorage(str(tmp_path))
    made.get_logs_for_run("first")
    (tmp_path / "second.db").write_bytes(b"" if is_empty else (tmp_path / f"empty-{dg.__version__}").read_bytes())
    before = (tmp_path / "second.db").stat().st_ino

    assert made.get_logs_for_run("second") == []
    made.dispose()

    assert (tmp_path / "second.db").stat().st_ino == before
    assert schema(tmp_path / "second.db") == schema(tmp_path / "first.db")


def test_where_files_cannot_be_linked_dagster_makes_the_database(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("no links here")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    storage = EventLogStorage(str(tmp_path))

    assert storage.get_logs_for_run("first") == []
    storage.dispose()

    assert [file.name for file in tmp_path.iterdir() if file.name.endswith(".tmp")] == []


@pytest.fixture
def _hasty_threads() -> Iterator[None]:
    """Threads that take turns a thousand times as often."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("_hasty_threads")
def test_threads_share_the_engines_while_old_ones_are_closed(tmp_path):
    engines = Engines()

    def ask(start: int) -> set[str | None]:
        found = set()
        for number in range(start, start + 300):
            engine = engines.get(f"sqlite:///{tmp_path}/{number % 20}.db")
            if number % 10 == 0:
                with engine.connect() as connection:
                    connection.execute(text("select 1"))
            found.add(engine.url.database)
        return found

    with ThreadPoolExecutor(8) as threads:
        found = set().union(*threads.map(ask, range(8)))
    engines.dispose()

    assert found == {f"{tmp_path}/{number}.db" for number in range(20)}
