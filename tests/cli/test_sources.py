"""`docindex source`: declaring, selecting and removing sources."""

import json
from pathlib import Path

import pytest

from docindex_dagster.core import confinement
from tests.traces import hiding_places, traces


def test_sources_are_added_listed_chosen_and_removed_with_comments_kept(run):
    Path("docindex.toml").write_text("# ours\n")
    assert run("source", "add", "manual", "--name", "pumps").code == 0
    run("index")
    assert run("source", "use", "pumps").code == 0

    listed = json.loads(run("source", "list", "--json").out)
    assert [(row["source"], row["default"]) for row in listed] == [("library/pumps", True)]
    assert json.loads(run("status", "--json").out)[0]["state"] == "ok"

    assert run("source", "remove", "pumps").code == 0
    assert json.loads(run("status", "--json").out) == []
    assert "# ours" in Path("docindex.toml").read_text()
    assert run("search", "pump").out == "nothing found\n"


@pytest.mark.parametrize(("place", "removed"), [("other", "other"), ("{library}", "{library}")])
def test_a_source_is_removed_with_every_trace_of_its_texts(run, place, removed):
    Path("other").mkdir()
    Path("other/page.md").write_text("# Winter\n\nTurn the valve xkqzvwjhpfmbtrgd to the left before the winter.\n")
    run("source", "add", "manual", "--name", "pumps")
    run("source", "add", place)
    run("index")
    assert traces(Path(".docindex"), "xkqzvwjhpfmbtrgd") != set()

    output = run("source", "remove", removed, "--erase")

    assert output.code == 0
    assert "erased all texts that are no longer indexed" in output.err
    assert "can still restore it" not in output.err
    assert traces(Path(".docindex"), "xkqzvwjhpfmbtrgd") == set()
    assert hiding_places(Path(".docindex")) == []
    assert run("search", "pump").out.count("pump.py")


def test_each_child_of_a_folder_becomes_a_library(run):
    for name in ("one", "two"):
        (Path("raw/docs") / name).mkdir(parents=True)
        (Path("raw/docs") / name / "page.md").write_text(f"# {name}\n\nWords about {name} that stand here.\n")

    assert run("source", "add", "raw/docs/{library}").code == 0
    assert run("index").code == 0

    assert [row["source"] for row in json.loads(run("status", "--json").out)] == ["library/one", "library/two"]
    only_two = json.loads(run("search", "words about", "--source", "two", "--json").out)
    assert {hit["source"] for hit in only_two} == {"library/two"}


def test_a_source_that_is_no_longer_declared_can_still_be_searched_and_removed_by_its_name(run_indexed):
    Path("docindex.toml").write_text("")

    assert "pump.py" in run_indexed("search", "pump", "--source", "manual").out
    assert run_indexed("source", "remove", "manual").code == 0
    assert json.loads(run_indexed("status", "--json").out) == []


def test_a_place_is_declared_once_and_a_branch_has_no_settings_of_its_own(run, upstream):
    url = upstream.as_uri()
    run("index", url)

    assert "git/upstream is already declared" in run("source", "add", url).err
    assert "--exclude not allowed" in run("source", "add", url, "--branch", "feature/x", "--exclude", "*.md").err
    assert run("source", "add", url, "--branch", "feature/x").code == 0
    assert "feature/x of this repository is already declared" in run("source", "add", url, "--branch", "feature/x").err


def test_a_url_that_never_could_be_reached_is_not_left_declared(run_indexed):
    declared = Path("docindex.toml").read_text()

    output = run_indexed("index", "file:///nonexistent/nosuch")

    assert output.code == 1
    assert "removed git/nosuch from docindex.toml again" in output.err
    assert Path("docindex.toml").read_text() == declared
    assert run_indexed("index").code == 0
    assert [row["source"] for row in json.loads(run_indexed("status", "--json").out)] == ["library/manual"]


def test_a_url_that_a_user_declared_stays_declared_though_it_cannot_be_reached(run):
    run("source", "add", "file:///nonexistent/nosuch")

    assert run("index", "file:///nonexistent/nosuch").code == 1

    assert "git/nosuch" in run("source", "list").out


def test_a_declared_folder_of_folders_is_indexed_and_removed_by_its_path(run):
    for name in ("one", "two"):
        (Path("raw") / name).mkdir(parents=True)
        (Path("raw") / name / "page.md").write_text(f"# {name}\n\nWords about {name} that stand here.\n")
    run("source", "add", "raw/{library}")

    for place in ("raw", "raw/{library}"):
        indexed = json.loads(run("index", place, "--json").out)
        assert [summary["source"] for summary in indexed] == ["library/one", "library/two"]
    assert "is already declared" in run("source", "add", "raw/{library}").err
    assert "`docindex source remove 'raw/{library}'`" in run("source", "remove", "one").err

    assert run("source", "remove", "raw/{library}").out == "removed raw/{library}: library/one, library/two\n"

    assert json.loads(run("status", "--json").out) == []
    assert json.loads(run("source", "list", "--json").out) == []


def test_sources_are_edited_while_a_repository_is_followed_in_a_home_with_a_secret_name(run, upstream, monkeypatch):
    monkeypatch.delenv("DOCINDEX_TRUST")
    assert run("index", upstream.as_uri()).code == 0
    confinement._checked.clear()  # as in a new process

    assert run("source", "add", "manual").code == 0
    assert run("source", "use", "library/manual").code == 0
    assert run("source", "remove", "library/manual").code == 0
