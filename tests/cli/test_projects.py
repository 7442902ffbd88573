"""Project selection: by option, variable, `docindex.toml`, or the list of projects that index a path."""

import json
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from docindex_dagster.sources import projects
from tests.cli.conftest import enter, exit_code

PAGE = "# Marmots\n\nThe marmot whistles when it sees an eagle.\n"


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory) -> tuple[Path, Path]:
    """A folder where `team` was created, and a copy; the user's project list contains the folder's path."""
    place = tmp_path_factory.mktemp("place")
    with pytest.MonkeyPatch.context() as patch:
        use_folders_of_the_user(place, patch)
        make(place, patch, "team")
    return place, shutil.copytree(place, tmp_path_factory.mktemp("copy"), dirs_exist_ok=True)


@pytest.fixture
def team(run, indexed_once, monkeypatch) -> Path:
    """A project `team` that indexes the folder `notes` outside it; the working directory is `notes/deep`."""
    place: Path = indexed_once[0]
    shutil.rmtree(place)
    shutil.copytree(indexed_once[1], place)
    use_folders_of_the_user(place, monkeypatch)
    monkeypatch.chdir(place / "notes/deep")
    return place / "team"


def use_folders_of_the_user(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(place / "user" / name))


def make(place: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> Path:
    """Create a project next to the folder `notes` and index the folder."""
    (place / "notes/deep").mkdir(parents=True, exist_ok=True)
    (place / "notes/page.md").write_text(PAGE)
    root = place / name
    root.mkdir()
    enter(root, monkeypatch)
    monkeypatch.setattr(sys, "argv", ["docindex", "--project", ".", "index", "../notes"])
    assert exit_code() == 0
    monkeypatch.chdir(place / "notes/deep")
    return root


def test_in_an_indexed_folder_commands_find_the_project_and_say_which(run, team):
    found = run("search", "marmot whistles")

    assert found.code == 0
    assert "page.md" in found.out
    assert found.err.splitlines() == [f"project {team}, which indexes {team.parent / 'notes'}"]
    assert json.loads(run("status", "--json").out)[0]["source"] == "library/notes"


def test_indexing_in_an_indexed_folder_updates_that_project_and_begins_no_other(run, team):
    Path("new.md").write_text("# Eagles\n\nAn eagle circles above the ridge.\n")

    assert run("index", ".").code == 0

    assert "new.md" in run("search", "eagle circles ridge").out
    assert not (team.parent / "notes/deep/docindex.toml").exists()


def test_a_link_to_an_indexed_folder_leads_to_the_project(run, team, monkeypatch):
    (team.parent / "link").symlink_to(team.parent / "notes")
    monkeypatch.chdir(team.parent / "link")

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
    assert run("index", ".").code == 0  # the checkout gets its own project
    assert Path("docindex.toml").exists()


@pytest.mark.parametrize("given", ["team", "{root}", "{root}/below", "../../team"])
def test_a_project_is_named_by_its_name_or_path(run, team, monkeypatch, given):
    (team / "below").mkdir()
    chosen = given.format(root=team)
    monkeypatch.chdir(team.parent / "notes/deep" if given.startswith("..") else team.parent)

    for found in (
        run("--project", chosen, "search", "marmot"),
        run(f"--project={chosen}", "search", "marmot"),
    ):
        assert "page.md" in found.out
        assert found.err == ""
    monkeypatch.setenv("DOCINDEX_PROJECT", chosen)
    assert "page.md" in run("search", "marmot").out


def test_the_order_of_precedence(run, team, monkeypatch):
    for name in ("by_root", "by_variable"):
        (team.parent / name).mkdir()
        (team.parent / name / "docindex.toml").touch()

    monkeypatch.setenv("DOCINDEX_PROJECT", str(team.parent / "by_variable"))
    assert f"{team.parent / 'by_variable'}" in run("search", "marmot").err
    monkeypatch.setenv("DOCINDEX_ROOT", str(team.parent / "by_root"))
    assert f"{team.parent / 'by_root'}" in run("search", "marmot").err
    assert "page.md" in run("--project", "team", "search", "marmot").out


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
    assert "`docindex init`" in looked


def test_a_name_that_no_project_has_lists_those_there_are(run, team):
    refused = run("--project", "nosuch", "search", "marmot")

    assert refused.code == 1
    assert "known projects: team" in refused.err


def test_several_projects_with_one_folder_or_name_ask_to_choose(run, team, monkeypatch):
    other = make(team.parent, monkeypatch, "other")

    refused = run("search", "marmot")

    assert refused.code == 1
    assert f"{other} or {team}" in refused.err
    assert "--project" in refused.err
    assert "page.md" in run("--project", "other", "search", "marmot").out


def test_a_source_that_was_taken_out_leads_nowhere_any_more(run, team):
    assert run("--project", "team", "source", "remove", "notes").code == 0

    assert "no project found" in run("search", "marmot").err


def test_projects_that_are_gone_count_for_nothing(run, team):
    (team / "docindex.toml").rename(team / "moved.toml")

    assert "no project found" in run("search", "marmot").err


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b'{"projects": 3}', b'{"projects": [3, {"root": 1}, {"root": "/x"}]}', b"\xff", b"[" * 100_000],
)
def test_a_damaged_list_counts_for_nothing_and_is_mended_by_the_next_run(run, team, monkeypatch, damage):
    projects.list_file().write_bytes(damage)
    assert "no project found" in run("search", "marmot").err

    assert run("--project", str(team), "index").code == 0

    assert "page.md" in run("search", "marmot").out


def test_damaged_entries_leave_the_others(run, team):
    entries = json.loads(projects.list_file().read_text())["projects"]
    projects.list_file().write_text(json.dumps({"projects": [{"root": "x"}, None, *entries]}))

    assert "page.md" in run("search", "marmot").out


def test_the_list_is_for_its_user_alone(team):
    assert stat.S_IMODE(projects.list_file().stat().st_mode) == 0o600
    assert stat.S_IMODE(projects.list_file().parent.stat().st_mode) == 0o700


def test_a_list_that_cannot_be_written_is_a_warning(run, team, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(team.parent / "file"))
    (team.parent / "file").touch()

    indexed = run("--project", str(team), "index")

    assert indexed.code == 0
    assert "cannot add the project to" in indexed.err


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


def test_projects_are_listed_and_forgotten_until_they_index_again(run, team):
    (listed,) = json.loads(run("project", "list", "--json").out)
    assert (listed["name"], listed["root"], listed["indexes"]) == ("team", str(team), [str(team.parent / "notes")])

    assert run("project", "forget", "team").code == 0
    assert "no project found" in run("search", "marmot").err

    run("--project", str(team), "index")
    assert "team" in run("project", "list").out
