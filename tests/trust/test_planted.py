"""Files that a pull or a patch puts into a home that docindex made: git obeys none of them."""

import os
import shutil
from pathlib import Path

import pytest

from docindex_dagster.core.git_folders import is_tracked
from docindex_dagster.core.layout import Layout


@pytest.fixture
def followed(hostile, git):
    """The checkout, whose user follows a repository in it; its home is trusted, and holds a clone."""
    upstream = hostile.user / "upstream"
    upstream.mkdir()
    (upstream / "pump.md").write_text("# Pumps\n\nHow a pump is primed with water.\n")
    git(upstream, "init", "-q")
    git(upstream, "add", ".")
    git(upstream, "commit", "-qm", "one")
    for name in ("docindex.toml", "dagster.yaml"):
        (hostile.root / name).unlink()
    done = hostile.run("index", upstream.as_uri())
    assert done.returncode == 0, done.stderr
    return hostile


def commit(git, upstream: Path) -> None:
    (upstream / "valve.md").write_text("# Valves\n\nHow a valve is opened.\n")
    git(upstream, "add", ".")
    git(upstream, "commit", "-qm", "two")


def test_settings_of_a_clone_that_a_patch_brings_run_nothing(followed, git):
    own = Layout(followed.root / ".docindex").repository("git/upstream")
    planted = followed.root / ".docindex/repositories/upstream.git"
    if planted != own:
        shutil.copytree(own, planted)
    with (planted / "config").open("a") as config:
        config.write(f'[filter "x"]\n\tsmudge = touch {followed.pwned}; cat\n\trequired\n')
    (planted / "info").mkdir(exist_ok=True)
    (planted / "info/attributes").write_text("* filter=x\n")
    commit(git, followed.user / "upstream")

    done = followed.run("index")

    assert done.returncode == 0, done.stderr
    assert "valve.md" in followed.run("search", "valve").stdout
    followed.check()
    assert followed.run("prune").returncode == 0
    assert not planted.exists()
    assert own.is_dir()


def test_a_new_home_has_its_clones_and_checkouts_where_nobody_can_foresee(followed):
    layout = Layout(followed.root / ".docindex")
    own, checkout = layout.repository("git/upstream"), layout.checkout("git/upstream")

    assert (checkout / ".git").read_text().startswith(f"gitdir: {own.resolve()}/worktrees/")
    assert own.parent.name == checkout.parent.name
    assert len(own.parent.name) == 16
    assert own.parent.name not in (layout.home / "id").read_text()


def test_a_work_tree_around_a_nested_repository_counts(tmp_path, git):
    inner = tmp_path / "outer/inner"
    home = inner / ".docindex"
    home.mkdir(parents=True)
    (home / "id").write_text("1\n")
    git(tmp_path / "outer", "init", "-q")
    git(tmp_path / "outer", "add", "--force", "inner/.docindex/id")
    git(inner, "init", "-q")
    (inner / "a.md").write_text("a\n")
    git(inner, "add", "a.md")

    assert is_tracked(home)
    git(tmp_path / "outer", "rm", "-q", "--cached", "-r", "inner")
    assert not is_tracked(home)


def test_a_submodule_is_not_tracked_by_the_work_tree_around_it(tmp_path, git):
    for name in ("inner", "outer"):
        (tmp_path / name).mkdir()
        git(tmp_path / name, "init", "-q")
    (tmp_path / "inner/a.md").write_text("a\n")
    git(tmp_path / "inner", "add", ".")
    git(tmp_path / "inner", "commit", "-qm", "one")
    git(tmp_path / "outer", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../inner", "sub")

    assert not is_tracked(tmp_path / "outer/sub/.docindex")


@pytest.mark.parametrize("tracks", ["damaged", "nothing"])
def test_a_work_tree_that_git_cannot_read_counts_unless_it_tracks_nothing(tmp_path, git, tracks):
    git(tmp_path, "init", "-q")
    if tracks == "damaged":
        (tmp_path / ".git/index").write_bytes(b"DIRC")

    assert is_tracked(tmp_path / ".docindex") == (tracks == "damaged")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_the_work_tree_of_another_user_is_asked_as_well(tmp_path, git):
    (tmp_path / "a.md").write_text("a\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "a.md")
    os.chown(tmp_path / ".git", 54_321, -1)

    assert not is_tracked(tmp_path / "project/.docindex")
    assert is_tracked(tmp_path / "a.md")


def test_no_project_begins_where_a_link_of_a_checkout_leads(hostile):
    (hostile.root / "docs").symlink_to(hostile.private.parent)

    done = hostile.run("init", str(hostile.root / "docs"), cwd=hostile.user)

    assert done.returncode == 1
    assert not (hostile.private.parent / "docindex.toml").exists()
