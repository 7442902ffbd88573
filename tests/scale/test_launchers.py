"""Tests that Docker's and Ray's launchers run the same jobs as Celery's, and that the index equals one machine's."""

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.scale import embedded
from tests.scale.deployment import Deployment, Run, deployment
from tests.scale.embedded import Embedded
from tests.scale.launchers import docker, ray
from tests.scale.network import own_network
from tests.scale.podman import NAME as DOCKER_HOST

pytestmark = pytest.mark.scale

SOURCES = 2
QUERIES = 10
SETTLING_S = 300.0
_EVENTS = ("ENQUEUED", "STARTING", "START", "SUCCESS")


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Return a function that prints a line despite pytest's capturing."""

    def print_line(line: str) -> None:
        with capsys.disabled():
            print(f"\n{line}", end="", flush=True)  # noqa: T201

    return print_line


def test_docker_gives_each_run_a_container(tmp_path, say):
    with deployment(tmp_path, SOURCES, launcher=docker) as deployed:
        runs = indexed(deployed, tmp_path, say)

        assert {run.host for run in runs} == {DOCKER_HOST}
        assert len({container(deployed, run) for run in runs} - {""}) == len(runs)


def test_ray_lets_workers_prepare_and_publishers_publish(tmp_path, say):
    with own_network(), deployment(tmp_path, SOURCES, workers=1, launcher=ray) as deployed:
        runs = indexed(deployed, tmp_path, say)

        places = {"index_source": "worker1", "publish_prepared": "publisher1"}
        assert [run.host for run in runs] == [places[run.job] for run in runs]
        assert deployed.control.run(["ray", "job", "list"]).stdout.count("dagster-run-") >= len(runs)


def indexed(deployed: Deployment, folder: Path, say: Callable[[str], None]) -> list[Run]:
    """Index all sources, compare search results with those of one machine, and return the successful runs."""
    begun = time.monotonic()
    done = deployed.docindex("index")
    assert done.returncode == 0, done.stdout + done.stderr + deployed.report()
    deployed.settle(SETTLING_S)
    say(f"{SOURCES} sources are found after {time.monotonic() - begun:.0f} s")
    runs = deployed.runs()
    for run in runs:
        queued, starting, running = seconds(deployed, run)
        say(f"{run.job} on {run.host}: {queued:.1f} s in the queue, {starting:.1f} to start, {running:.1f} at work")
    assert {run.status for run in runs} == {"SUCCESS"}, deployed.report()
    assert {run.job for run in runs} == {"index_source", "publish_prepared"}

    alone = Embedded(folder / "embedded")
    alone.index(deployed.repositories.all)
    wanted = embedded.rows(alone.layout)
    assert embedded.rows(deployed.replica) == wanted
    asked = embedded.queries(deployed.repositories.all, QUERIES, 0)
    ranks = embedded.ranks(alone.layout, asked)
    for query in asked:
        assert [hit.chunk_id for hit in deployed.search(query, limit=10)] == ranks[query, "hybrid"]
    say(f"{len(wanted)} chunks, and the answers to {QUERIES} queries, equal those of one machine")
    return runs


def seconds(deployed: Deployment, run: Run) -> list[float]:
    """Return how many seconds a successful run spent queued, starting and running."""
    when = (
        f"(SELECT extract(epoch FROM min(timestamp)) FROM event_logs "
        f"WHERE run_id = '{run.id}' AND dagster_event_type = 'PIPELINE_{event}')"
        for event in _EVENTS
    )
    moments = [float(moment) for moment in deployed.database.ask(f"SELECT {', '.join(when)}")[0].split("|")]
    return [later - earlier for earlier, later in pairwise(moments)]


def container(deployed: Deployment, run: Run) -> str:
    """Return the container of a run, or an empty string if it has none."""
    of_run = f"run_id = '{run.id}' AND key = 'docker/container_id'"
    return "".join(deployed.database.ask(f"SELECT value FROM run_tags WHERE {of_run}"))
