import os
import subprocess
from itertools import count

import pyarrow as pa
import pytest

from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.history import last_commits, touched_between
from tests.sources.conftest import LONG_AGO_NS, Tree, rows


def commits(tree: Tree, previous: pa.Table | None = None) -> dict[str, str | None]:
    return {path: row["commit"] for path, row in rows(discover(tree.source(), previous)).items()}


_EDITS = count(1)


def edit(tree: Tree, path: str, text: str) -> str:
    tree.write(path, text, mtime_ns=LONG_AGO_NS + next(_EDITS) * 2_000_000_000)
    return tree.commit(f"edit {path}")


def test_each_file_has_the_newest_commit_that_changed_it(repository):
    a = edit(repository, "a.md", "1\n")
    edit(repository, "b.md", "1\n")
    b = edit(repository, "b.md", "2\n")
    repository.commit("empty")
    head = repository.commit("empty")
    assert last_commits(os.fsencode(repository.root), head, {b"a.md", b"b.md"}) == {b"a.md": a, b"b.md": b}


def test_names_that_look_like_the_log_are_names(repository):
    hash_like = "a" * 40
    first = edit(repository, f"\n{hash_like}", "1\n")
    second = edit(repository, hash_like, "1\n")
    wanted = {hash_like.encode(), b"\n" + hash_like.encode()}
    found = last_commits(os.fsencode(repository.root), second, wanted)
    assert found == {hash_like.encode(): second, b"\n" + hash_like.encode(): first}


def test_a_clean_merge_keeps_the_commits_of_both_sides_and_a_resolved_one_counts(repository):
    base = edit(repository, "base.md", "base\n")
    edit(repository, "both.md", "base\n")
    repository.git("checkout", "--quiet", "-b", "side")
    side = edit(repository, "side.md", "side\n")
    edit(repository, "both.md", "side\n")
    repository.git("checkout", "--quiet", "main")
    main = edit(repository, "main.md", "main\n")
    edit(repository, "both.md", "main\n")
    with pytest.raises(subprocess.CalledProcessError):
        repository.git("merge", "--quiet", "side")
    merge = edit(repository, "both.md", "resolved\n")
    assert commits(repository) == {"base.md": base, "both.md": merge, "main.md": main, "side.md": side}


def test_what_is_new_in_the_log_is_added_to_what_is_known(repository):
    edit(repository, "a.md", "1\n")
    edit(repository, "b.md", "1\n")
    before = discover(repository.source())
    edit(repository, "a.md", "2\n")
    edit(repository, "c.md", "1\n")
    assert commits(repository, before) == commits(repository)


def test_a_rewritten_history_is_read_anew(repository):
    edit(repository, "a.md", "1\n")
    edit(repository, "b.md", "1\n")
    before = discover(repository.source())
    repository.git("commit", "--quiet", "--amend", "--message", "reworded")
    after = commits(repository, before)
    assert after == commits(repository)
    assert after["b.md"] == repository.git("rev-parse", "HEAD")


def test_a_merge_of_older_commits_gives_what_a_full_reading_gives(repository):
    edit(repository, "a.md", "1\n")
    repository.git("checkout", "--quiet", "-b", "side")
    edit(repository, "a.md", "2\n")
    edit(repository, "side.md", "1\n")
    repository.git("checkout", "--quiet", "main")
    edit(repository, "main.md", "1\n")
    before = discover(repository.source())
    repository.git("merge", "--quiet", "--no-edit", "side")
    assert commits(repository, before) == commits(repository)


def test_what_changed_since_a_commit_that_is_gone_is_not_known(repository):
    head = edit(repository, "a.md", "1\n")
    root = os.fsencode(repository.root)
    assert touched_between(root, "0" * 40, head) is None
    assert touched_between(root, head, head) == set()


def test_a_shallow_clone_has_the_commits_that_it_has(repository, tmp_path):
    edit(repository, "a.md", "1\n")
    head = edit(repository, "b.md", "1\n")
    clone = Tree(tmp_path / "clone", "git")
    subprocess.run(
        ["git", "clone", "--quiet", "--depth=1", f"file://{repository.root}", clone.root],
        check=True,
        capture_output=True,
    )
    assert commits(clone) == {"a.md": head, "b.md": head}
