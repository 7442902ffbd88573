"""Tests of jobs that index a real project in real processes, recorded by a real Dagster instance."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest

from docindex_dagster.cli import dagster_runs
from docindex_dagster.core.errors import JobError
from docindex_dagster.core.settings import load_settings
from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs.tags import LOST_TAG
from docindex_dagster.runner import journal
from docindex_dagster.runner.entries import Run, State
from docindex_dagster.serving.jobs.model import JobRequest
from docindex_dagster.sources import registry
from docindex_dagster.stores.generation import read_generation
from tests.defs.conftest import KEY, Project
from tests.defs.daemon import Daemon
from tests.recording import record_all
from tests.serving.jobs.conftest import INDEX, LONGEST_S, busy, ended, events_until


@contextmanager
def daemon_of(root: Path) -> Iterator[Daemon]:
    """Yield a daemon that runs the project's sensors on the recorded runs."""
    settings = load_settings(root)
    with dagster_runs.instance(settings) as instance:
        record_all(settings, instance)
        yield Daemon(Project(root, instance), build_definitions(root))


def runs_of(root: Path) -> list[dg.DagsterRun]:
    settings = load_settings(root)
    with dagster_runs.instance(settings) as instance:
        record_all(settings, instance)
        return list(instance.get_runs())


def test_a_job_is_a_recorded_run_that_says_how_far_it_is_and_what_it_did(opened, root, layout):
    jobs = opened()

    job = jobs.submit(INDEX, "once")
    events = events_until(jobs, job, "ended")

    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert events[0].data["run_id"] == job.id
    stages = list(dict.fromkeys(event.data["stage"] for event in events if event.name == "progress"))
    assert stages[0] == "discovered_files"
    assert {"chunks", "embeddings", "knowledge_graph", "stores"} < set(stages)
    assert stages[-1] == "index_catalog"
    assert any(event.data["done"] == event.data["total"] == 2 for event in events if event.name == "progress")
    done = jobs.get(job.id)
    assert (done.state, done.percent, done.run_id, done.failures) == (State.SUCCEEDED, 100, job.id, ())
    assert done.summary["files"] == 2
    assert done.summary == events[-1].data["summary"]
    assert done.created_at <= done.started_at < done.ended_at
    assert list(read_generation(layout).sources) == [KEY]
    (run,) = runs_of(root)
    assert (run.run_id, run.status) == (job.id, dg.DagsterRunStatus.SUCCESS)
    assert (jobs.get(job.id), jobs.events(job.id)) == (done, events)  # unchanged after Dagster recorded the run
    assert jobs.submit(INDEX, "once").id == job.id
    assert [(each.id, each.launched_by) for each in jobs.all()] == [(job.id, "serve")]

    (root / "notes" / "guide.md").write_text("# Guide\n\n## Valves\n\nAnother text of the same file, to be found.\n")
    (root / "notes" / "sums.py").write_text("def product(): ...\n")

    some = ended(jobs, jobs.submit(JobRequest("index", KEY, "changes", ("guide.md",))))

    assert (some.state, some.summary["changed"]) == (State.SUCCEEDED, 1)
    with daemon_of(root) as daemon:
        assert daemon.asks_for() == [KEY]  # because of the other file

    removal = ended(jobs, jobs.submit(JobRequest("remove", KEY)))

    assert removal.state is State.SUCCEEDED
    assert removal.summary["was_declared"]
    assert registry.sources(load_settings(root)) == {}
    assert list(read_generation(layout).sources) == []


def test_a_cancelled_job_ends_its_run_as_canceled_and_no_sensor_starts_it_again(opened, root, layout):
    jobs = opened()
    with busy(layout):
        job = jobs.submit(INDEX)
        events_until(jobs, job, "waiting")

        assert jobs.cancel(job.id).state is State.CANCELLING
        assert ended(jobs, job).state is State.CANCELED

    (run,) = runs_of(root)
    assert (run.run_id, run.status) == (job.id, dg.DagsterRunStatus.CANCELED)
    with daemon_of(root) as daemon:
        records = daemon.project.instance.get_records_for_run(job.id).records
        kinds = {record.event_log_entry.dagster_event_type for record in records}
        assert dg.DagsterEventType.RUN_CANCELED in kinds
        assert dg.DagsterEventType.RUN_FAILURE not in kinds  # a sensor might have recorded a failure meanwhile
        assert daemon.asks_for() == []
        assert daemon.asks_for() == []
        (root / "notes" / "guide.md").write_text("# New\n\nA text that is worth a run again.\n")
        assert daemon.asks_for() == [KEY]


def test_the_run_of_a_process_that_watches_is_not_stopped(opened, layout):
    jobs = opened()
    with journal.writing(layout, Run("watched", KEY, "watch", time.time())):
        with pytest.raises(JobError, match=f"belongs to process {os.getpid()}, which watches the sources"):
            jobs.cancel("watched")

        assert jobs.get("watched").state is State.RUNNING


def test_a_server_that_is_started_again_follows_the_job_that_works_meanwhile(opened, root, layout):
    first = opened()
    with busy(layout):
        job = first.submit(INDEX)
        before = events_until(first, job, "waiting")
        first.close()
        second = opened()
        adopted = second.get(job.id)
        assert (adopted.state, adopted.run_id) == (State.RUNNING, job.id)

    after = events_until(second, job, "ended")

    assert after[: len(before)] == before
    assert second.get(job.id).state is State.SUCCEEDED
    assert [run.run_id for run in runs_of(root)] == [job.id]


def test_a_job_whose_process_dies_is_lost_and_sensors_start_it_again(opened, root, layout):
    jobs = opened()
    with busy(layout):
        job = jobs.submit(INDEX)
        pid = events_until(jobs, job, "waiting")[0].data["pid"]
        os.kill(pid, signal.SIGKILL)

        lost = ended(jobs, job)

    assert lost.state is State.LOST
    assert "process died" in lost.failures[0]
    (run,) = runs_of(root)
    assert (run.status, run.tags[LOST_TAG]) == (dg.DagsterRunStatus.FAILURE, "true")
    with daemon_of(root) as daemon:
        assert daemon.asks_for() == [KEY]


def test_runs_of_the_command_line_are_shown_and_cancelled(opened, root, layout):
    jobs = opened()
    with busy(layout):
        command = subprocess.Popen(
            [sys.executable, "-m", "docindex_dagster.cli", "index", "--full"],
            cwd=root,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        until = time.monotonic() + LONGEST_S
        while not (shown := [job for job in jobs.all() if job.state is State.RUNNING]):
            assert time.monotonic() < until
            time.sleep(0.1)
        (job,) = shown
        assert (job.launched_by, job.request) == ("command line", JobRequest("index", KEY, "full"))
        assert jobs.events(job.id) == []

        jobs.cancel(job.id)
        assert command.wait(LONGEST_S) == 130

    assert ended(jobs, job).state is State.CANCELED
    assert [event.name for event in jobs.events(job.id)] == ["ended"]
    with daemon_of(root) as daemon:
        assert daemon.asks_for() == []


def test_a_failed_job_says_why_as_the_command_line_does(opened, root):
    config = root / "docindex.toml"
    config.write_text('[[source]]\nkind = "git"\nname = "code"\nurl = "file:///nowhere/at/all"\n')
    jobs = opened()

    failed = ended(jobs, jobs.submit(JobRequest("index", "git/code")))

    assert failed.state is State.FAILED
    assert "nowhere" in " ".join(failed.failures)
    assert failed.phase == "discovery"
    assert [run.status for run in runs_of(root)] == [dg.DagsterRunStatus.FAILURE]
