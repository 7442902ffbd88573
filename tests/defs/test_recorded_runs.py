"""Recorded runs as jobs, and cancellation that keeps sensors from restarting them."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.remote_origin import (
    ManagedGrpcPythonEnvCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

from docindex_dagster.cli import dagster_runs
from docindex_dagster.core.errors import EndedJobError, JobError, UnknownJobError
from docindex_dagster.core.locks import exclusive, recording_step
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs import recorded_runs
from docindex_dagster.defs.dead_runs import process_tags
from docindex_dagster.defs.jobs import REMOVE_SOURCE
from docindex_dagster.defs.tags import FULL_TAG, LAUNCHER_TAG, ONLY_TAG, PARTITION_TAG, SOURCE_TAG, VERIFY_TAG
from docindex_dagster.runner.entries import State
from docindex_dagster.serving.jobs.model import Job, JobRequest
from tests.defs.conftest import CODE, CONFIG, GUIDE, KEY, Project
from tests.defs.daemon import GIT, Daemon, declare
from tests.defs.quick_runs import quick_run

STARTED = dg.DagsterRunStatus.STARTED
_LOADED = LoadableTargetOrigin(executable_path=sys.executable, module_name="docindex_dagster.definitions")
_REPOSITORY = RemoteRepositoryOrigin(ManagedGrpcPythonEnvCodeLocationOrigin(_LOADED, "docindex"), "__repository__")


@pytest.fixture
def project(tmp_path: Path, monkeypatch) -> Iterator[Project]:
    """A project with its own instance, whose runs wait in Dagster's queue."""
    for name in ("DAGSTER_HOME", "DOCINDEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "notes").mkdir()
    (tmp_path / "docindex.toml").write_text(CONFIG)
    (tmp_path / "notes" / "guide.md").write_text(GUIDE)
    (tmp_path / "notes" / "sums.py").write_text(CODE)
    with dagster_runs.instance(load_settings(tmp_path)) as instance:
        yield Project(tmp_path, instance)


@pytest.fixture
def settings(project: Project) -> Settings:
    return load_settings(project.root)


def recorded(
    project: Project,
    status: dg.DagsterRunStatus,
    tags: Mapping[str, str] | None = None,
    *,
    key: str = KEY,
    job: str = "index_source",
    by_daemon: bool = False,
) -> str:
    """Create a recorded run that no process works on."""
    all_tags = {PARTITION_TAG if job == "index_source" else SOURCE_TAG: key, **(tags or {})}
    origin = RemoteJobOrigin(_REPOSITORY, job) if by_daemon else None
    run = dg.DagsterRun(job, status=status, tags=all_tags, remote_job_origin=origin)
    return project.instance.add_run(run).run_id


def queued(project: Project, key: str = KEY, tags: Mapping[str, str] | None = None) -> str:
    """Create a run that the daemon will start."""
    return recorded(project, dg.DagsterRunStatus.QUEUED, tags, key=key, by_daemon=True)


def only(project: Project, settings: Settings) -> Job:
    (job,) = recorded_runs.newest_jobs(project.instance, settings, 10)
    return job


def status_of(project: Project, run_id: str) -> dg.DagsterRunStatus:
    return project.instance.get_run_by_id(run_id).status


class TestShowing:
    @pytest.mark.parametrize(
        ("tags", "launched_by"),
        [
            ({}, "Dagster UI"),
            ({"dagster/sensor_name": "library_files_changed"}, "sensor"),
            ({"dagster/schedule_name": "nightly_reindex"}, "schedule"),
            ({"dagster/backfill": "abc"}, "backfill"),
            ({LAUNCHER_TAG: "serve"}, "Dagster UI"),  # it repeats a server's run and inherits its tags
        ],
    )
    def test_what_asked_the_daemon_for_a_run(self, project, settings, tags, launched_by):
        run_id = queued(project, tags=tags)

        job = only(project, settings)

        assert (job.id, job.run_id, job.launched_by) == (run_id, run_id, launched_by)
        assert (job.state, job.request) == (State.QUEUED, JobRequest("index", KEY))

    @pytest.mark.parametrize(
        ("tags", "launched_by"),
        [({}, "command line"), ({LAUNCHER_TAG: "serve"}, "serve"), ({LAUNCHER_TAG: "watch"}, "watch")],
    )
    def test_what_started_a_run_in_its_own_process(self, project, settings, tags, launched_by):
        recorded(project, STARTED, tags)

        assert only(project, settings).launched_by == launched_by

    @pytest.mark.parametrize(
        ("tags", "request_"),
        [
            ({FULL_TAG: "true"}, JobRequest("index", KEY, "full")),
            ({VERIFY_TAG: "true"}, JobRequest("index", KEY, "verify")),
            ({ONLY_TAG: '["a.md"]'}, JobRequest("index", KEY, "changes", ("a.md",))),
        ],
    )
    def test_what_it_was_asked_for(self, project, settings, tags, request_):
        recorded(project, STARTED, tags)

        assert only(project, settings).request == request_

    def test_a_removal_names_its_source_and_a_clean_up_is_no_job(self, project, settings):
        recorded(project, STARTED, job=REMOVE_SOURCE)
        recorded(project, STARTED, job="clean_up_dagster")

        assert only(project, settings).request == JobRequest("remove", KEY)

    def test_a_run_that_ended_says_when_and_one_that_failed_why(self, project, settings):
        well, badly = quick_run(project.instance), quick_run(project.instance, "there is no folder")

        newest = recorded_runs.newest_jobs(project.instance, settings, 10)

        assert [(job.id, job.state, job.percent) for job in newest] == [
            (badly, State.FAILED, 0),
            (well, State.SUCCEEDED, 100),
        ]
        assert all(job.created_at <= job.started_at <= job.ended_at for job in newest)
        failed = recorded_runs.find_job(project.instance, settings, badly)
        assert failed.failures == ("discovered_files: there is no folder",)
        assert recorded_runs.find_job(project.instance, settings, "none") is None

    def test_a_run_that_works_says_how_far_it_is(self, project, settings):
        run_id = recorded(project, STARTED)

        def wait(_owner: str) -> None:
            raise AssertionError

        with (
            exclusive(project.layout.source_lock(KEY), f"run {run_id} of process 1", wait) as note,
            recording_step(note, "chunks"),
        ):
            job = only(project, settings)

        assert (job.state, job.phase, job.percent) == (State.RUNNING, "chunks", 10)


class TestCancelling:
    def test_a_run_that_waits_in_the_queue_of_the_daemon_is_canceled_and_not_asked_for_again(self, project, settings):
        daemon = Daemon(project, build_definitions(project.root))
        daemon.settle()
        (project.notes / "guide.md").write_text("# New\n\nA text that nobody wants to index now.\n")
        run_id = queued(project)

        recorded_runs.cancel(project.instance, settings, run_id)

        assert status_of(project, run_id) is dg.DagsterRunStatus.CANCELED
        assert daemon.asks_for() == []
        (project.notes / "guide.md").write_text("# New\n\nA text that is worth it again.\n")
        assert daemon.asks_for() == [KEY]

    def test_new_settings_are_a_change(self, project, settings):
        daemon = Daemon(project, build_definitions(project.root))
        daemon.settle()
        (project.notes / "guide.md").write_text("# New\n\nA text that nobody wants to index now.\n")
        recorded_runs.cancel(project.instance, settings, queued(project))
        assert daemon.asks_for() == []

        declare(project, CONFIG + "[chunking]\ncode_chars = 900\n")

        assert daemon.asks_for() == [KEY]

    def test_of_a_followed_repository_the_next_commit_is_asked_for(self, project, git, clock, tmp_path):
        upstream = tmp_path / "elsewhere"
        upstream.mkdir()
        git(upstream, "init", "-q")
        git(upstream, "commit", "-q", "--allow-empty", "-m", "Begin")
        declare(project, f'[[source]]\nkind = "git"\nname = "code"\nurl = "{upstream.as_uri()}"\n')
        daemon = Daemon(project, build_definitions(project.root))
        daemon.settle()
        git(upstream, "commit", "-q", "--allow-empty", "-m", "Not wanted")
        run_id = queued(project, GIT)

        recorded_runs.cancel(project.instance, load_settings(project.root), run_id)

        clock(400)  # late enough for the remote to be queried
        assert daemon.asks_for() == []
        git(upstream, "commit", "-q", "--allow-empty", "-m", "Wanted")
        clock(400)
        assert daemon.asks_for() == [GIT]

    def test_a_run_in_a_process_here_is_interrupted(self, project, settings):
        with subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(60)"], stderr=subprocess.DEVNULL
        ) as process:
            run_id = recorded(project, STARTED)
            project.instance.add_run_tags(run_id, tags_of(process.pid, run_id))

            recorded_runs.cancel(project.instance, settings, run_id)

            process.wait(30)
        assert status_of(project, run_id) is dg.DagsterRunStatus.CANCELING

    def test_a_run_elsewhere_is_left_alone(self, project, settings):
        run_id = recorded(project, STARTED)
        project.instance.add_run_tags(run_id, {**process_tags(run_id), ".dagster/docindex/host": "another"})

        with pytest.raises(JobError, match="cannot reach the process of run"):
            recorded_runs.cancel(project.instance, settings, run_id)

        assert status_of(project, run_id) is STARTED

    def test_a_run_that_ended_or_is_not_there(self, project, settings):
        with pytest.raises(EndedJobError, match="has already ended: success"):
            recorded_runs.cancel(project.instance, settings, quick_run(project.instance))
        with pytest.raises(UnknownJobError, match="run not found: 'none'"):
            recorded_runs.cancel(project.instance, settings, "none")


def tags_of(pid: int, run_id: str) -> dict[str, str]:
    """Return the tags of a run in another process."""
    from docindex_dagster.defs import dead_runs

    own = process_tags(run_id)
    return own | {dead_runs._PID: str(pid), dead_runs._STARTED: dead_runs._started(pid) or ""}
