"""The store maintenance job and the sensor that requests it."""

import time
from collections.abc import Iterator

import dagster as dg
import pytest

from docindex_dagster.cli import job
from docindex_dagster.core.settings import load_settings
from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs import jobs
from docindex_dagster.defs.tags import MAINTENANCE_TAG, REASON_TAG
from docindex_dagster.runner import journal
from docindex_dagster.runner.entries import Run
from docindex_dagster.stores import maintenance
from docindex_dagster.stores.generation import read_generation
from tests.defs.conftest import KEY, QUIET, Project, new_project
from tests.defs.daemon import Daemon
from tests.defs.quick_runs import quick_run

TAGS = {MAINTENANCE_TAG: "true"}


@pytest.fixture
def project(tmp_path, monkeypatch) -> Iterator[Project]:
    monkeypatch.setattr(maintenance, "_MAX_VERSIONS", 1)
    with new_project(tmp_path) as project:
        yield project


@pytest.fixture
def daemon(project) -> Daemon:
    return Daemon(project, build_definitions(project.root))


def asked(daemon: Daemon) -> list[str]:
    return [request.tags[REASON_TAG] for request in daemon.tick("stores").run_requests or ()]


def maintain(project: Project) -> dg.ExecuteInProcessResult:
    job = build_definitions(project.root).resolve_job_def("maintain_stores")
    return job.execute_in_process(instance=project.instance, raise_on_error=False, run_config=QUIET)


def test_it_is_asked_for_when_it_is_due_and_not_again(project, daemon):
    assert asked(daemon) == []
    project.index()
    before = read_generation(project.layout)
    [reason] = asked(daemon)
    assert "versions of the table since the last" in reason

    assert maintain(project).success

    assert read_generation(project.layout).table != before.table
    assert project.search("installer") == ["guide.md"]
    assert asked(daemon) == []


def test_the_run_says_what_it_did(project):
    project.index()

    done = maintain(project)

    [output] = done.get_step_success_events()
    assert output.step_key == "compact_and_index"
    [handled] = [event.step_output_data for event in done.all_events if event.is_successful_output]
    published = read_generation(project.layout)
    assert published is not None
    rows = sum(source.chunks for source in published.sources.values())
    assert handled.metadata["rows"].value == rows
    assert handled.metadata["brought_over"].value == 0


def test_nothing_to_do_is_no_failure(project):
    assert maintain(project).success


def test_it_is_not_asked_for_while_one_waits(project, daemon):
    project.index()
    waiting = dg.DagsterRun("maintain_stores", status=dg.DagsterRunStatus.NOT_STARTED, tags=TAGS)
    project.instance.add_run(waiting)

    assert asked(daemon) == []


def test_while_publications_go_on_it_rests_between_two(project, daemon, monkeypatch):
    project.index()
    quick_run(project.instance, key=None, job="maintain_stores", tags=TAGS)
    assert asked(daemon) == []

    now = time.time() + jobs._REST_S + 1
    monkeypatch.setattr(time, "time", lambda: now)

    assert len(asked(daemon)) == 1


def test_after_a_failure_it_is_asked_for_again_later(project, daemon, monkeypatch):
    project.index()
    quick_run(project.instance, "the disk is full", key=None, job="maintain_stores", tags=TAGS)
    assert asked(daemon) == []

    now = time.time() + 61
    monkeypatch.setattr(time, "time", lambda: now)

    assert len(asked(daemon)) == 1


def test_a_job_of_a_server_does_it_itself_since_no_daemon_need_be_there(project):
    project.layout.prepare()
    with journal.writing(project.layout, Run("5d0f0ae0-6b5c-4a7e-8a8f-0d3f4d0a7c11", KEY, "serve", 0.0)) as writer:
        assert job._indexed(load_settings(project.root), writer)["succeeded"]

    assert not maintenance.why_due(project.layout)
