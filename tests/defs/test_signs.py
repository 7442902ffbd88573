"""The lock reveals that another machine's run is gone, on a real Postgres."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg2
import pytest

from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs import dead_runs, shared
from docindex_dagster.objects.postgres_locks import PostgresLocks
from tests.defs.conftest import CONFIG, KEY
from tests.objects.postgres import serving

pytestmark = pytest.mark.scale

BEAT_S = 5.0  # heartbeat interval of a process that holds a lock

# A process on another machine that starts a run and works on it until its input ends. It may start a second run.
AT_WORK = """
import socket, sys
socket.gethostname = lambda: "elsewhere"
import dagster as dg
from docindex_dagster.core.settings import load_settings
from docindex_dagster.defs import dead_runs, shared
with dg.DagsterInstance.get() as instance:
    for run_id in sys.argv[1:]:
        dead_runs.record_process(instance, load_settings(), run_id)
    with shared.locks_of(instance, load_settings()).exclusive(f"work of {run_id}", "its work", print):
        print("at work", flush=True)
        sys.stdin.read()
"""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """Settings of a project with shared stores whose runs are in Postgres."""
    (tmp_path / "docindex.toml").write_text(f'{CONFIG}\n[storage]\nurl = "s3://bucket/prefix"\n')
    with serving() as postgres:
        (tmp_path / "dagster.yaml").write_text(
            f"telemetry: {{enabled: false}}\nstorage: {{postgres: {{postgres_url: '{postgres.url}'}}}}\n"
        )
        monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
        monkeypatch.setenv("DOCINDEX_ROOT", str(tmp_path))
        yield load_settings(tmp_path)


@pytest.fixture
def instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.get() as made:
        yield made


def new_run(instance: dg.DagsterInstance, settings: Settings) -> dg.DagsterRun:
    """Create a run that a launcher has started."""
    job = build_definitions(settings.root).resolve_job_def("index_source")
    run = instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTING, tags={"dagster/partition": KEY})
    instance.report_dagster_event(dg.DagsterEvent(event_type_value="PIPELINE_START", job_name=run.job_name), run.run_id)
    return run


def at_work(*runs: dg.DagsterRun) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", AT_WORK, *(run.run_id for run in runs)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "at work\n"
    return process


def reported(instance: dg.DagsterInstance, settings: Settings) -> list[str]:
    return [run.run_id for run in dead_runs.report_dead_runs(instance, settings)]


def test_a_run_is_at_work_until_its_process_is_killed(instance, settings):
    run = new_run(instance, settings)
    process = at_work(run)
    assert reported(instance, settings) == []

    process.kill()
    process.communicate()

    assert reported(instance, settings) == [run.run_id]
    assert instance.get_run_by_id(run.run_id).status is dg.DagsterRunStatus.FAILURE
    assert reported(instance, settings) == []


def test_a_run_that_ends_is_not_taken_for_lost_while_its_worker_lives(instance, settings):
    first, second = new_run(instance, settings), new_run(instance, settings)
    process = at_work(first)
    assert reported(instance, settings) == []
    other = at_work(second)
    assert reported(instance, settings) == []
    for each in (process, other):
        each.communicate()


def test_a_run_that_never_gave_a_sign_is_lost_after_a_while(instance, settings, monkeypatch):
    run = new_run(instance, settings)
    assert reported(instance, settings) == []

    monkeypatch.setattr(dead_runs, "_LONGEST_BEFORE_S", -1.0)

    assert reported(instance, settings) == [run.run_id]


def test_a_repeated_run_does_not_inherit_a_sign(instance, settings):
    first = new_run(instance, settings)
    process = at_work(first)
    tags = instance.get_run_by_id(first.run_id).tags
    process.communicate()
    again = new_run(instance, settings)
    instance.add_run_tags(again.run_id, dict(tags))

    assert again.run_id not in reported(instance, settings)


def test_a_run_that_was_paused_for_a_lease_is_lost_and_no_lock_of_it_stays(instance, settings, monkeypatch):
    locks = PostgresLocks(postgres_url(instance), settings.storage.url or "", lease_s=BEAT_S + 1)
    monkeypatch.setattr(shared, "locks_of", lambda *_: locks)
    run = new_run(instance, settings)
    process = at_work(run)
    assert reported(instance, settings) == []
    assert owners_of_locks(instance) == [f"docindex run {run.run_id}", "docindex its work"]

    process.send_signal(signal.SIGSTOP)
    time.sleep(BEAT_S + 1.5)

    assert reported(instance, settings) == [run.run_id]
    time.sleep(0.2)
    assert owners_of_locks(instance) == []
    process.kill()
    process.communicate()


def postgres_url(instance: dg.DagsterInstance) -> str:
    storage: Any = instance.run_storage
    return str(storage.postgres_url)


def owners_of_locks(instance: dg.DagsterInstance) -> list[str]:
    """Return the sessions that hold locks between machines. `is_held` would end the silent ones."""
    url = postgres_url(instance).replace("+psycopg2", "")
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT application_name FROM pg_stat_activity WHERE application_name LIKE 'docindex %'")
        return [name for (name,) in cursor.fetchall()]
