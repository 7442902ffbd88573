"""`docindex index --wait search`, run in subprocesses."""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run

CLI = [sys.executable, "-P", "-m", "docindex_dagster.cli"]
LONGEST_S = 60
COMMENT = "# which is the next function of those in this file"
MUCH = 60  # files of twenty functions: the graph does not delay the publication


@pytest.fixture
def code(run) -> Path:
    """Create a library large enough to be searchable before its graph is ready."""
    folder = Path("code")
    folder.mkdir()
    for file in range(MUCH):
        calls = ((f"f{file}_{n}", f"f{file}_{n + 1}") for n in range(20))
        functions = "".join(f"def {name}():\n    return {called}()  {COMMENT}\n\n\n" for name, called in calls)
        (folder / f"m{file}.py").write_text(functions)
    Path("docindex.toml").write_text("[chunking]\ncode_chars = 100\n")
    return folder


def index(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*CLI, "index", *arguments], capture_output=True, text=True, timeout=LONGEST_S, check=False, stdin=None
    )


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + LONGEST_S
    while not is_so():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.1)


def has_ended(run: Run) -> bool:
    return json.loads(run("status", "--json").out)[0]["work"] is None


def test_it_returns_when_all_is_searchable_and_the_graph_follows(code, run):
    done = index(str(code), "--wait", "search")

    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1].endswith("; linking its graph")
    assert done.stderr.count("docindex: indexing code …") == 1
    assert "m7.py" in run("search", "f7_3").out
    until(lambda: has_ended(run))
    assert "f7_2" in run("graph", "callers", "f7_3").out


@pytest.mark.slow
def test_it_waits_for_the_last_source(code, run):
    shutil.copytree(code, "more")

    done = index(str(code), "more", "--wait", "search")

    assert done.returncode == 0, done.stderr
    assert "library/more: searchable after" in done.stderr
    until(lambda: has_ended(run))


def test_where_nothing_changed_it_says_so(run_indexed):
    done = index("--wait", "search")

    assert done.returncode == 0, done.stderr
    assert "library/manual: 2 files, 2 chunks (nothing changed)" in done.stdout


def test_a_run_that_fails_gives_its_exit_code(run):
    Path("docindex.toml").write_text('[[source]]\nkind = "library"\nname = "gone"\npath = "gone"\n')

    done = index("--wait", "search")

    assert done.returncode == 1
    assert "gone" in done.stderr


def test_an_interrupt_stops_the_run(code, run):
    process = subprocess.Popen([*CLI, "index", str(code), "--wait", "search"], stderr=subprocess.PIPE, text=True)
    while "chunks" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=LONGEST_S)

    assert process.returncode == 130
    assert "interrupted" in errors
    assert has_ended(run)


def test_json_says_how_runs_end_so_it_waits_for_them(run):
    done = run("index", "manual", "--wait", "search", "--json")

    assert done.code == 2
    assert "--json" in done.err
    assert not Path("docindex.toml").exists()
