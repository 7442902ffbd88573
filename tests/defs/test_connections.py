"""On a database server, a run opens few connections, whoever starts it."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import psycopg2
import pytest

from docindex_dagster.cli import dagster_runs
from docindex_dagster.core.settings import load_settings
from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs.tags import SOURCES_NAME
from tests.defs.conftest import CONFIG, GUIDE, KEY, QUIET
from tests.objects.postgres import Postgres, serving
from tests.recording import index_and_record

pytestmark = pytest.mark.scale

_FEW = 200  # over 400 without connection reuse; Dagster opens about 90 before it prepares a resource


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    with serving() as server:
        yield server


@pytest.fixture
def project(tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that records its runs in Postgres and has done so before."""
    (tmp_path / "docindex.toml").write_text(CONFIG)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "guide.md").write_text(GUIDE)
    home = tmp_path / "dagster"
    home.mkdir()
    (home / "dagster.yaml").write_text(
        f"telemetry: {{enabled: false}}\nstorage: {{postgres: {{postgres_url: '{postgres.url}'}}}}\n"
    )
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    with dg.DagsterInstance.get() as instance:
        instance.add_dynamic_partitions(SOURCES_NAME, [KEY])
    return tmp_path


def connections(postgres: Postgres) -> int:
    """Return the number of sessions that have ended so far."""
    with psycopg2.connect(postgres.plain_url) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT sum(sessions) FROM pg_stat_database")
        return int(cursor.fetchone()[0])


def test_a_run_of_the_command_line_makes_few(project, postgres):
    settings, before = load_settings(project), connections(postgres)

    with dagster_runs.instance(settings) as instance:
        assert index_and_record(settings, KEY, instance).succeeded

    assert connections(postgres) - before < _FEW


def test_a_run_that_a_launcher_started_makes_few(project, postgres):
    before = connections(postgres)

    with dg.DagsterInstance.get() as instance:
        job = build_definitions(project).resolve_job_def("index_source")
        assert job.execute_in_process(instance=instance, partition_key=KEY, run_config=QUIET).success

    assert connections(postgres) - before < _FEW


def test_connections_that_are_held_outlive_a_restart_of_the_server(project, postgres):
    with dagster_runs.instance(load_settings(project)) as instance:
        assert instance.get_dynamic_partitions(SOURCES_NAME) == [KEY]
        assert instance.get_runs() == []

        postgres.restart()

        assert instance.get_dynamic_partitions(SOURCES_NAME) == [KEY]
        assert instance.get_runs() == []
