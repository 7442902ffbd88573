"""Tests that agent files are replaced atomically, keep their permissions, and never resolve outside the project."""

import os
import stat
from threading import Timer

import pytest

from docindex_dagster.cli.agents import files
from docindex_dagster.cli.agents.files import Plan
from docindex_dagster.core.errors import AgentError


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def write(folder, path, text):
    plan = Plan(folder)
    plan.edit(path, lambda _: text)
    plan.apply()


def test_a_file_keeps_its_permissions(folder):
    file = folder / "a.json"
    file.write_text("{}")
    file.chmod(0o640)

    write(folder, file, "{ }")

    assert file.read_text() == "{ }"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [path.name for path in folder.iterdir()] == ["a.json"]


def test_a_link_within_the_project_stays_and_leads_to_the_new_text(folder):
    (folder / "AGENTS.md").write_text("ours\n")
    (folder / "CLAUDE.md").symlink_to("AGENTS.md")
    plan = Plan(folder)
    plan.edit(folder / "CLAUDE.md", lambda _: "new\n")

    assert plan.read(folder / "AGENTS.md") == "new\n"  # the same file under another name
    plan.apply()
    assert (folder / "CLAUDE.md").is_symlink()
    assert (folder / "AGENTS.md").read_text() == "new\n"


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_link_out_of_the_project_is_refused(folder, tmp_path, is_folder):
    secret = tmp_path / "home" / "mcp.json"
    secret.parent.mkdir()
    secret.write_text("{}")
    place = folder / ".cursor"
    if is_folder:
        place.symlink_to(secret.parent)
    else:
        place.mkdir()
        (place / "mcp.json").symlink_to(secret)

    with pytest.raises(AgentError, match="leaves the project"):
        Plan(folder).read(place / "mcp.json")


def test_a_link_of_the_users_own_leads_wherever_it_does(folder, tmp_path):
    dotfiles, config = tmp_path / "dotfiles.toml", tmp_path / "config.toml"
    config.symlink_to(dotfiles)

    write(folder, config, "a = 1\n")

    assert config.is_symlink()
    assert dotfiles.read_text() == "a = 1\n"


def test_what_is_no_readable_text_is_refused(folder):
    (folder / "bytes").write_bytes(b"\xff\xfe")
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")

    for name, problem in (
        ("bytes", "not UTF-8 text"),
        ("folder", "cannot read"),
        ("pipe", "not a regular file"),
        ("loop", "link|read"),
    ):
        with pytest.raises(AgentError, match=problem):
            Plan(folder).read(folder / name)


@pytest.mark.parametrize("before", [None, "", "{}"])
def test_a_file_that_was_changed_meanwhile_is_edited_anew(folder, before):
    file = folder / "a.json"
    if before is not None:
        file.write_text(before)
    plan = Plan(folder)
    plan.edit(file, lambda text: f"{text}, edited")
    file.write_text('{"new": 1}')

    plan.apply()
    assert file.read_text() == '{"new": 1}, edited'
    assert plan.read(file) == '{"new": 1}, edited'


@pytest.mark.parametrize("expected", [None, b"read"])
@pytest.mark.parametrize("data", [None, b"new"])
def test_a_file_that_another_program_wrote_since_it_was_read_is_left_as_it_is(folder, expected, data):
    file = folder / "a.json"
    file.write_bytes(b"of another program")

    assert not files._swap(file, expected, data)
    assert file.read_bytes() == b"of another program"
    assert [path.name for path in folder.iterdir()] == ["a.json"]


def test_a_file_that_is_gone_is_not_made_again(folder):
    assert not files._swap(folder / "a.json", b"read", b"new")
    assert not (folder / "a.json").exists()


def test_a_file_that_was_just_emptied_is_read_once_it_is_written(folder):
    file = folder / "a.json"
    file.write_text("")
    writer = Timer(0.3, file.write_text, ["{}"])
    writer.start()

    assert Plan(folder).read(file) == "{}"
    writer.join()


def test_a_file_that_was_removed_meanwhile_is_made_anew(folder):
    file = folder / "a.json"
    file.write_text("{}")
    plan = Plan(folder)
    plan.edit(file, lambda text: f"{text}, edited")
    file.unlink()

    plan.apply()
    assert file.read_text() == "None, edited"


def test_a_file_that_no_longer_can_be_edited_is_left_as_it_is(folder, monkeypatch):
    def edit(text):
        if text != "{}":
            raise AgentError("broken")
        return "edited"

    monkeypatch.setattr(files, "_PATIENCE_S", 0.1)
    first, second, written = folder / "a.json", folder / "b.json", []
    plan = Plan(folder)
    for file in (first, second):
        file.write_text("{}")
        plan.edit(file, edit)
    second.write_text("{")

    with pytest.raises(AgentError, match="broken"):
        plan.apply(lambda change: written.append(change.path))
    assert written == [first]
    assert second.read_text() == "{"


def test_a_file_that_never_rests_is_given_up(folder, monkeypatch):
    monkeypatch.setattr(files, "_PATIENCE_S", 0.1)
    monkeypatch.setattr(files, "_swap", lambda *_: False)

    with pytest.raises(AgentError, match=r"a\.json keeps changing"):
        write(folder, folder / "a.json", "{ }")


def test_folders_that_are_empty_then_go_with_a_file_and_no_others(folder):
    file = folder / ".cursor" / "rules" / "docindex.mdc"
    write(folder, file, "a\n")
    (folder / ".cursor" / "mcp.json").write_text("{}")

    write(folder, file, None)

    assert [path.name for path in (folder / ".cursor").iterdir()] == ["mcp.json"]
