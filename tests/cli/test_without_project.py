"""`docindex search QUERY PATH…` outside any project: the index is created in the cache and kept up to date."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive
from docindex_dagster.runner import folders
from docindex_dagster.stores.generation import read_generation

COMMAND = [sys.executable, "-m", "docindex_dagster.cli"]


@pytest.fixture
def search(run):
    """Run `docindex search ARGUMENTS` with no project and an empty cache."""
    return lambda *arguments: run("search", *arguments)


def paths(output) -> set[str]:
    assert output.code == 0, output.err
    return {Path(hit["file"]).name for hit in json.loads(output.out)}


def kept() -> folders.FolderIndex:
    (only,) = folders.folder_indexes()
    return only


def test_a_folder_is_searched_without_declaring_and_the_first_time_says_what_is_done(search, tmp_path):
    found = search("prime the pump", "manual")

    assert found.code == 0
    assert "manual/guide.md:" in found.out
    assert found.err.splitlines() == [f"indexing {tmp_path / 'manual'} (2 files); kept in {kept().root}"]
    assert not Path("docindex.toml").exists()
    assert kept().root.is_relative_to(Path(os.environ["XDG_CACHE_HOME"]) / "docindex")


def test_the_index_is_used_again_without_a_word(search):
    search("prime the pump", "./manual")
    before = (kept().root / ".docindex/stores/CURRENT").read_bytes()

    again = search("prime the pump", "./manual/")

    assert (again.code, again.err) == (0, "")
    assert (kept().root / ".docindex/stores/CURRENT").read_bytes() == before


def test_there_is_no_graph_before_a_search_needs_it(search):
    def edges() -> list[int]:
        generation = read_generation(Layout(kept().settings.home))
        return [source.edges for source in generation.sources.values()]

    search("prime the pump", "./manual")
    assert edges() == [0]

    assert search("prime the pump", "./manual", "--mode", "graph").code == 0
    assert all(edges())
    search("prime the pump", "./manual")
    assert all(edges())


def test_what_changed_since_is_found_and_reported(search, tmp_path):
    search("pump", "./manual")
    Path("manual/new.md").write_text("# Marmots\n\nThe marmot whistles when it sees an eagle.\n")
    Path("manual/guide.md").unlink()

    found = search("marmot whistles", "./manual", "--json")

    assert "new.md" in paths(found)
    assert "guide.md" not in paths(search("pump", "./manual", "--json"))
    assert found.err.startswith(f"indexing changes in {tmp_path / 'manual'} (")


def test_a_file_or_folder_in_an_indexed_folder_uses_its_index_and_narrows_to_it(search):
    Path("manual/deep").mkdir()
    Path("manual/deep/page.md").write_text("# Deep\n\nThe pump of the deep well.\n")
    search("pump", "./manual")

    assert paths(search("pump", "./manual/deep", "--json")) == {"page.md"}
    assert paths(search("pump", "manual/pump.py", "--json", "--mode", "vector")) == {"pump.py"}
    assert paths(search("pump", "manual/pump.py", "manual/deep", "--json", "--mode", "bm25")) == {"pump.py", "page.md"}
    assert search("pump", "manual/deep", "--mode", "literal", "--files").out == "manual/deep/page.md\n"
    assert len(folders.folder_indexes()) == 1


def test_several_folders_are_searched_together(search, tmp_path):
    (tmp_path / "other/manual").mkdir(parents=True)
    (tmp_path / "other/manual/page.md").write_text("# Valves\n\nThe pump has a valve.\n")

    found = search("pump", "./manual", "./other/manual", "--json")

    assert paths(found) == {"guide.md", "pump.py", "page.md"}
    assert set(kept().folders) == {tmp_path / "manual", tmp_path / "other/manual"}
    assert paths(search("pump", "./other", "--json")) == {"page.md"}
    assert paths(search("pump", "./manual", "--json")) == {"guide.md", "pump.py"}


def test_a_folder_of_a_project_uses_its_index(search, run, tmp_path, monkeypatch):
    Path("manual/deep").mkdir()
    Path("manual/deep/page.md").write_text("# Deep\n\nThe pump of the deep well.\n")
    run("index", "manual")

    here = search("pump", "./manual/deep", "--json")
    monkeypatch.chdir("/")
    elsewhere = search("pump", str(tmp_path / "manual/deep"), "--json")

    assert paths(here) == paths(elsewhere) == {"page.md"}
    assert (here.err, elsewhere.err) == ("", "")
    assert folders.folder_indexes() == []


def test_a_folder_that_a_known_project_indexes_uses_that_and_says_which(search, run, tmp_path, monkeypatch):
    (tmp_path / "team").mkdir()
    monkeypatch.chdir("team")
    run("index", "../manual")
    monkeypatch.chdir("/")

    found = search("pump", str(tmp_path / "manual/pump.py"), "--json")

    assert paths(found) == {"pump.py"}
    assert found.err.splitlines() == [f"project {tmp_path / 'team'}, which indexes {tmp_path / 'manual'}"]
    assert folders.folder_indexes() == []


def test_a_named_project_has_to_have_the_folder(run, tmp_path):
    (tmp_path / "team").mkdir()
    (tmp_path / "team/docindex.toml").touch()

    assert "some paths are not indexed by" in run("--project", "./team", "search", "pump", "./manual").err


@pytest.mark.parametrize(
    ("arguments", "query"),
    [
        (("prime", "pump", "./manual"), "prime pump"),
        (("prime pump", "manual"), "prime pump"),
        (("prime", "manual"), "prime"),
    ],
)
def test_what_exists_behind_the_query_is_where_to_search(search, arguments, query):
    assert paths(search(*arguments, "--json", "--mode", "bm25")) == {"guide.md", "pump.py"}


def test_words_that_happen_to_name_a_folder_stay_words_of_a_query_of_several(search):
    refused = search("how", "is", "the", "manual", "written")

    assert "no project found" in refused.err
    assert folders.folder_indexes() == []


def test_a_word_that_names_a_folder_alone_is_reported_to_be_one(search):
    assert "searching manual for 'pump'; put a query of several words in quotes" in search("pump", "manual").err
    assert "quote" not in search("prime pump", "manual").err


def test_a_path_that_is_not_there_is_reported(search):
    assert "./nowhere not found" in search("pump", "./nowhere").err


def test_the_index_is_for_its_user_alone(search):
    search("pump", "./manual")

    root = kept().root
    folder_modes = {stat.S_IMODE(folder.stat().st_mode) for folder in (root.parents[1], root.parent, root)}
    assert folder_modes == {0o700}
    assert {stat.S_IMODE(file.stat().st_mode) & 0o077 for file in root.rglob("*")} == {0}


def test_a_home_elsewhere_and_a_default_source_are_for_projects_alone(search, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCINDEX_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DOCINDEX_SEARCH__DEFAULT_SOURCE", "git/other")

    assert paths(search("pump", "./manual", "--json")) == {"guide.md", "pump.py"}
    assert not (tmp_path / "home").exists()


def test_an_index_that_was_not_used_for_long_goes_when_another_is_made(search, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/page.md").write_text("# Valves\n\nThe pump has a valve.\n")
    search("pump", "./manual")
    (tmp_path / "third").mkdir()
    (tmp_path / "third/page.md").write_text("# Third\n\nThe pump has a third valve.\n")
    search("pump", "./third")
    month_ago = time.time() - 31 * 24 * 3600
    for found in folders.folder_indexes():
        if found.folders == (tmp_path / "manual",):
            os.utime(found.root / "used", (month_ago, month_ago))

    search("pump", "./other")

    assert {found.folders[0].name for found in folders.folder_indexes()} == {"third", "other"}


def test_using_an_index_keeps_it(search):
    search("pump", "./manual")
    os.utime(kept().root / "used", (0, 0))

    search("pump", "./manual")

    assert kept().used_at > time.time() - 3600


def test_a_damaged_index_is_made_anew(search):
    search("pump", "./manual")
    for file in (kept().root / ".docindex/stores/tantivy").rglob("*"):
        if file.is_file():
            file.unlink()

    assert paths(search("pump", "./manual", "--json")) == {"guide.md", "pump.py"}


def test_a_folder_with_nothing_to_index_says_so(search):
    Path("empty").mkdir()

    found = search("pump", "./empty")

    assert found.out == "nothing found\n"
    assert "nothing in" in found.err
    assert "documents, code, configuration" in found.err


def test_the_home_folder_is_refused(search, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "manual"))

    assert "is your home folder" in search("pump", "./manual").err
    assert folders.folder_indexes() == []
    assert paths(search("pump", "./manual", "--yes", "--json")) == {"guide.md", "pump.py"}


def test_two_concurrent_searches_both_find(search):
    both = [
        subprocess.Popen([*COMMAND, "search", "pump", "./manual", "--json"], stdout=subprocess.PIPE) for _ in range(2)
    ]
    found = [process.communicate()[0] for process in both]

    assert [process.returncode for process in both] == [0, 0]
    for out in found:
        assert {hit["path"] for hit in json.loads(out)} == {"guide.md", "pump.py"}


def test_ctrl_c_while_indexing_is_a_line_and_the_next_search_finds(search, tmp_path):
    for number in range(400):
        Path(f"manual/page{number}.md").write_text(f"# Page {number}\n\n" + f"The pump {number} moves water. " * 200)
    process = subprocess.Popen(
        [*COMMAND, "search", "pump", "./manual"], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr.readline().startswith("indexing ")
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does

    _, reported = process.communicate(timeout=60)

    assert process.returncode in {
        130,
        -signal.SIGINT,
    }  # a shell reports both as 130; the signal means that Python was already exiting
    assert [line for line in reported.splitlines() if not line.startswith("indexing ")] == [
        f"error: indexing {tmp_path / 'manual'} was interrupted; the next search continues from here"
    ]
    assert search("pump", "./manual").code == 0


def test_what_is_kept_is_listed_and_can_be_removed(search, run, tmp_path):
    search("pump", "./manual")

    (listed,) = json.loads(run("project", "list", "--json").out)
    assert listed["indexes"] == [str(tmp_path / "manual")]
    assert listed["megabytes"] > 0
    assert "manual" in run("project", "list").out

    assert run("project", "forget", "manual").code == 0
    assert folders.folder_indexes() == []
    assert run("project", "forget", "manual").code == 1
    assert "no projects yet" in run("project", "list").out


def test_what_is_being_made_is_not_removed(search, run):
    search("pump", "./manual")
    with exclusive(kept().root.with_name(f"{kept().root.name}.lock"), "another search", on_wait=pytest.fail):
        assert "another process is creating it" in run("project", "forget", "manual").err

    assert len(folders.folder_indexes()) == 1
