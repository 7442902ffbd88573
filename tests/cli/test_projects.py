"""Which project a command works on: by option, variable, `docindex.toml`, or the list of those that index something."""

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from docindex_dagster.sources import projects

PAGE = "# Marmots\n\nThe marmot whistles when it sees an eagle.\n"


@pytest.fixture
def team(run, tmp_path, monkeypatch) -> Path:
    """A project `team` that indexes the folder `notes`, which lies elsewhere; the working directory is `notes/deep`."""
    return make(run, tmp_path, monkeypatch, "team")


def make(run, tmp_path, monkeypatch, name: str) -> Path:
    (tmp_path / name).mkdir()
    (tmp_path / "notes/deep").mkdir(parents=True, exist_ok=True)
    (tmp_path / "notes/page.md").write_text(PAGE)
    monkeypatch.chdir(tmp_path / name)
    assert run("--project", ".", "index", "../notes").code == 0
    monkeypatch.chdir(tmp_path / "notes/deep")
    root: Path = tmp_path / name
    return root


def test_in_an_indexed_folder_commands_find_the_project_and_say_which(run, team, tmp_path):
    found = run("search", "marmot whistles")

    assert found.code == 0
    assert "page.md" in found.out
    assert found.err.splitlines() == [f"project {team}, which indexes {tmp_path / 'notes'}"]
    assert json.loads(run("status", "--json").out)[0]["source"] == "library/notes"


def test_indexing_in_an_indexed_folder_updates_that_project_and_begins_no_other(run, team, tmp_path):
    Path("new.md").write_text("# Eagles\n\nAn eagle circles above the ridge.\n")

    assert run("index", ".").code == 0

    assert "new.md" in run("search", "eagle circles ridge").out
    assert not (tmp_path / "notes/deep/docindex.toml").exists()


def test_a_link_to_an_indexed_folder_leads_to_the_project(run, team, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(tmp_path / "notes")
    monkeypatch.chdir(tmp_path / "link")

    assert "page.md" in run("search", "marmot").out


def test_a_docindex_toml_of_its_own_comes_before_the_list(run, team):
    Path("docindex.toml").touch()

    assert "nothing is indexed" in run("search", "marmot").err


def test_a_checkout_finds_the_project_that_follows_its_remote(run, team, upstream, monkeypatch, git):
    monkeypatch.chdir(team)
    assert run("index", upstream.as_uri()).code == 0
    git(team.parent, "clone", "-q", upstream.as_uri(), "checkout")
    monkeypatch.chdir(team.parent / "checkout")

    found = run("search", "prime_pump")

    assert "pump.py" in found.out
    assert found.err.splitlines() == [f"project {team}, which follows {upstream}"]
    assert run("index", ".").code == 0  # a work tree is indexed on its own
    assert Path("docindex.toml").exists()


@pytest.mark.parametrize("given", ["team", "{root}", "{root}/below", "../../team"])
def test_a_project_is_named_by_its_name_or_path(run, team, tmp_path, monkeypatch, given):
    (team / "below").mkdir()
    chosen = given.format(root=team)
    monkeypatch.chdir(tmp_path / "notes/deep" if given.startswith("..") else tmp_path)

    for found in (
        run("search", "marmot", "--project", chosen),
        run(f"--project={chosen}", "search", "marmot"),
    ):
        assert "page.md" in found.out
        assert found.err == ""
    monkeypatch.setenv("DOCINDEX_PROJECT", chosen)
    assert "page.md" in run("search", "marmot").out


def test_the_order_of_precedence(run, team, tmp_path, monkeypatch):
    for name in ("by_root", "by_variable"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "docindex.toml").touch()

    monkeypatch.setenv("DOCINDEX_PROJECT", str(tmp_path / "by_variable"))
    assert f"{tmp_path / 'by_variable'}" in run("search", "marmot").err
    monkeypatch.setenv("DOCINDEX_ROOT", str(tmp_path / "by_root"))
    assert f"{tmp_path / 'by_root'}" in run("search", "marmot").err
    assert "page.md" in run("search", "marmot", "--project", "team").out


def test_behind_two_dashes_project_is_a_word_of_the_query(run, team):
    assert run("search", "--", "marmot", "--project", "nosuch").code == 0


def test_where_there_is_no_project_the_error_says_where_it_was_looked_for(run, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    refused = run("search", "marmot")

    assert refused.code == 1
    looked = " ".join(refused.err.split())
    places = ("DOCINDEX_ROOT", "DOCINDEX_PROJECT", "docindex.toml", str(tmp_path / "config/docindex/projects.json"))
    positions = [looked.index(place) for place in places]
    assert positions == sorted(positions)
    assert "`docindex index PATH`" in looked


def test_a_name_that_no_project_has_lists_those_there_are(run, team):
    refused = run("search", "marmot", "--project", "nosuch")

    assert refused.code == 1
    assert "known projects: team" in refused.err


def test_several_projects_with_one_folder_or_name_ask_to_choose(run, team, tmp_path, monkeypatch):
    other = make(run, tmp_path, monkeypatch, "other")

    refused = run("search", "marmot")

    assert refused.code == 1
    assert f"{other} or {team}" in refused.err
    assert "--project" in refused.err
    assert "page.md" in run("search", "marmot", "--project", "other").out


def test_a_source_that_was_taken_out_leads_nowhere_any_more(run, team):
    assert run("source", "remove", "notes", "--project", "team").code == 0

    assert "there is no project" in run("search", "marmot").err


def test_projects_that_are_gone_count_for_nothing(run, team):
    (team / "docindex.toml").rename(team / "moved.toml")

    assert "there is no project" in run("search", "marmot").err


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b'{"projects": 3}', b'{"projects": [3, {"root": 1}, {"root": "/x"}]}', b"\xff", b"[" * 100_000],
)
def test_a_damaged_list_counts_for_nothing_and_is_mended_by_the_next_run(run, team, monkeypatch, damage):
    projects.list_file().write_bytes(damage)
    assert "there is no project" in run("search", "marmot").err

    assert run("index", "--project", str(team)).code == 0

    assert "page.md" in run("search", "marmot").out


def test_damaged_entries_leave_the_others(run, team):
    entries = json.loads(projects.list_file().read_text())["projects"]
    projects.list_file().write_text(json.dumps({"projects": [{"root": "x"}, None, *entries]}))

    assert "page.md" in run("search", "marmot").out


def test_the_list_is_for_its_user_alone(team):
    assert stat.S_IMODE(projects.list_file().stat().st_mode) == 0o600
    assert stat.S_IMODE(projects.list_file().parent.stat().st_mode) == 0o700


def test_a_list_that_cannot_be_written_is_a_warning(run, team, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    (tmp_path / "file").touch()

    indexed = run("index", "--project", str(team))

    assert indexed.code == 0
    assert "cannot be listed" in indexed.err


def test_projects_that_are_listed_at_the_same_time_are_all_there(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    script = (
        "import sys; from pathlib import Path; from docindex_dagster.sources import projects;"
        "from docindex_dagster.core.settings import load_settings; projects.register(load_settings(Path(sys.argv[1])))"
    )
    for number in range(6):
        (tmp_path / f"p{number}").mkdir()
        (tmp_path / f"p{number}/docindex.toml").touch()
    started = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path / f"p{number}")]) for number in range(6)]

    assert [process.wait() for process in started] == [0] * 6
    assert {project.name for project in projects.known()} == {f"p{number}" for number in range(6)}


def test_projects_are_listed_and_forgotten_until_they_index_again(run, team, tmp_path):
    (listed,) = json.loads(run("project", "list", "--json").out)
    assert (listed["name"], listed["root"], listed["indexes"]) == ("team", str(team), [str(tmp_path / "notes")])

    assert run("project", "forget", "team").code == 0
    assert "there is no project" in run("search", "marmot").err

    run("index", "--project", str(team))
    assert "team" in run("project", "list").out
