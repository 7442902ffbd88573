"""`docindex status`: its report on sources and runs, and its behavior without any."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from docindex_dagster.core import events
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive
from tests.conftest import PAGE_WITHOUT_TEXT

_CLI = (sys.executable, "-m", "docindex_dagster.cli")


def test_status_tells_which_run_failed_why_and_when_a_source_was_checked(run_indexed):
    (before,) = json.loads(run_indexed("status", "--json").out)
    Path("manual").rename("moved")
    reason = run_indexed("index").err.splitlines()[-1].removeprefix("error: library/manual: ").strip()

    (row,) = json.loads(run_indexed("status", "--json").out)
    shown = run_indexed("status")

    assert (before["last_run"], before["failure"]) == ("succeeded", None)
    assert (row["last_run"], row["failure"]) == ("failed", reason)
    assert row["checked_at"] == before["checked_at"] >= row["changed_at"]
    assert shown.code == 0
    assert f"library/manual: the last run failed: {reason}" in shown.out.splitlines()


def test_status_tells_what_has_changed_since_it_was_indexed(run_indexed):
    assert json.loads(run_indexed("status", "--json", "--check").out)[0]["is_current"] is True
    Path("manual/guide.md").write_text("# Guide\n\nA new text of another size.\n")

    assert json.loads(run_indexed("status", "--json", "--check").out)[0]["is_current"] is False
    assert "ok, changed since" in run_indexed("status").out


def test_files_that_are_cut_as_text_are_reported_by_every_command(run):
    Path("manual/page.html").write_text(PAGE_WITHOUT_TEXT)

    indexed = run("index", "manual")
    (row,) = json.loads(run("status", "--json").out)
    examined = json.loads(run("doctor", "--json").out)

    assert (indexed.code, "3 files, 3 chunks (3 added), 0 skipped, 1 chunked as plain text" in indexed.out) == (0, True)
    reported = "1 of 3 files is cut as text"
    assert f"warning: library/manual: {reported}: page.html (html loader found no text)" in indexed.err.splitlines()
    assert (row["state"], row["fallbacks"], row["lacks_of_graph"]) == ("degraded", 1, False)
    assert f"library/manual: degraded: {reported}: " in run("status").out
    assert examined["left"] == []
    files = {"page.html": "html loader found no text"}
    assert examined["notes"] == [{"source": "library/manual", "text": reported, "files": files}]
    doctor = run("doctor")
    assert (doctor.code, doctor.out.splitlines()) == (
        0,
        [
            "the index is consistent: all stores agree",
            f"note: library/manual: {reported}",
            "  page.html: html loader found no text",
        ],
    )


def test_status_says_what_it_had_no_time_to_look_at(run_indexed, monkeypatch):
    monkeypatch.setattr("docindex_dagster.operations.status.LOOK_S", 0)

    assert json.loads(run_indexed("status", "--json").out)[0]["is_current"] is None
    assert "1 source not checked for changes" in run_indexed("status").out
    assert "not checked for changes" not in run_indexed("status", "--check").out


def test_status_creates_nothing_where_nothing_was_run(run, tmp_path):
    run("source", "add", "manual")
    before = sorted(tmp_path.rglob("*"))

    (row,) = json.loads(run("status", "--json").out)

    assert (row["state"], row["last_run"], row["checked_at"]) == ("not indexed", None, None)
    assert sorted(tmp_path.rglob("*")) == before


def test_status_shows_the_index_even_if_the_record_of_runs_cannot_be_opened(run_indexed):
    run_indexed("index", "--run")
    Path("dagster.yaml").write_text("storage: [")

    shown = run_indexed("status")

    assert (shown.code, "library/manual  ok" in shown.out) == (0, True)
    assert "cannot read the outcomes of runs" in shown.err


def test_status_says_which_run_is_at_work_and_on_what(run_indexed):
    Path("manual/new.md").write_text("# New\n\nA page about marmots and their burrows.\n")
    seen: list[str] = []

    def look(event: events.Event) -> None:
        if isinstance(event, events.Progress) and event.stage == "knowledge_graph" and not seen:
            seen.extend(subprocess.check_output([*_CLI, "status", *options], text=True) for options in ([], ["--json"]))

    with events.listening(look):
        indexed = run_indexed("index", "--json")

    (run,) = json.loads(indexed.out)
    work = json.loads(seen[1])[0]["work"]
    assert work["owner"] == f"run {run['run_id']} of process {os.getpid()}"
    assert work["pid"] == os.getpid()
    stage = work["step"]["stage"]
    assert stage in {"knowledge_graph", "stores"}  # these stages run in parallel
    since = work["since"][:19].replace("T", " ")
    assert f"library/manual: {work['owner']}, running since {since} (UTC): " in seen[0]
    assert json.loads(run_indexed("status", "--json").out)[0]["work"] is None


def test_a_process_that_was_killed_is_not_at_work(run_indexed):
    Path("manual/new.md").write_text("# New\n\nA page about marmots and their burrows.\n")
    layout = Layout(Path(".docindex").absolute())
    with exclusive(layout.publication_lock, "docindex prune", on_wait=pytest.fail):
        process = subprocess.Popen([*_CLI, "index"], stderr=subprocess.PIPE, text=True)
        while "waiting for another publication" not in process.stderr.readline():
            assert process.poll() is None
        alive = json.loads(run_indexed("status", "--json").out)[0]["work"]
        shown = run_indexed("status").out
        process.kill()
        process.wait()
        process.stderr.close()
        dead = json.loads(run_indexed("status", "--json").out)[0]["work"]

    assert alive["pid"] == process.pid
    assert alive["step"]["stage"] in {"knowledge_graph", "stores"}  # these stages run in parallel
    assert "stores: docindex prune, running since " in shown
    assert dead is None
    assert "running since" not in run_indexed("status").out
