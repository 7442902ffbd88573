"""Tests of the job queue: order, capacity, keys and restarts.

Where a job's work is irrelevant, a script replaces docindex.
"""

import os
import time
from pathlib import Path

import pytest

from docindex_dagster.cli.dagster_runs import job_queue
from docindex_dagster.core import errors
from docindex_dagster.core.locks import holder
from docindex_dagster.core.settings import load_settings
from docindex_dagster.runner import journal
from docindex_dagster.runner.entries import State
from docindex_dagster.serving.jobs.model import JobRequest
from tests.defs.conftest import CONFIG, KEY
from tests.serving.jobs.conftest import INDEX, LONGEST_S, ended

SLEEPS = "import time; time.sleep(300)"
# Do what a job's process does: record its start and its outcome.
WORKS = """
import sys
from docindex_dagster.runner import journal
from docindex_dagster.runner.entries import State
writer = journal.inherited_writer(int(sys.argv[2]))
writer.begin(has_stages=False)
writer.add("summary", {"files": 1})
writer.end(State.SUCCEEDED)
"""


@pytest.fixture
def sleeping(opened):
    """Yield jobs of which the first runs until the end of the test, so that the others stay queued."""
    jobs = opened(SLEEPS)
    first = jobs.submit(INDEX)
    yield jobs
    jobs.cancel(first.id)
    assert ended(jobs, first).state is State.CANCELED


def settings_with(root: Path, text: str) -> None:
    (root / "docindex.toml").write_text(CONFIG + text)


class TestOrder:
    def test_one_works_at_a_time_and_the_others_follow_in_their_order(self, opened):
        jobs = opened(WORKS)

        asked = [jobs.submit(JobRequest("index", KEY, mode)) for mode in ("changes", "verify", "full")]

        done = [ended(jobs, job) for job in asked]
        assert [job.state for job in done] == [State.SUCCEEDED] * 3
        assert done[0].ended_at <= done[1].started_at
        assert done[1].ended_at <= done[2].started_at
        assert [job.id for job in jobs.all()] == [job.id for job in reversed(asked)]

    def test_one_that_waits_is_canceled_at_once_and_never_begins(self, sleeping):
        second = sleeping.submit(INDEX)
        assert second.state is State.QUEUED

        canceled = sleeping.cancel(second.id)

        assert (canceled.state, canceled.run_id, canceled.started_at) == (State.CANCELED, None, None)
        assert [(event.number, event.name, event.data["state"]) for event in sleeping.events(second.id)] == [
            (1, "ended", "canceled")
        ]
        with pytest.raises(errors.EndedJobError, match="has ended already: canceled"):
            sleeping.cancel(second.id)

    def test_a_cancelled_job_that_overhears_an_interrupt_is_ended_all_the_same(self, opened, monkeypatch):
        monkeypatch.setattr("docindex_dagster.serving.jobs.job_process.SIGNALS", ((0.0, 2), (0.3, 15), (0.6, 9)))
        jobs = opened("import signal, time\nfor number in (2, 15): signal.signal(number, signal.SIG_IGN)\n" + SLEEPS)
        job = jobs.submit(INDEX)

        jobs.cancel(job.id)

        assert ended(jobs, job).state is State.CANCELED


class TestRoom:
    def test_a_full_queue_says_when_to_try_again(self, sleeping, root, opened):
        for _ in range(50):
            sleeping.submit(INDEX)

        with pytest.raises(errors.FullQueueError, match=r"serve.queue = 50") as refused:
            sleeping.submit(INDEX)

        assert refused.value.retry_after_s >= 1
        waiting = [job for job in sleeping.all() if job.state is State.QUEUED]
        for job in waiting:
            sleeping.cancel(job.id)

    def test_its_size_is_a_setting(self, opened, root):
        settings_with(root, "[serve]\nqueue = 1\n")
        jobs = opened(SLEEPS)
        first = jobs.submit(INDEX)
        started(jobs, first)
        second = jobs.submit(INDEX)

        with pytest.raises(errors.FullQueueError):
            jobs.submit(INDEX)

        for job in (second, first):
            jobs.cancel(job.id)
        ended(jobs, first)


class TestKeys:
    def test_a_key_gives_the_first_job_also_after_a_restart(self, opened):
        jobs = opened(WORKS)
        first = jobs.submit(INDEX, "once")
        ended(jobs, first)

        assert jobs.submit(INDEX, "once").id == first.id
        jobs.close()
        again = opened(WORKS)
        assert again.submit(INDEX, "once").id == first.id
        assert ended(again, again.submit(INDEX)).id != first.id
        assert len(again.all()) == 2

    def test_a_key_belongs_to_one_request(self, opened):
        jobs = opened(WORKS)
        jobs.submit(INDEX, "once")

        with pytest.raises(errors.ReusedKeyError, match="belongs to another request"):
            jobs.submit(JobRequest("index", KEY, "full"), "once")

    def test_a_key_holds_for_a_day(self, opened, layout):
        jobs = opened(WORKS)
        first = jobs.submit(INDEX, "once")
        ended(jobs, first)
        jobs.close()
        path = file_of(layout, first)
        asked_at = journal.read(path).run.asked_at
        path.write_text(path.read_text().replace(str(asked_at), str(asked_at - 25 * 3600)))

        assert opened(WORKS).submit(INDEX, "once").id != first.id


class TestRestart:
    def test_what_waits_goes_on_in_its_order_after_the_one_that_worked(self, opened, layout):
        jobs = opened(SLEEPS)
        asked = [jobs.submit(JobRequest("index", KEY, mode)) for mode in ("full", "verify", "changes")]
        started(jobs, asked[0])
        jobs.close()
        kill_sleeper(layout, asked[0])

        again = opened(WORKS)
        done = [ended(again, job) for job in asked]

        assert [job.state for job in done] == [State.SUCCEEDED] * 3
        assert [job.request for job in done] == [job.request for job in asked]
        assert done[0].ended_at <= done[1].started_at
        assert done[1].ended_at <= done[2].started_at

    def test_one_whose_process_died_before_it_began_waits_again(self, opened, layout):
        jobs = opened(SLEEPS)
        job = jobs.submit(INDEX)
        started(jobs, job)
        jobs.close()
        with file_of(layout, job).open("a") as file:
            file.write('{"name": "beg')  # the process died while recording its start
        kill_sleeper(layout, job)

        again = opened(WORKS)
        done = ended(again, job)

        assert done.state is State.SUCCEEDED
        assert [event.name for event in again.events(job.id)] == ["began", "ended"]

    def test_one_that_never_begins_fails_in_the_end_with_its_last_words(self, opened):
        jobs = opened("import sys; sys.exit('no such module')")

        failed = ended(jobs, jobs.submit(INDEX))

        assert failed.state is State.FAILED
        assert failed.failures == ("its process died 3 times before the run started: no such module",)

    def test_one_that_was_cancelled_as_the_server_died_is_canceled(self, opened, layout):
        jobs = opened(SLEEPS)
        job = jobs.submit(INDEX)
        started(jobs, job)
        jobs.close()
        kill_sleeper(layout, job)
        journal.cancel(file_of(layout, job))

        assert ended(opened(WORKS), job).state is State.CANCELED

    def test_one_that_works_on_is_cancelled_by_the_next_server(self, opened):
        jobs = opened(SLEEPS)
        job = jobs.submit(INDEX)
        started(jobs, job)
        jobs.close()

        again = opened(WORKS)
        again.cancel(job.id)

        assert ended(again, job).state is State.CANCELED

    def test_a_record_that_nobody_understands_is_left_alone(self, opened, layout):
        layout.journal.mkdir(parents=True)
        later = '{"name": "run", "data": {"id": "c", "of": "a later version"}}'
        for name, text in (("a", "{"), ("b", "[]"), ("c", later)):
            (layout.journal / f"1-{name}.jsonl").write_text(text)

        assert opened(WORKS).all() == []
        assert (layout.journal / "1-c.jsonl").exists()

    def test_only_one_server_works_on_a_project(self, opened, root):
        jobs = opened(WORKS)

        with pytest.raises(errors.AccessError, match=f"process {os.getpid()} already serves this project"):
            opened(WORKS)

        jobs.close()
        opened(WORKS)


class TestRequests:
    def test_a_source_has_to_be_declared(self, opened):
        jobs = opened(WORKS)

        for kind in ("index", "remove"):
            with pytest.raises(errors.SourceError, match="library/other is n"):
                jobs.submit(JobRequest(kind, "library/other"))
        assert jobs.all() == []

    def test_a_source_that_is_declared_meanwhile_is_known(self, opened, root):
        jobs = opened(WORKS)
        (root / "other").mkdir()
        settings_with(root, '[[source]]\nkind = "library"\npath = "other"\n')

        assert ended(jobs, jobs.submit(JobRequest("index", "library/other"))).state is State.SUCCEEDED

    @pytest.mark.parametrize(
        "path",
        [
            "../docindex.toml",
            "%2e%2e/docindex.toml",
            "%2E%2E/docindex.toml",
            "/etc/passwd",
            "",
            ".",
            "a//b",
            "\0",
            "\ud800",
            "link.md",
            "gone.md",
            "sub",
        ],
    )
    def test_a_path_stays_within_the_source(self, opened, root, path):
        (root / "notes" / "link.md").symlink_to(root / "docindex.toml")
        (root / "notes" / "sub").mkdir()

        with pytest.raises(errors.SourceError, match="library/notes"):
            opened(WORKS).submit(JobRequest("index", KEY, "changes", (path,)))

    @pytest.mark.parametrize("mode", ["verify", "full"])
    def test_a_mode_for_whole_sources_takes_no_paths(self, opened, mode):
        with pytest.raises(errors.JobError, match="requires an entire source"):
            opened(WORKS).submit(JobRequest("index", KEY, mode, ("guide.md",)))

    def test_there_is_no_job_without_a_record(self, opened):
        jobs = opened(WORKS)

        for ask in (jobs.get, jobs.cancel, jobs.events):
            with pytest.raises(errors.UnknownJobError, match="job 'x' not found"):
                ask("x")

    def test_a_server_that_ends_takes_no_more(self, opened):
        jobs = opened(WORKS)
        jobs.close()

        with pytest.raises(errors.JobsDisabledError, match="starting or stopping"):
            jobs.submit(INDEX)

    def test_the_process_of_a_job_does_not_see_the_settings_of_the_server(self, opened, monkeypatch):
        monkeypatch.setenv("DOCINDEX_SERVE__QUEUE", "7")
        jobs = opened("import os, sys; sys.exit(str(sorted(name for name in os.environ if 'DOCINDEX_' in name)))")

        failed = ended(jobs, jobs.submit(INDEX))

        assert "'DOCINDEX_HOME'" in failed.failures[0]
        assert "SERVE" not in failed.failures[0]

    def test_jobs_can_be_switched_off(self, root):
        with job_queue(load_settings(root), is_on=False) as jobs:
            assert jobs.all() == []
            for ask in (lambda: jobs.submit(INDEX), lambda: jobs.cancel("x")):
                with pytest.raises(errors.JobsDisabledError, match="docindex index"):
                    ask()


class TestRetention:
    def test_old_jobs_go_with_all_that_is_kept_of_them(self, opened, layout):
        jobs = opened(WORKS)
        old, keyed, new = (jobs.submit(INDEX, key) for key in (None, "once", None))
        for job in (old, keyed, new):
            ended(jobs, job)
        jobs.close()
        for job in (old, keyed):
            week_ago = time.time() - 8 * 24 * 3600
            os.utime(file_of(layout, job), (week_ago, week_ago))

        again = opened(WORKS)
        last = ended(again, again.submit(INDEX))

        kept = {keyed.id, new.id, last.id}  # a key keeps its job for longer
        assert {job.id for job in again.all()} == kept
        assert {file.stem.partition("-")[2] for file in layout.journal.iterdir()} == kept

    def test_the_newest_thousand_are_kept(self, opened, layout):
        jobs = opened(WORKS)
        first = ended(jobs, jobs.submit(INDEX))
        jobs.close()
        path = file_of(layout, first)
        text, asked_at = path.read_text(), int(path.stem.partition("-")[0])
        for number in range(2, 1002):
            job = path.with_stem(f"{asked_at + number:020d}-job{number}")
            job.write_text(text.replace(first.id, f"job{number}"))

        again = opened(WORKS)
        last = ended(again, again.submit(INDEX))

        until = time.monotonic() + LONGEST_S
        while len(shown := {job.id for job in again.all()}) > 1000:
            assert time.monotonic() < until
            time.sleep(0.02)
        assert len(shown) == 1000
        assert {last.id, "job1001", "job3"} <= shown
        assert not shown & {first.id, "job2"}


def file_of(layout, job) -> Path:
    """Return the journal file of a job."""
    return next(path for path in journal.files(layout) if path.stem.endswith(job.id))


def started(jobs, job) -> None:
    """Wait until the process of a job runs."""
    while jobs.get(job.id).state is State.QUEUED:
        time.sleep(0.01)


def kill_sleeper(layout, job) -> None:
    """Kill the process of a job and wait until it has ended."""
    path = file_of(layout, job)
    os.kill(journal.read(path).pid, 9)
    while holder(path) is not None:
        time.sleep(0.01)
