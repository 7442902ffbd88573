"""With shared stores, commands request runs and follow them until searches find the result."""

import os
import signal
import threading
import time
from typing import Self

import dagster as dg
import pytest
from dagster._core.definitions.partitions.context import partition_loading_context

from docindex_dagster.cli import dagster_runs
from docindex_dagster.core import events
from docindex_dagster.core.settings import load_settings
from docindex_dagster.defs import publishing
from docindex_dagster.defs.outcomes import MOST_REQUESTS
from docindex_dagster.defs.requests import Request, pending_requests
from docindex_dagster.defs.tags import SOURCES_NAME
from docindex_dagster.runner.entries import Mode
from docindex_dagster.runner.runs import RunOutcome
from tests.defs.conftest import KEY
from tests.defs.deployment import Deployment, new_deployment

_LONGEST_S = 300


@pytest.fixture
def deployment(tmp_path, monkeypatch):
    with new_deployment(tmp_path, monkeypatch, has_files=True) as made:
        yield made


class Machines:
    """Run the daemon, a worker and a publisher of a deployment in a thread, serving all requests."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.did: list[tuple[str | None, dict[str, str]]] = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        while not self.ended.wait(0.1):
            for sensor in ("run_requested", "prepared_changed"):
                for request in self.deployment.tick("machine", sensor).run_requests or ():
                    job = request.job_name or "publish_prepared"
                    self.did.append((job, dict(request.tags)))
                    self.deployment.run(
                        "machine", job, request.partition_key, run_config=dict(request.run_config), tags=request.tags
                    )

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join(_LONGEST_S)
        assert not self.thread.is_alive()


def index(deployment: Deployment, mode: Mode = "changes") -> RunOutcome:
    """Request a run as `docindex index` does, and follow it."""
    settings = load_settings(deployment.root)
    request = dagster_runs.request_index_run(settings, KEY, deployment.instance, mode)
    return dagster_runs.follow_request(settings, request, deployment.instance)


def test_a_command_asks_for_a_run_follows_it_and_ends_when_what_it_made_can_be_searched(deployment):
    heard: list[events.Event] = []

    with Machines(deployment) as machines, events.listening(heard.append):
        outcome = index(deployment, mode="verify")

    assert outcome.succeeded
    assert outcome.number("discovered_files", "files") == 1
    assert outcome.number("lancedb_table", "added") > 0
    assert deployment.found("search", "green button") == ["guide.md"]
    assert [job for job, _ in machines.did] == ["index_source", "publish_prepared"]
    assert machines.did[0][1]["docindex/verify"] == "true"
    assert events.StageBegan(KEY, "chunks") in heard
    assert list(pending_requests(deployment.instance)) == []


def test_what_the_stores_report_long_after_searches_find_it_is_waited_for(deployment, monkeypatch):
    reporting = publishing._events

    def report_late(stores, done):
        time.sleep(2)
        yield from reporting(stores, done)

    monkeypatch.setattr(publishing, "_events", report_late)

    with Machines(deployment):
        outcome = index(deployment)

    assert outcome.number("lancedb_table", "added") > 0


def test_a_run_that_fails_is_reported_with_its_reason(deployment):
    (deployment.root / "notes" / "guide.md").unlink()
    (deployment.root / "notes").rmdir()

    with Machines(deployment):
        outcome = index(deployment)

    assert not outcome.succeeded
    assert "notes" in outcome.failures[0]


def test_a_source_is_removed_by_a_run_elsewhere_and_gone_when_the_command_ends(deployment):
    settings = load_settings(deployment.root)

    with Machines(deployment):
        assert index(deployment).succeeded
        assert dagster_runs.follow_request(
            settings, dagster_runs.request_removal(KEY, deployment.instance), deployment.instance
        ).succeeded

    assert deployment.found("search", "green button") == []


def test_a_user_who_does_not_wait_leaves_the_run_going(deployment):
    interrupt = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()

    with pytest.raises(KeyboardInterrupt):
        index(deployment)

    interrupt.join()
    assert [request.source for request in pending_requests(deployment.instance)] == [KEY]


def test_a_request_for_a_source_without_a_partition_gives_it_one_and_holds_back_no_other(deployment):
    settings = load_settings(deployment.root)
    for key in ("library/other", KEY):
        dagster_runs.request_index_run(settings, key, deployment.instance)
    deployment.instance.delete_dynamic_partition(SOURCES_NAME, "library/other")
    repository = deployment.at("daemon").get_repository_def()
    with (
        partition_loading_context(dynamic_partitions_store=deployment.instance),
        dg.build_sensor_context(
            instance=deployment.instance, repository_def=repository, sensor_name="run_requested"
        ) as context,
    ):
        ticked = repository.get_sensor_def("run_requested").evaluate_tick(context)

    assert [request.partition_key for request in ticked.run_requests] == ["library/other", KEY]


def test_of_many_requests_a_tick_looks_at_those_alone_that_it_can_take(deployment, monkeypatch):
    settings, asked = load_settings(deployment.root), []
    for number in range(MOST_REQUESTS + 10):
        dagster_runs.request_index_run(settings, f"library/{number}", deployment.instance)
    reading = dg.DagsterInstance.get_runs

    def get_runs(*arguments, **options):
        asked.append(arguments)
        return reading(*arguments, **options)

    monkeypatch.setattr(dg.DagsterInstance, "get_runs", get_runs)

    assert len(deployment.tick("daemon", "run_requested").run_requests) == MOST_REQUESTS
    assert len(asked) == MOST_REQUESTS


def test_a_request_may_hold_any_name_of_a_file():
    request = Request("index_source", KEY, {"docindex/only": '["a...b\\n.md", "ü.md"]'})

    assert Request.of_partition(request.as_partition()) == request
    assert "..." not in request.as_partition()
