"""`docindex status`: what it tells of sources and runs, and what it does without."""

import json
from pathlib import Path


def test_status_tells_which_run_failed_why_and_when_a_source_was_checked(run_indexed):
    (before,) = json.loads(run_indexed("status", "--json").out)
    Path("manual").rename("moved")
    reason = run_indexed("index").err.removeprefix("error: library/manual: ").strip()

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
    assert "indexed, changed since" in run_indexed("status").out


def test_status_says_what_it_had_no_time_to_look_at(run_indexed, monkeypatch):
    monkeypatch.setattr("docindex_dagster.cli.status._BUDGET_S", -1)

    assert json.loads(run_indexed("status", "--json").out)[0]["is_current"] is None
    assert "1 source not looked at for changes" in run_indexed("status").out
    assert "not looked at" not in run_indexed("status", "--check").out


def test_status_creates_nothing_where_nothing_was_run(run, tmp_path):
    run("source", "add", "manual")
    before = sorted(tmp_path.rglob("*"))

    (row,) = json.loads(run("status", "--json").out)

    assert (row["state"], row["last_run"], row["checked_at"]) == ("not indexed", None, None)
    assert sorted(tmp_path.rglob("*")) == before


def test_status_shows_the_index_even_if_the_record_of_runs_cannot_be_opened(run_indexed):
    Path("dagster.yaml").write_text("storage: [")

    shown = run_indexed("status")

    assert (shown.code, "library/manual  indexed" in shown.out) == (0, True)
    assert "how runs ended is not known" in shown.err
