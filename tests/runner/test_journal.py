"""The journal of runs: what processes write, and what others read of it, also after a kill."""

import os
import subprocess
import sys
import time
from uuid import uuid4

import pyarrow as pa
import pytest

from docindex_dagster.core.errors import LinkError
from docindex_dagster.core.layout import Layout
from docindex_dagster.pipeline.stage import CheckResult
from docindex_dagster.runner import journal
from docindex_dagster.runner.entries import Begin, Entry, ProductEntry, StageEntry, State

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
import os, signal, sys
from pathlib import Path
from docindex_dagster.core.layout import Layout
from docindex_dagster.runner import journal
from docindex_dagster.runner.entries import Begin
with journal.writing(Layout(Path(sys.argv[1])), Begin("killed", "library/a", "command line", 1.0, os.getpid())):
    print("begun", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def layout(tmp_path) -> Layout:
    layout = Layout(tmp_path / "home")
    layout.prepare()
    return layout


def begin(source: str = "library/a", **values) -> Begin:
    return Begin(values.pop("run_id", str(uuid4())), source, "command line", time.time(), os.getpid(), **values)


def entries_of(layout: Layout) -> list[Entry]:
    return [entry for _, entry in journal.runs(layout)]


def ended(layout: Layout, source: str = "library/a", state: State = State.SUCCEEDED) -> str:
    started = begin(source)
    with journal.writing(layout, started) as writer:
        writer.end(state)
    return started.run_id


def test_a_run_is_read_as_it_was_written(layout):
    started = begin(mode="full", only=("a.md", "b.md"))
    with journal.writing(layout, started) as writer:
        writer.stage(STAGE)
        writer.stage(StageEntry("embeddings", broken={"vectors": "one is missing"}))
        writer.stage(StageEntry("stores", failure="the disk is full"))
        (running,) = entries_of(layout)
        assert (running.state, running.end) == (State.RUNNING, None)
        writer.end(State.FAILED, ("stores: the disk is full",))

    ((path, entry),) = journal.runs(layout)
    assert entry.begin == started
    done = journal.stages(path)
    assert done["chunks"] == STAGE
    assert [stage.has_ended_well for stage in done.values()] == [True, False, False]
    assert (entry.state, entry.end.failures) == (State.FAILED, ("stores: the disk is full",))
    assert journal.find(layout, started.run_id) == entry
    assert journal.find(layout, "another") is None


def test_runs_are_read_oldest_first(layout):
    ids = [ended(layout) for _ in range(5)]
    assert [entry.begin.run_id for entry in entries_of(layout)] == ids


def test_a_run_whose_process_was_killed_is_lost(layout):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(layout.home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "begun\n"
    assert entries_of(layout)[0].state is State.RUNNING

    process.kill()
    process.communicate()

    (entry,) = entries_of(layout)
    assert (entry.state, entry.end.failures) == (State.LOST, (f"process {process.pid} of this run is gone",))


@pytest.mark.parametrize("state", [State.FAILED, State.SUCCEEDED])
def test_a_run_that_is_cancelled_was_canceled_unless_it_succeeds(layout, state):
    started = begin()
    with journal.writing(layout, started) as writer:
        journal.mark_cancelling(layout, started.run_id)
        writer.end(state)

    assert entries_of(layout)[0].state is (State.CANCELED if state is State.FAILED else state)


def test_a_line_that_was_cut_off_counts_for_nothing(layout):
    started = begin()
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
    monkeypatch.setattr(journal, "_MOST_KEPT", 2)
    first = ended(layout, "library/rare")
    others = [ended(layout) for _ in range(4)]
    (layout.journal / "0-killed.new").touch()

    journal.prune(layout)

    assert [entry.begin.run_id for entry in entries_of(layout)] == [first, *others[-2:]]
    assert not list(layout.journal.glob("*.new"))


def test_rows_of_a_source_can_be_taken_out(layout):
    with journal.writing(layout, begin()) as writer:
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

    assert [entry.begin.run_id for entry in entries_of(layout)] == [kept]


def test_a_journal_that_is_a_link_is_refused(layout, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    layout.journal.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LinkError):
        list(journal.runs(layout))
