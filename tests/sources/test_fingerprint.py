import threading

import pytest

from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.hashing import digest
from docindex_dagster.sources.changes import fingerprint
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source
from tests.sources.conftest import LONG_AGO_NS, new_repository, rows
from tests.sources.remotes import Followed

LATER_NS = LONG_AGO_NS + 3_600_000_000_000


@pytest.fixture(params=["library", "repository"])
def tree(request):
    tree = request.getfixturevalue(request.param)
    tree.write(".gitignore", "*.tmp\n")
    tree.write_all("a.md", "docs/b.md")
    if tree.kind == "git":
        tree.commit()
    return tree


def test_it_stays_while_nothing_changes(tree):
    assert fingerprint(tree.source()) == fingerprint(tree.source())


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree.write("a.md", "other\n", mtime_ns=LATER_NS),
        lambda tree: tree.write("new.md"),
        lambda tree: (tree.root / "a.md").unlink(),
        lambda tree: (tree.root / "a.md").rename(tree.root / "c.md"),
        lambda tree: tree.write(".gitignore", "*.md\n", mtime_ns=LATER_NS),
    ],
    ids=["edited", "added", "removed", "renamed", "other ignore rules"],
)
def test_it_changes_with_the_files(tree, change):
    before = fingerprint(tree.source())
    change(tree)
    assert fingerprint(tree.source()) != before


@pytest.mark.parametrize("settings", [{"exclude": ("a.md",)}, {"include_code": False}, {"max_file_bytes": 1}])
def test_it_changes_with_the_settings(tree, settings):
    assert fingerprint(tree.source(**settings)) != fingerprint(tree.source())


def test_files_that_a_rule_skips_do_not_count(tree):
    tree.write_all("debug.log", "scratch.tmp", "node_modules/x.js")
    before = fingerprint(tree.source())
    for path in ("debug.log", "scratch.tmp", "node_modules/x.js"):
        tree.write(path, "more and more\n", mtime_ns=LATER_NS)
    assert fingerprint(tree.source()) == before


def test_a_file_that_git_was_asked_not_to_compare_counts(repository):
    repository.write("a.md", "one\n")
    repository.commit()
    repository.git("update-index", "--assume-unchanged", "a.md")
    before = fingerprint(repository.source())
    repository.write("a.md", "two\n", mtime_ns=LATER_NS)
    assert fingerprint(repository.source()) != before


def test_new_files_in_a_folder_that_is_not_entered_do_not_count(tree):
    tree.write("node_modules/a.js")
    new_repository(tree.root / "own").write("a.tmp")
    before = fingerprint(tree.source(exclude=("own/",)))
    tree.write_all("node_modules/b.js", "own/b.tmp")
    assert fingerprint(tree.source(exclude=("own/",))) == before


def test_a_repository_of_its_own_in_a_work_tree_does_not_count(repository):
    new_repository(repository.root / "own").write("a.md")
    before = fingerprint(repository.source())
    repository.write("own/b.md")
    assert fingerprint(repository.source()) == before


def test_a_second_edit_of_an_uncommitted_file_counts(repository):
    repository.write("a.md", "one\n")
    repository.commit()
    repository.write("a.md", "two\n", mtime_ns=LATER_NS)
    before = fingerprint(repository.source())
    repository.write("a.md", "six\n", mtime_ns=LATER_NS * 2)
    assert fingerprint(repository.source()) != before


def test_a_commit_counts(repository):
    before = fingerprint(repository.source())
    repository.commit()
    assert fingerprint(repository.source()) != before


def test_a_missing_folder_is_an_error(tmp_path):
    for kind in ("library", "git"):
        with pytest.raises(SourceError):
            fingerprint(Source(key=f"{kind}/x", kind=kind, name="x", path=tmp_path / "gone"))


def recorded(source, previous=None):
    """Return the fingerprint that discovery stores with its table."""
    value = discover(source, previous).schema.metadata.get(b"docindex.fingerprint")
    return value.decode() if value else None


STATES = {
    "as it is": lambda tree: None,
    "edited": lambda tree: tree.write("a.md", "other\n", mtime_ns=LATER_NS),
    "new": lambda tree: tree.write_all("new.md", "node_modules/x.js", "scratch.tmp", "debug.log"),
    "removed": lambda tree: (tree.root / "a.md").unlink(),
    "a folder in place of a file": lambda tree: ((tree.root / "a.md").unlink(), tree.write("a.md/inner.md")),
    "a link": lambda tree: (tree.root / "link.md").symlink_to("a.md"),
    "skipped for its content": lambda tree: tree.write("a.md", b"a\0b", mtime_ns=LATER_NS),
    "other rules": lambda tree: tree.write(".docindexignore", "docs/\n"),
}


@pytest.mark.parametrize("change", STATES.values(), ids=STATES)
def test_discovery_keeps_that_of_the_state_it_saw(tree, change):
    before = discover(tree.source())
    change(tree)
    assert recorded(tree.source()) == fingerprint(tree.source())
    assert recorded(tree.source(), before) == fingerprint(tree.source())  # incremental discovery


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree.git("add", "--all"),
        lambda tree: tree.commit(),
        lambda tree: tree.git("rm", "--cached", "--quiet", "a.md"),
        lambda tree: tree.git("update-index", "--assume-unchanged", "a.md"),
        lambda tree: tree.git("checkout", "--quiet", "--orphan", "other"),
    ],
    ids=["staged", "committed", "not tracked any more", "not compared", "no commit"],
)
def test_discovery_keeps_that_of_what_git_says(repository, change):
    repository.write_all("a.md", "b.md")
    repository.commit()
    repository.write("a.md", "other\n", mtime_ns=LATER_NS)
    repository.write("c.md")
    before = discover(repository.source())
    change(repository)
    for settings in ({}, {"untracked": False}):
        assert recorded(repository.source(**settings)) == fingerprint(repository.source(**settings))
    assert recorded(repository.source(), before) == fingerprint(repository.source())


def test_that_of_a_followed_repository_is_of_the_commit_that_is_checked_out(repository, tmp_path):
    followed = Followed(tmp_path / "home", str(repository.root))
    unknown = fingerprint(followed.source)
    repository.write("a.md")
    repository.commit()
    followed.update()
    first = recorded(followed.source)
    assert first == fingerprint(followed.source) != unknown

    repository.commit()
    assert fingerprint(followed.source) == first  # the remote is not queried
    followed.update()
    assert recorded(followed.source) == fingerprint(followed.source) != first


def test_that_of_an_empty_remote_is_kept_too(repository, tmp_path):
    followed = Followed(tmp_path / "home", str(repository.root))
    followed.update()
    assert recorded(followed.source) == fingerprint(followed.source)


def test_a_look_at_single_files_keeps_none(tree):
    before = discover(tree.source())
    table = discover(tree.source(), before, only=["a.md"])
    assert b"docindex.fingerprint" not in table.schema.metadata


def test_a_file_written_while_discovery_runs_never_hides_behind_it(tree):
    """An edit made after git was queried and reverted later leaves git's state unchanged."""
    for number in range(1500):
        tree.write(f"docs/{number}.md", f"page {number}\n")
    tree.write("zz.md", "old text\n")
    if tree.kind == "git":
        tree.commit()
    caught = 0
    for delay_ms in (10, 50, 100, 150, 200, 300):
        edit = threading.Timer(delay_ms / 1000, lambda: (tree.root / "zz.md").write_text("new text\n"))
        edit.start()
        table = discover(tree.source())
        edit.join()
        tree.write("zz.md", "old text\n", mtime_ns=LATER_NS + delay_ms)
        if rows(table)["zz.md"]["content_hash"] == digest(b"new text\n"):
            caught += 1
            assert table.schema.metadata.get(b"docindex.fingerprint", b"").decode() != fingerprint(tree.source())
    assert caught
