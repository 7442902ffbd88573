"""`docindex index` of an ambiguous folder: prompts on a terminal, otherwise reports or refuses."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest


def sources(run) -> list[str]:
    return [row["source"] for row in json.loads(run("source", "list", "--json").out)]


@pytest.mark.parametrize("around", ["manual", "manual/.."])
def test_the_home_folder_and_those_around_it_are_refused_unless_they_are_meant(run, tmp_path, monkeypatch, around):
    monkeypatch.setenv("HOME", str(tmp_path / "manual"))

    refused = run("index", around)

    assert refused.code == 1
    assert "your home folder" in refused.err
    assert "--yes" in refused.err
    assert sources(run) == []
    if around == "manual":
        assert run("index", around, "--yes").code == 0
        assert sources(run) == ["library/manual"]


def test_the_root_is_refused(run):
    assert "contains your home folder" in run("index", "/").err


@pytest.mark.parametrize("given", ["outer", "link/below"])
def test_what_overlaps_a_source_is_indexed_with_a_warning(run, tmp_path, given):
    (tmp_path / "outer").mkdir()
    (tmp_path / "manual").rename(tmp_path / "outer/manual")
    (tmp_path / "outer/manual/below").mkdir()
    (tmp_path / "outer/manual/below/page.md").write_text("# Below\n\nA page that lies below the others.\n")
    (tmp_path / "link").symlink_to("outer/manual")
    run("index", "outer/manual")

    indexed = run("index", given)

    assert indexed.code == 0
    assert f"overlaps library/manual ({tmp_path / 'outer/manual'})" in indexed.err
    assert "indexed twice" in indexed.err
    assert len(sources(run)) == 2


def test_a_link_to_a_source_is_reported_to_overlap_it_and_needs_a_name_of_its_own(run, tmp_path):
    (tmp_path / "link").symlink_to("manual")
    run("index", "manual")

    refused = run("index", "link")

    assert refused.code == 1
    assert "overlaps library/manual" in refused.err
    assert "another name" in refused.err


def test_folders_beside_each_other_are_indexed_without_a_word(run, tmp_path):
    (tmp_path / "manual2").mkdir()
    (tmp_path / "manual2/page.md").write_text("# Beside\n\nA page that lies beside the others.\n")
    run("index", "manual")

    assert "warning" not in run("index", "manual2").err


@pytest.mark.parametrize("file", [None, "picture.png", "server.log", ".env"])
def test_a_folder_with_nothing_to_index_says_what_would_count(run, file):
    Path("empty").mkdir()
    if file:
        Path("empty", file).write_bytes(b"\x89PNG\0\0")

    indexed = run("index", "empty")

    assert indexed.code == 0
    assert "library/empty: 0 files" in indexed.out
    assert "nothing in" in indexed.err
    assert "documents, code, configuration" in indexed.err


def asked(answer: str, *arguments: str) -> tuple[int, str]:
    """Run a command on a terminal, type the answer, and return the exit code and output."""
    terminal, theirs = pty.openpty()
    command = [sys.executable, "-m", "docindex_dagster.cli", *arguments]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as process:
        os.close(theirs)
        os.write(terminal, answer.encode())
        shown = b""
        while True:
            try:
                shown += os.read(terminal, 1000)
            except OSError:  # the other end is closed
                break
    os.close(terminal)
    return process.returncode, " ".join(shown.decode().split())


@pytest.mark.parametrize(("answer", "code", "declared"), [("n\n", 1, []), ("y\n", 0, ["library/empty"])])
def test_on_a_terminal_the_user_decides(run, answer, code, declared):
    Path("empty").mkdir()

    ended, shown = asked(answer, "index", "empty")

    assert "Index it anyway? [y/N]" in shown
    assert (ended, sources(run)) == (code, declared)


def test_on_a_terminal_yes_asks_nothing(run):
    Path("empty").mkdir()

    ended, shown = asked("", "index", "empty", "--yes")

    assert ended == 0
    assert "[y/N]" not in shown


def test_the_home_folder_is_asked_about_on_a_terminal(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "manual"))

    ended, shown = asked("n\n", "index", "manual")

    assert "all of it would be indexed" in shown
    assert (ended, sources(run)) == (1, [])
