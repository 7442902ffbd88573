"""Run journal: what processes write and other processes read, even after a kill."""

import os
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

from docindex_dagster.core import locks
from docindex_dagster.core.errors import LinkError
from docindex_dagster.core.layout import Layout
from docindex_dagster.pipeline.stage import CheckResult, Outcome, Report
from docindex_dagster.runner import journal
from docindex_dagster.runner.entries import Entry, Launcher, ProductEntry, Run, StageEntry, State

TABLE = pa.table({"path": ["a.md", "ü\udcff".encode("utf-8", "replace").decode()], "count": [1, None]})
PRODUCT = ProductEntry("v1", {"files": 2, "share": 0.5, "model": "tiny"}, 2, TABLE.schema, TABLE, {"kinds": TABLE})
STAGE = StageEntry(
    "chunks",
    1.25,
    {"chunks": PRODUCT, "empty": ProductEntry("v2", {})},
    {"few_fallbacks": CheckResult(False, "too many", {"files": TABLE})},
    ("a warning",),
    {"bytes": 12, "table_rewritten": True},
)
KILLED = """
import sys
from pathlib import Path
from docindex_dagster.core.layout import Layout
from docindex_dagster.runner import journal
from docindex_dagster.runner.entries import Run
with journal.writing(Layout(Path(sys.argv[1])), Run("killed", "library/a", "command line", 1.0)):
    print("begun", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def layout(tmp_path) -> Layout:
    layout = Layout(tmp_path / "home")
    layout.prepare()
    return layout


def run_of(source: str = "library/a", launched_by: Launcher = "command line", **values) -> Run:
    return Run(str(uuid4()), source, launched_by, time.time(), **values)


def entries_of(layout: Layout) -> list[Entry]:
    return [entry for _, entry in journal.runs(layout)]


def ended(layout: Layout, source: str = "library/a", state: State = State.SUCCEEDED) -> str:
    started = run_of(source)
    with journal.writing(layout, started) as writer:
        writer.end(state)
    return started.run_id


def test_an_entry_keeps_only_the_rows_that_dagster_shows():
    rows = pa.table({"path": [f"{number}.md" for number in range(30)]})
    checks = {"few_fallbacks": CheckResult(False, "too many", {"files": rows})}
    entry = StageEntry.of("chunks", Outcome(None, {"chunks": Report("v1", {}, rows, rows)}, checks))
    assert entry.products["chunks"].row_count == 30
    assert entry.products["chunks"].sample.equals(rows.slice(0, 5))
    assert entry.checks["few_fallbacks"].details["files"].equals(rows.slice(0, 20))


def test_a_run_is_read_as_it_was_written(layout):
    started = run_of(mode="full", only=("a.md", "b.md"))
    with journal.writing(layout, started) as writer:
        writer.stage(STAGE)
        writer.stage(StageEntry("embeddings", broken={"vectors": "one is missing"}))
        writer.stage(StageEntry("stores", failure="the disk is full"))
        (running,) = entries_of(layout)
        assert (running.state, running.end) == (State.RUNNING, None)
        writer.end(State.FAILED, ("stores: the disk is full",))

    ((path, entry),) = journal.runs(layout)
    assert entry.run == started
    done = journal.stages(path)
    assert done["chunks"] == STAGE
    assert [stage.has_ended_well for stage in done.values()] == [True, False, False]
    assert (entry.state, entry.end.failures) == (State.FAILED, ("stores: the disk is full",))
    assert entry.pid == os.getpid()


def test_runs_are_read_oldest_first(layout):
    ids = [ended(layout) for _ in range(5)]
    assert [entry.run.run_id for entry in entries_of(layout)] == ids


def test_a_run_whose_process_was_killed_is_lost(layout):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(layout.home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "begun\n"
    assert entries_of(layout)[0].state is State.RUNNING

    process.kill()
    process.communicate()

    (entry,) = entries_of(layout)
    assert (entry.state, entry.pid) == (State.LOST, process.pid)
    assert entry.end.failures[0].startswith("its process died; the existing index stays searchable")


@pytest.mark.parametrize("state", [State.FAILED, State.SUCCEEDED])
def test_a_run_that_is_cancelled_was_canceled_unless_it_succeeds(layout, state):
    started = run_of()
    with journal.writing(layout, started) as writer:
        ((path, _),) = journal.runs(layout)
        journal.cancel(path)
        assert entries_of(layout)[0].state is State.CANCELLING
        writer.end(state)

    assert entries_of(layout)[0].state is (State.CANCELED if state is State.FAILED else state)


def test_a_line_that_was_cut_off_counts_for_nothing(layout):
    started = run_of()
    with journal.writing(layout, started) as writer:
        (path, _) = next(journal.runs(layout))
        with path.open("ab") as file:
            file.write(b'{"name": "stage", "data": {"sta')
        writer.stage(STAGE)
        writer.end(State.SUCCEEDED)

    ((path, entry),) = journal.runs(layout)
    assert (list(journal.stages(path)), entry.state) == (["chunks"], State.SUCCEEDED)


def test_what_is_no_run_is_left_alone(layout):
    ended(layout)
    (layout.journal / "notes.txt").write_text("mine")
    (layout.journal / "0-damaged.jsonl").write_bytes(b"\xff\n[]\n{}\n")

    assert len(entries_of(layout)) == 1
    journal.prune(layout)
    assert (layout.journal / "notes.txt").exists()


def test_the_newest_run_of_each_source_outlives_too_many(layout, monkeypatch):
    monkeypatch.setattr(journal, "_MAX_RUNS", 2)
    first = ended(layout, "library/rare")
    others = [ended(layout) for _ in range(4)]
    (layout.journal / "0-killed.new").touch()

    journal.prune(layout)

    assert [entry.run.run_id for entry in entries_of(layout)] == [first, *others[-2:]]
    assert not list(layout.journal.glob("*.new"))


def test_rows_of_a_source_can_be_taken_out(layout):
    with journal.writing(layout, run_of()) as writer:
        writer.stage(STAGE)
        writer.end(State.SUCCEEDED)

    journal.drop_samples(layout)

    ((path, _),) = journal.runs(layout)
    product = journal.stages(path)["chunks"].products["chunks"]
    assert (product.sample, product.numbers) == (None, PRODUCT.numbers)


def test_the_runs_of_a_source_can_be_forgotten(layout):
    ended(layout)
    kept = ended(layout, "library/b")

    journal.forget(layout, "library/a")

    assert [entry.run.run_id for entry in entries_of(layout)] == [kept]


def test_a_journal_that_is_a_link_is_refused(layout, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    layout.journal.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LinkError):
        list(journal.runs(layout))


class TestQueued:
    """Requested runs that no process has begun."""

    @pytest.fixture
    def path(self, layout) -> Path:
        journal.add_queued(layout, run_of(launched_by="serve", kind="index", key="once"))
        ((path, entry),) = journal.runs(layout)
        assert (entry.state, entry.started_at, entry.run.key) == (State.QUEUED, None, "once")
        return path

    def test_a_process_that_begins_between_two_looks_is_not_lost(self, path, monkeypatch):
        holder, looks = locks.holder, iter([None])
        with journal.starting(path) as (descriptor, _):
            journal.inherited_writer(os.dup(descriptor)).begin(has_stages=True)
            monkeypatch.setattr(locks, "holder", lambda file: next(looks, holder(file)))

            assert journal.read(path).state is State.RUNNING

    def test_a_process_that_is_started_takes_the_run_over(self, layout, path):
        with journal.starting(path) as (descriptor, note):
            note(17)
            starting = journal.read(path)
            assert (starting.state, starting.has_begun, starting.pid) == (State.RUNNING, False, 17)
            writer = journal.inherited_writer(descriptor)
            writer.begin(has_stages=True)
            writer.stage(STAGE)
            writer.end(State.SUCCEEDED)
            assert journal.read(path).state is State.RUNNING  # its process is still running

        entry = journal.read(path)
        assert (entry.state, entry.has_begun, entry.pid) == (State.SUCCEEDED, True, os.getpid())
        assert journal.outcomes(layout, None)["library/a"].outcome == "succeeded"

    def test_one_whose_process_never_begins_is_queued_again_but_not_for_ever(self, path):
        for state in (State.QUEUED, State.QUEUED, State.FAILED):
            with journal.starting(path):
                journal.log_of(path).write_text("working\nno such module\n")
            assert journal.read(path).state is state
        assert journal.read(path).end.failures == ("its process died 3 times before the run started: no such module",)

    def test_one_that_is_cancelled_has_ended(self, layout, path):
        journal.cancel(path)

        entry = journal.read(path)
        assert (entry.state, entry.end.failures) == (State.CANCELED, ())
        assert journal.outcomes(layout, None) is None  # its source was not checked

    def test_a_lost_one_is_settled_with_its_end(self, layout, path):
        with journal.starting(path) as (descriptor, _):
            journal.log_of(path).write_text("out of memory\n")
            writer = journal.inherited_writer(descriptor)
            writer.begin(has_stages=True)
            writer.stage(STAGE)
        before = journal.read(path)
        assert before is not None
        assert before.state is State.LOST
        assert "its process died: out of memory" in before.end.failures[0]

        journal.settle(path, before)

        assert list(journal.runs(layout)) == []
        (settled,) = journal.files(layout)
        assert journal.stages(settled) == {}
        assert journal.read(settled) == before
