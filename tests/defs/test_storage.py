"""Runs of the command line are written with connections that are kept; Dagster's own classes read the same files."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import dagster as dg
import pytest
from sqlalchemy import text

from docindex_dagster.cli import launch
from docindex_dagster.core.settings import load_settings
from docindex_dagster.defs.storage import Engines, EventLogStorage
from tests.defs.conftest import CONFIG, GUIDE, KEY


def indexed(tmp_path, monkeypatch) -> tuple[launch.RunOutcome, type]:
    """Index a small library as the command line does; how it went, and what stored its events."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    (tmp_path / "docindex.toml").write_text(CONFIG)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "guide.md").write_text(GUIDE)
    settings = load_settings(tmp_path)
    with launch.instance(settings) as instance:
        return launch.index(settings, KEY, instance), type(instance.event_log_storage)


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
