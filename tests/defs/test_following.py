"""A command keeps following its run while Dagster's Postgres restarts."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from docindex_dagster.core.settings import load_settings
from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs import dead_runs, requests
from docindex_dagster.defs.requests import Request
from docindex_dagster.defs.tags import REQUEST_TAG
from tests.defs.conftest import CONFIG, KEY
from tests.objects.postgres import Postgres, serving

pytestmark = pytest.mark.scale


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    with serving() as made:
        yield made


@pytest.fixture
def instance(tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    (tmp_path / "docindex.toml").write_text(CONFIG)
    (tmp_path / "dagster.yaml").write_text(
        f"telemetry: {{enabled: false}}\nstorage: {{postgres: {{postgres_url: '{postgres.url}'}}}}\n"
    )
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    with dg.DagsterInstance.get() as made:
        dead_runs.keep_connections(made)
        yield made


def test_a_run_is_followed_while_its_database_is_restarted(tmp_path, postgres, instance):
    request = Request("index_source", KEY)
    job = build_definitions(load_settings(tmp_path).root).resolve_job_def("index_source")
    run = instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags={REQUEST_TAG: request.id})
    ended: list[dg.DagsterRun] = []
    thread = threading.Thread(target=lambda: ended.append(requests.follow_run(instance, request)), daemon=True)
    thread.start()
    time.sleep(1)

    postgres.restart()
    with dg.DagsterInstance.get() as other:
        other.report_run_failed(run)

    thread.join(60)
    assert [one.status for one in ended] == [dg.DagsterRunStatus.FAILURE]
