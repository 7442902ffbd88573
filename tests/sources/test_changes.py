"""Incremental discovery equals discovery from scratch, whatever happened in the repository."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

from docindex_dagster.sources import discovery
from docindex_dagster.sources.discovery import discover
from tests.sources.conftest import Tree

STEPS: list[Callable[[Tree], object]] = []
Step = Callable[[Tree], object]


def step(function: Step) -> Step:
    STEPS.append(function)
    return function


@step
def an_edit(tree):
    tree.write("src/a.py", "a = 2000\n")


@step
def a_commit_of_an_edit(tree):
    tree.write("src/a.py", "a = 2000\n")
    tree.commit()


@step
def an_edit_that_is_taken_back(tree):
    tree.git("checkout", "--quiet", "--", "edited.md")


@step
def an_edit_that_is_committed(tree):
    tree.git("commit", "--quiet", "--all", "--message", "more")


@step
def a_deleted_file(tree):
    (tree.root / "src/a.py").unlink()


@step
def a_deleted_file_that_comes_back(tree):
    tree.git("checkout", "--quiet", "--", "deleted.md")


@step
def an_untracked_file_that_goes(tree):
    (tree.root / "untracked.md").unlink()


@step
def an_untracked_file_that_is_added(tree):
    tree.git("add", "untracked.md")


@step
def a_tracked_file_that_is_not_tracked_any_more(tree):
    tree.git("rm", "--quiet", "--cached", "src/a.py")


@step
def a_rename(tree):
    tree.git("mv", "src/a.py", "src/b.py")
    tree.commit()


@step
def a_folder_in_the_place_of_a_file(tree):
    (tree.root / "src/a.py").unlink()
    tree.write("src/a.py/inner.py", "inner = 1\n")


@step
def the_last_file_of_a_folder_that_is_not_entered(tree):
    tree.git("rm", "--quiet", "node_modules/x.js")


@step
def the_first_file_of_a_folder_that_is_not_entered(tree):
    tree.write("build/out.js", "x = 1\n")
    tree.commit()


@step
def the_first_tracked_file_beside_build_output(tree):
    tree.write("env/left.py", "left = 1\n")
    tree.git("add", "env/tool.py")


@step
def the_last_tracked_file_beside_build_output(tree):
    tree.write("target/left.py", "left = 1\n")
    tree.git("rm", "--quiet", "--cached", "target/tool.py")


@step
def a_switch_to_another_branch(tree):
    tree.git("stash", "--quiet")
    tree.git("switch", "--quiet", "other")


@step
def a_reset_to_an_older_commit(tree):
    tree.git("reset", "--quiet", "--hard", "HEAD~1")


@step
def an_amended_commit(tree):
    tree.write("src/a.py", "a = 3000\n")
    tree.git("commit", "--quiet", "--all", "--amend", "--message", "amended")


@step
def a_change_that_was_reverted_by_another_commit(tree):
    tree.write("src/a.py", "a = 4000\n")
    tree.commit()
    tree.git("revert", "--no-edit", "HEAD")


@step
def a_merge_that_keeps_our_side(tree):
    tree.git("stash", "--quiet")
    tree.git("merge", "--quiet", "--strategy=ours", "--no-edit", "other")


@step
def an_unrelated_history(tree):
    tree.git("stash", "--quiet", "--include-untracked")
    tree.git("checkout", "--quiet", "--orphan", "island")
    tree.write("island.md", "# Island\n")
    tree.commit()


@step
def a_commit_that_git_forgot(tree):
    tree.git("stash", "--quiet")
    tree.git("commit", "--quiet", "--amend", "--message", "other words")
    tree.git("stash", "drop", "--quiet")
    tree.git("reflog", "expire", "--expire=now", "--all")
    tree.git("gc", "--quiet", "--prune=now")


@step
def a_sparse_checkout(tree):
    tree.git("sparse-checkout", "set", "src")


@step
def a_changed_file_that_git_was_asked_not_to_compare(tree):
    tree.git("update-index", "--skip-worktree", "src/a.py")
    tree.write("src/a.py", "a = 5000\n")


@step
def a_changed_file_that_git_takes_for_unchanged(tree):
    tree.git("update-index", "--assume-unchanged", "src/a.py")
    tree.write("src/a.py", "a = 6000\n")


@step
def a_new_ignore_file_of_ours_that_git_does_not_list(tree):
    (tree.root / ".git/info/exclude").write_text(".docindexignore\n")
    tree.write("src/.docindexignore", "a.py\n")


@step
def a_link_whose_target_appears(tree):
    tree.write("src/target.py", "target = 1\n")


@step
def a_file_that_cannot_be_read(tree):  # except by root, who sees an ordinary file
    (tree.root / "src/a.py").chmod(0)


@step
def a_file_that_can_be_executed(tree):
    (tree.root / "src/a.py").chmod(0o755)


@step
def a_file_that_git_writes_with_other_line_ends(tree):
    tree.git("config", "core.autocrlf", "true")
    (tree.root / "second.md").unlink()
    tree.git("checkout", "--quiet", "--", "second.md")


@step
def a_submodule_that_is_added(tree):
    tree.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tree.root), "sub")


@step
def an_empty_commit(tree):
    tree.git("commit", "--quiet", "--allow-empty", "--message", "empty")


@step
def a_commit_that_was_replaced_here(tree):
    tree.git("replace", "--graft", "HEAD")


@step
def nothing(tree):
    assert tree.root.exists()


@pytest.fixture
def tree(repository: Tree) -> Tree:
    """A repository with two branches and files in every git state."""
    repository.write("src/a.py", "a = 1\n")
    repository.write("edited.md", "# Edited\n")
    repository.write("deleted.md", "# Deleted\n")
    repository.write("node_modules/x.js", "x = 1\n")
    repository.write("target/tool.py", "tool = 1\n")
    (repository.root / "src/link").symlink_to("target.py")
    repository.commit()
    repository.git("switch", "--quiet", "--create", "other")
    repository.write("src/a.py", "a = 7000\n")
    repository.write("other.md", "# Other\n")
    repository.commit()
    repository.git("switch", "--quiet", "main")
    repository.write("second.md", "# Second\n")
    repository.commit()
    repository.write("edited.md", "# Edited\n\nAnd not committed.\n")
    (repository.root / "deleted.md").unlink()
    repository.write("untracked.md", "# Untracked\n")
    repository.write("env/tool.py", "tool = 2\n")
    return repository


def content(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows without the column that only saves work."""
    rows: list[dict[str, Any]] = table.drop_columns(["mtime_ns"]).to_pylist()
    return rows


@pytest.mark.parametrize("happened", STEPS, ids=lambda function: function.__name__)
def test_an_incremental_discovery_equals_one_from_nothing(tree, happened):
    before = discover(tree.source())
    happened(tree)

    after = discover(tree.source(), before)

    assert content(after) == content(discover(tree.source()))
    assert content(discover(tree.source(), after)) == content(after)


@pytest.mark.parametrize("happened", STEPS, ids=lambda function: function.__name__)
def test_what_happened_can_be_undone(tree, happened):
    branch = tree.git("rev-parse", "HEAD").strip()
    happened(tree)
    before = discover(tree.source())
    for undone in (
        ("update-index", "--no-skip-worktree", "src/a.py"),
        ("update-index", "--no-assume-unchanged", "src/a.py"),
        ("sparse-checkout", "disable"),
        ("reset", "--quiet", "--hard", branch),
    ):
        with suppress(subprocess.CalledProcessError):  # there may be nothing to undo
            tree.git(*undone)

    assert content(discover(tree.source(), before)) == content(discover(tree.source()))


def test_only_what_may_have_changed_is_looked_at(tree, monkeypatch):
    tree.git("reset", "--quiet", "--hard")
    (tree.root / "untracked.md").unlink()
    shutil.rmtree(tree.root / "env")
    time.sleep(0.05)  # the next discovery rereads files written just before this one
    before = discover(tree.source())
    tree.write("src/new.py", "new = 1\n")
    looked_at: list[bytes] = []
    judge = discovery.judge

    def watched(source, entry, memory):
        looked_at.append(entry.path)
        return judge(source, entry, memory)

    monkeypatch.setattr(discovery, "judge", watched)

    discover(tree.source(), before)

    assert sorted(looked_at) == [b"src/link", b"src/new.py"]


@pytest.mark.parametrize(
    "change", [{"exclude": ("a.py",)}, {"include_code": False}, {"max_file_bytes": 8}, {"untracked": False}]
)
def test_an_edit_of_the_settings_counts_at_once(tree, change):
    before = discover(tree.source())

    after = discover(tree.source(**change), before)

    assert content(after) == content(discover(tree.source(**change)))
    assert content(after) != content(before)


def test_files_that_were_named_are_looked_at_alone(tree):
    before = discover(tree.source())
    tree.write("src/a.py", "a = 2000\n")
    tree.write("other.md", "# Another\n")

    after = discover(tree.source(), before, only=["src/a.py"])

    changed = [row for row, old in zip(content(after), content(before), strict=True) if row != old]
    assert [row["path"] for row in changed] == ["src/a.py"]
    assert content(discover(tree.source(), after)) == content(discover(tree.source()))


def test_a_named_file_that_is_gone_leaves_the_table(library):
    library.write_all("a.md", "b.md", "c.md")
    before = discover(library.source())
    for name in ("a.md", "b.md"):
        (library.root / name).unlink()

    after = discover(library.source(), before, only=["a.md"])

    assert after["path"].to_pylist() == ["b.md", "c.md"]
    assert discover(library.source(), after)["path"].to_pylist() == ["c.md"]


def test_a_submodule_that_was_added_and_goes_again_leaves_no_row(tree):
    a_submodule_that_is_added(tree)
    before = discover(tree.source())
    assert "sub/" in before["path"].to_pylist()
    tree.git("rm", "--quiet", "--cached", "sub")
    shutil.rmtree(tree.root / "sub")

    assert content(discover(tree.source(), before)) == content(discover(tree.source()))


def test_a_file_that_was_away_while_it_was_looked_for_is_found_later(tree, monkeypatch):
    tree.git("reset", "--quiet", "--hard")
    stat = os.stat

    def look(path: bytes, **options: Any) -> os.stat_result:
        return stat("/nowhere" if path == b"a.py" else path, **options)

    with monkeypatch.context() as away:
        away.setattr(os, "stat", look)
        before = discover(tree.source())
    assert "src/a.py" not in before["path"].to_pylist()

    assert content(discover(tree.source(), before)) == content(discover(tree.source()))


def test_a_table_of_another_version_is_no_table(tree):
    before = discover(tree.source()).drop_columns(["encoding"])

    assert content(discover(tree.source(), before)) == content(discover(tree.source()))
    assert content(discover(tree.source(), before, only=["src/a.py"])) == content(discover(tree.source()))
