"""Answers report which sources changed since they were indexed, and nothing else."""

import json
import os
import shutil
import warnings
from pathlib import Path

import pytest

from docindex_dagster import DocindexWarning, open_index
from tests.cli.conftest import index_in
from tests.conftest import Git, git_alone

QUERY = "prime the pump"


def write(path: str, text: str = "def fresh():\n    return 'new'\n") -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def patiently(seconds: int = 30) -> None:
    """Extend the time limit of the change check for a busy machine."""
    with Path("docindex.toml").open("a") as file:
        file.write(f"\n[search]\nlook_s = {seconds}\n")


@pytest.fixture(scope="module", params=["library", "git"])
def indexed_manual(request, tmp_path_factory) -> Path:
    """A folder with the indexed manual, as a library or as a git repository."""

    def write_more(folder: Path) -> None:
        write(f"{folder}/manual/.gitignore", "*.tmp.py\nbuilt/\n")
        write(f"{folder}/manual/deep/er/tank.py", "TANK = 'tank'\n")
        if request.param == "git":
            commit_all(git, folder / "manual")

    with pytest.MonkeyPatch.context() as patch:
        git = git_alone(patch)
        return index_in(tmp_path_factory.mktemp("indexed"), write=write_more)


def commit_all(git: Git, folder: Path) -> None:
    for arguments in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "Add the manual")):
        git(folder, *arguments)


@pytest.fixture
def searched(run, git, indexed_manual, tmp_path):
    """Search a library or a git repository and return the warnings."""
    shutil.copytree(indexed_manual, tmp_path, dirs_exist_ok=True)
    patiently()

    def search(*arguments: str) -> str:
        error: str = run("search", QUERY, *arguments).err
        return error

    return search


@pytest.mark.parametrize("arguments", [[], ["--mode", "literal"], ["--context", "300"], ["--json"]])
def test_an_answer_names_what_was_edited_added_and_removed(searched, arguments):
    assert searched(*arguments).count("warning") == 0

    write("manual/pump.py", "PUMP = 'another'\n")
    write("manual/valve.py")
    write("manual/quite/new/hose.py")
    Path("manual/deep/er/tank.py").unlink()

    warned = " ".join(searched(*arguments).split())
    assert warned.count("warning") == 1
    assert "/manual has changed since it was indexed" in warned
    assert "changed: pump.py;" in warned
    assert "new: quite/new/hose.py, valve.py;" in warned or "new: valve.py, quite/new/hose.py;" in warned
    assert "gone: deep/er/tank.py)" in warned
    assert "docindex index" in warned


def test_an_index_that_is_brought_up_to_date_has_nothing_to_say(searched, run):
    write("manual/valve.py")
    run("index")

    assert searched() == ""


def test_a_folder_that_is_replaced_by_an_empty_one_has_lost_its_files(searched):
    shutil.rmtree("manual/deep")

    assert "gone: deep/er/tank.py" in searched()


@pytest.mark.parametrize(
    "harmless",
    [
        lambda: os.utime("manual/pump.py", (0, 0)),
        lambda: write("manual/scratch.tmp.py"),
        lambda: write("manual/built/generated.py"),
        lambda: write("manual/node_modules/left-pad/index.js"),
        lambda: write("manual/picture.png", "\0"),
        lambda: Path("manual/empty").mkdir(),
        lambda: Path("manual/link.py").symlink_to("pump.py"),
        lambda: os.mkfifo("manual/queue.py"),
    ],
    ids=["touched", "ignored", "ignored folder", "noise", "binary", "empty folder", "link", "FIFO"],
)
def test_what_indexing_would_not_change_is_not_mentioned(searched, harmless):
    harmless()

    assert searched() == ""


def test_many_edits_are_counted(searched):
    for number in range(40):
        write(f"manual/part{number}.py")

    assert "and 37 more" in " ".join(searched().split())


def test_only_sources_that_are_searched_are_looked_at(run_indexed):
    write("other/bridge.md", "# Bridge\n\nA bridge over the well.\n")
    run_indexed("index", "other")
    patiently()
    write("other/road.md", "# Road\n")

    assert "other has changed" in run_indexed("search", QUERY).err
    assert run_indexed("search", QUERY, "--source", "manual").err == ""


def test_of_many_sources_the_first_are_named_and_the_others_counted(run):
    for number in range(5):
        write(f"many/part{number}/page.md", f"# Page {number}\n\nHow the pump of page {number} is primed.\n")
    declared = (f'[[source]]\nkind = "library"\npath = "many/part{number}"\n' for number in range(5))
    write("docindex.toml", "\n".join(declared))
    assert run("index").code == 0
    patiently()
    for number in range(5):
        write(f"many/part{number}/more.md", "# More\n")

    warned = run("search", QUERY).err
    assert warned.count("has changed since it was indexed") == 3
    assert "2 more sources have changed" in warned


def test_a_source_that_is_gone_or_not_declared_any_more_is_searched_without_a_word(run_indexed):
    Path("manual").rename("away")
    assert run_indexed("search", QUERY).err == ""

    Path("docindex.toml").write_text("")
    assert run_indexed("search", QUERY).err == ""


def test_show_marks_what_was_changed(run_indexed):
    assert "changed on disk" not in run_indexed("show", "pump.py").out
    write("manual/pump.py", "PUMP = 'another'\n")

    assert "changed since it was indexed" in " ".join(run_indexed("show", "pump.py").out.split())
    assert "changed on disk" not in run_indexed("show", "guide.md").out
    assert {row["is_changed"] for row in json.loads(run_indexed("show", "pump.py", "--json").out)} == {True}


def test_a_project_may_have_no_time_for_it(run_indexed):
    write("docindex.toml", Path("docindex.toml").read_text() + "\n[search]\nlook_s = 0\n")
    write("manual/valve.py")

    assert run_indexed("search", QUERY).err == ""


def test_where_git_has_no_time_to_list_new_files_the_changed_ones_are_named(run, git, tmp_path, monkeypatch):
    commit_all(git, Path("manual"))
    assert run("index", "manual").code == 0
    patiently(3)
    write("manual/pump.py", "PUMP = 'another'\n")
    write("manual/valve.py")
    slow = tmp_path / "slow" / "git"
    write(str(slow), f'#!/bin/sh\ncase "$*" in *ls-files*) exec sleep 60;; esac\nexec {shutil.which("git")} "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(slow.parent), prepend=os.pathsep)

    warned = " ".join(run("search", QUERY).err.split())

    assert "manual has changed since it was indexed (changed: pump.py)." in warned


def test_a_program_is_warned(run_indexed):
    patiently()
    index = open_index()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index.search(QUERY)
    write("manual/valve.py")

    for ask in (index.search, index.matches, index.context):
        with pytest.warns(DocindexWarning, match=r"new: valve\.py"):
            ask(QUERY)
