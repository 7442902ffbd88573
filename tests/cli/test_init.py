"""`docindex init`: creates a docindex.toml and previews how the files around it would be indexed."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from docindex_dagster.core.settings import CONFIG_NAME, check_settings
from docindex_dagster.sources import registry
from docindex_dagster.sources.initial_config import first_text
from tests.privileges import as_ordinary_user

SECRET = 'aws = "AKIAQ3EGRMZ7VXW5T2PL"\n'


@pytest.fixture(params=["a folder", "a work tree"])
def folder(request, tmp_path):
    if request.param == "a work tree":
        (tmp_path / ".git").mkdir()
    return tmp_path


def test_the_file_says_what_it_declares_and_is_indexed_next(run, tmp_path):
    begun = run("init")

    assert begun.code == 0
    assert f"wrote {tmp_path / CONFIG_NAME}, which declares library/{tmp_path.name}" in begun.out
    assert tomllib.loads(Path(CONFIG_NAME).read_text()) == {"source": [{"kind": "library", "path": "."}]}
    assert "not indexed" in (status := run("status")).out
    assert f"not indexed yet: run `docindex index library/{tmp_path.name}`" in status.out + status.err
    assert run("index").code == 0
    assert "guide.md" in run("search", "prime the pump").out


def test_it_says_what_would_be_indexed_and_which_rules_leave_out_how_many(run, tmp_path):
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "logo.png").write_bytes(b"\x89PNG\0")
    (tmp_path / "id_rsa").write_text("x\n")
    (tmp_path / "config.py").write_text(SECRET * 3 + "x = 1\n" * 30)
    begun = run("init")

    assert "would index 3 files" in begun.out
    assert re.search(r"code +2 +python 2", begun.out)
    assert re.search(r"doc +1 +markdown 1", begun.out)
    assert re.search(r"always-skipped +1 folder +node_modules/", begun.out)
    assert re.search(r"secret +1 file +id_rsa", begun.out)
    assert re.search(r"binary +1 file +logo.png", begun.out)
    assert "as measured on six repositories" in begun.out
    assert "discovered files: 6 files" in begun.err


def test_programs_read_the_same_as_json(run, tmp_path):
    (tmp_path / "logo.png").write_bytes(b"\x89PNG\0")
    found = json.loads(run("init", "--json").out)

    assert found["written"]
    assert found["files"] == 2
    assert {"type": "doc", "language": "markdown", "files": 1} in found["kinds"]
    assert found["left_out"]["binary"] == {"files": 1, "folders": 0, "examples": ["logo.png"]}
    assert found["seconds"]["least"] <= found["seconds"]["most"]


def test_each_line_that_is_a_comment_is_a_setting_alone_and_with_all_others(folder):
    text = first_text(folder)
    settings = [line for line in text.splitlines() if re.match("#[^ ]", line)]
    others = [line for line in text.splitlines() if line.startswith("#") and line not in settings]

    assert len(settings) >= 8
    assert all(line.startswith("# ") for line in others)
    for line in settings:
        used = check_settings(folder, tomllib.loads(text.replace(line, line[1:])))
        assert used != check_settings(folder, tomllib.loads(text)), line
    together = check_settings(folder, tomllib.loads(re.sub("^#(?! )", "", text, flags=re.MULTILINE)))
    assert len(registry.sources(together)) == 1


def test_a_file_that_is_there_stays(run):
    Path(CONFIG_NAME).write_text("# ours\n")
    begun = run("init")

    assert begun.code == 1
    assert "already exists and was not changed" in begun.err
    assert Path(CONFIG_NAME).read_text() == "# ours\n"


def test_a_link_that_leads_nowhere_is_not_written_through(run, tmp_path):
    Path(CONFIG_NAME).symlink_to("elsewhere.toml")

    assert run("init").code == 1
    assert not Path("elsewhere.toml").exists()


def test_in_a_project_only_a_folder_that_is_named_begins_another(run, tmp_path, monkeypatch):
    Path(CONFIG_NAME).write_text("")
    monkeypatch.chdir("manual")

    refused = run("init")
    assert refused.code == 1
    assert "`docindex init .`" in refused.err
    assert run("init", ".").code == 0
    assert Path(CONFIG_NAME).exists()


def test_in_a_folder_of_a_work_tree_the_project_begins_at_its_root(run, git, tmp_path, monkeypatch):
    git(tmp_path, "init", "-q")
    monkeypatch.chdir("manual")
    begun = run("init")

    assert "the root of the git work tree" in begun.err
    assert f"declares git/{tmp_path.name}" in begun.out
    assert (tmp_path / CONFIG_NAME).exists()


@pytest.mark.parametrize("broken", ["a folder", "a file"])
def test_with_a_broken_git_it_says_what_can_be_done_and_that_helps(run, tmp_path, broken):
    if broken == "a folder":
        (tmp_path / ".git").mkdir()
    else:
        (tmp_path / ".git").write_text("gitdir: /nowhere\n")
    refused = run("init")

    assert refused.code == 1
    assert not Path(CONFIG_NAME).exists()
    advice = re.search("`docindex ([^`]+)`", refused.err.replace("\n", " "))
    assert advice is not None
    assert run(*advice[1].split()).code == 0
    assert tomllib.loads(Path(CONFIG_NAME).read_text()) == {"source": [{"kind": "library", "path": "."}]}


@pytest.mark.parametrize("sources", [[], ["manual"], ["manual", "."]])
def test_a_variable_that_sets_other_sources_is_named_and_nothing_is_written(run, monkeypatch, sources):
    monkeypatch.setenv("DOCINDEX_SOURCE", json.dumps([{"kind": "library", "path": path} for path in sources]))
    for arguments in (("init",), ("init", ".", "--dry-run")):
        refused = run(*arguments)
        assert refused.code == 1
        assert "DOCINDEX_SOURCE" in refused.err
        assert "Error" not in refused.err
    assert not Path(CONFIG_NAME).exists()


def test_a_dry_run_shows_the_file_and_writes_nothing(run, tmp_path):
    shown = run("init", "--dry-run")

    assert first_text(tmp_path) in shown.out
    assert "would write" in shown.out
    assert [path.name for path in tmp_path.iterdir()] == ["manual"]


def test_the_home_folder_is_refused_unless_one_means_it(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "manual"))

    assert "contains your home folder" in run("init").err
    assert not Path(CONFIG_NAME).exists()
    assert run("init", "--yes").code == 0


def test_a_folder_with_nothing_to_index_is_begun_with_a_warning(run, tmp_path):
    (tmp_path / "empty").mkdir()
    begun = run("init", "empty")

    assert begun.code == 0
    assert "only docindex.toml would be indexed" in begun.err


def test_a_folder_that_one_may_not_write_is_refused_before_anything_is_read(run, tmp_path):
    (tmp_path / "manual").chmod(0o500)
    with as_ordinary_user():
        begun = run("init", "manual")
        shown = run("init", "manual", "--dry-run")
    (tmp_path / "manual").chmod(0o700)

    assert begun.code == 1
    assert f"{tmp_path / 'manual'} is not writable" in begun.err
    assert shown.code == 0


@pytest.mark.parametrize("place", ["missing", "manual/guide.md"])
def test_what_is_no_folder_is_refused(run, place):
    assert run("init", place).code == 1


def test_a_folder_that_another_project_indexes_is_begun_with_a_warning(run, tmp_path, monkeypatch):
    (tmp_path / "knowledge").mkdir()
    monkeypatch.chdir("knowledge")
    assert run("index", "../manual").code == 0
    monkeypatch.chdir(tmp_path / "manual")

    assert f"project {tmp_path / 'knowledge'} already indexes" in run("init").err


def test_it_begins_at_no_work_tree_that_other_users_may_have_made(run, git, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCINDEX_TRUST", "0")
    git(tmp_path, "init", "-q")
    (own := tmp_path / "own").mkdir()
    tmp_path.chmod(0o1777)
    monkeypatch.chdir(own)

    done = run("init", "--dry-run")

    assert done.code == 1
    assert f"{tmp_path} is world-writable" in " ".join(done.err.split())
    assert "safe.directory" not in done.err
