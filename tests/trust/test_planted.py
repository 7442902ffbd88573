"""Files that a pull, a patch or an archive plants in `.docindex`: docindex opens none of them."""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from docindex_dagster import open_index
from docindex_dagster.core.git_folders import is_tracked

DECLARED = '[[source]]\nkind = "library"\npath = "."\nname = "own"\n'
LONGER_THAN_A_LINK = 5000
MOST_COPIES = 50  # enough to get the inode of the deleted folder again


@pytest.fixture
def cloned(hostile, git):
    """Clone the attacker's repository and index the checkout as the user."""
    upstream = hostile.user / "upstream"
    (hostile.root / "docindex.toml").write_text(DECLARED)
    (hostile.root / "dagster.yaml").unlink()
    git(hostile.root, "init", "-q", "-b", "main")
    git(hostile.root, "add", ".")
    git(hostile.root, "commit", "-qm", "one")
    git(hostile.user, "clone", "-q", str(hostile.root), "upstream")
    git(hostile.root, "remote", "add", "origin", str(upstream))
    done = hostile.run("index")
    assert done.returncode == 0, done.stderr
    return hostile


def plant(cloned) -> tuple[Path, Path]:
    """Create a home at a predictable path as the attacker. Return it and a file that it tries to delete."""
    upstream = cloned.user / "upstream"
    (upstream / "evil.md").write_text("# Evil\n\nMarmots whistle.\n")
    assert cloned.run("index", cwd=upstream, DOCINDEX_TRUST="1").returncode == 0
    (upstream / "evil.md").unlink()
    home, wanted = upstream / ".docindex", cloned.user / "wanted"
    wanted.touch()
    (home / ".gitignore").unlink()
    managed = next(home.glob("stores/tantivy/*/.managed.json"))
    managed.write_text(f'["{os.path.relpath(wanted, cloned.root / managed.parent.relative_to(upstream))}"]')
    shutil.rmtree(home / "locks")
    return home, wanted


def deliver(how: str, cloned, git) -> None:
    upstream = cloned.user / "upstream"
    if how == "archive":
        with tarfile.open(cloned.user / "new.tar", "w") as archive:
            archive.add(upstream / ".docindex", ".docindex")
        with tarfile.open(cloned.user / "new.tar") as archive:
            archive.extractall(cloned.root, filter="data")
        return
    git(upstream, "add", "--force", ".docindex")
    if how == "patch":
        git(upstream, "diff", "--cached", "--binary", "--output", str(cloned.user / "patch"))
        git(cloned.root, "apply", str(cloned.user / "patch"))
        return
    (upstream / "target").write_text("x" * LONGER_THAN_A_LINK)
    link = git(upstream, "hash-object", "-w", "target").strip()
    git(upstream, "update-index", "--add", "--cacheinfo", f"120000,{link},zz")
    git(upstream, "commit", "-qm", "two")
    with pytest.raises(subprocess.CalledProcessError):
        git(cloned.root, "pull", "-q", "origin", "main")
    assert not is_tracked(cloned.root / ".docindex")


@pytest.mark.parametrize("how", ["failed pull", "patch", "archive"])
def test_a_home_at_a_path_that_can_be_foreseen_is_not_opened(cloned, git, monkeypatch, how):
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, cloned.environment[name])
    monkeypatch.delenv("DOCINDEX_TRUST")
    running = open_index(cloned.root, warn=lambda _: None)
    home, wanted = plant(cloned)
    deliver(how, cloned, git)
    planted = {file: file.read_bytes() for file in home.rglob("*") if file.is_file()}
    (cloned.root / "valve.md").write_text("# Valves\n\nHow a valve is opened.\n")

    for words in (("index",), ("index", "--full"), ("prune",), ("doctor",)):
        done = cloned.run(*words)
        assert done.returncode == 0, done.stderr

    named = open_index(cloned.root, home=cloned.root / ".docindex", warn=lambda _: None)
    assert "evil.md" not in cloned.run("search", "marmots whistle").stdout
    for index in (running, named):
        assert "evil.md" not in str(index.search("marmots whistle"))
        assert "valve.md" in str(index.search("open a valve"))
    assert "valve.md" in cloned.run("search", "open a valve").stdout
    assert wanted.exists()
    assert {cloned.root / ".docindex" / file.relative_to(home): data for file, data in planted.items()} == {
        file: file.read_bytes()
        for file in (cloned.root / ".docindex").rglob("*")
        if file.is_file() and not file.is_relative_to(cloned.home)
    }
    cloned.check()


@pytest.mark.parametrize("where", ["beside the project", "in its place"])
def test_a_home_that_was_given_away_is_not_opened_when_it_comes_back(cloned, where):
    back = cloned.root.with_name("back")
    shutil.copytree(cloned.root, back)
    if where == "in its place":
        cloned.root.rename(cloned.root.with_name("aside"))
        back.rename(cloned.root)
        back = cloned.root

    done = cloned.run("search", "pump", cwd=back)

    assert done.returncode == 1
    assert "nothing is indexed" in done.stderr


def test_a_home_that_was_given_away_is_not_opened_in_a_copy_that_gets_the_inode_of_the_project(cloned, tmp_path):
    """Ext4 usually assigns the inode of a deleted folder to the next new folder."""
    shutil.copytree(cloned.home, given := tmp_path / "given")
    for _ in range(MOST_COPIES):
        name, inode = cloned.home.name, cloned.root.stat().st_ino
        shutil.rmtree(cloned.root)
        cloned.root.mkdir()
        (cloned.root / "docindex.toml").write_text(DECLARED)
        if cloned.root.stat().st_ino == inode:
            break
    else:
        pytest.skip("this file system gives no inode again")
    shutil.copytree(given, cloned.root / ".docindex" / name)

    done = cloned.run("search", "pump")

    assert done.returncode == 1
    assert "nothing is indexed" in done.stderr


def test_settings_of_a_clone_that_a_patch_brings_run_nothing(hostile, git):
    upstream = hostile.user / "upstream"
    upstream.mkdir()
    (upstream / "pump.md").write_text("# Pumps\n\nHow a pump is primed with water.\n")
    git(upstream, "init", "-q")
    git(upstream, "add", ".")
    git(upstream, "commit", "-qm", "one")
    for name in ("docindex.toml", "dagster.yaml"):
        (hostile.root / name).unlink()
    assert hostile.run("index", upstream.as_uri()).returncode == 0
    planted = hostile.root / ".docindex/repositories/upstream.git"
    shutil.copytree(hostile.home / "repositories/upstream.git", planted)
    with (planted / "config").open("a") as config:
        config.write(f'[filter "x"]\n\tsmudge = touch {hostile.pwned}; cat\n\trequired\n')
    (planted / "info").mkdir(exist_ok=True)
    (planted / "info/attributes").write_text("* filter=x\n")
    (upstream / "valve.md").write_text("# Valves\n\nHow a valve is opened.\n")
    git(upstream, "add", ".")
    git(upstream, "commit", "-qm", "two")

    done = hostile.run("index")

    assert done.returncode == 0, done.stderr
    assert "valve.md" in hostile.run("search", "valve").stdout
    hostile.check()


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
