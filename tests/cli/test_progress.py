"""Progress of `docindex index`: the first line, a terminal, a log file, and none for a program."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docindex_dagster.cli import progress
from docindex_dagster.core import events
from tests.terminals import Terminal

_CLI = (sys.executable, "-m", "docindex_dagster.cli")


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (["index"], "docindex: indexing all sources …\n"),
        (["--project", "x", "index", "a", "--full", "b\x1b[2J"], "docindex: indexing a, b␛[2J …\n"),
        (["index", "https://ada:s3cret@example.org/x"], "docindex: indexing a repository …\n"),
        (["index", *"abcde"], "docindex: indexing a, b, c and 2 more …\n"),
        (["index", "--json"], ""),
        (["index", "--help"], ""),
        (["search", "index"], ""),
    ],
)
def test_the_first_line_stands_before_anything_is_imported(arguments, output, tmp_path):
    (tmp_path / "typer.py").write_text("raise SystemExit(9)\n")  # the first package that a command imports

    ended = subprocess.run(
        [*_CLI, *arguments],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (9, output)


def test_a_log_says_now_and_then_how_far_each_stage_is(run, monkeypatch):
    monkeypatch.setattr(progress, "_INTERVAL_S", 0)
    monkeypatch.setattr(events, "_PAUSE_S", 0)

    lines = run("index", "manual").err.splitlines()

    assert lines[0] == "docindex: indexing manual …"
    for stage, unit in (("discovered files", "files"), ("knowledge graph", "files"), ("stores", "chunks")):
        begun = lines.index(f"library/manual: {stage}, 1 of 2 {unit}")
        assert f"library/manual: {stage}: 2 {unit}" in lines[begun:]


def test_a_log_has_a_line_for_each_stage_and_says_which_source_of_how_many(run, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/page.md").write_text("# Page\n\nSome text about valves.\n")

    output = run("index", "manual", "other").err.splitlines()

    assert "library/manual (1 of 2): stores: 2 chunks" in output
    assert "library/other (2 of 2): stores: 1 chunk" in output


def test_with_json_nothing_is_reported_but_the_answer(run):
    indexed = run("index", "manual", "--json")
    again = run("index", "--json")

    assert indexed.err.splitlines() == [f"added library/manual to {Path.cwd() / 'docindex.toml'}"]
    assert (again.code, again.err) == (0, "")


def test_a_terminal_shows_one_live_line_that_goes_in_the_end(run, tmp_path):
    terminal = Terminal(["index", "manual"], tmp_path, columns=60)

    assert terminal.end() == 0
    # The stages shown depend on timing, but the line is always redrawn at the end.
    assert re.search(r"library/manual: [a-z ]+, \d of 2 (files|chunks)", terminal.plain)
    assert "\x1b[2K" in terminal.output  # the line is erased
    shown = [line for line in terminal.output.split("\n") if "\x1b[2K" not in line and line.strip("\r")]
    assert shown[0].startswith("docindex: indexing manual …")
    assert "library/manual: 2 files, 2 chunks (2 added)" in terminal.plain


def test_a_run_goes_on_where_nothing_reads_what_it_says(tmp_path):
    (tmp_path / "manual").mkdir()
    for number in range(20):
        (tmp_path / "manual" / f"page{number}.md").write_text(f"# Page {number}\n\nThe pump moves water.\n")
    command = [*_CLI, "index", "manual"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stderr.readline()
        process.stderr.close()
        output = process.stdout.read()

    assert process.returncode == 0
    assert "20 files" in output
