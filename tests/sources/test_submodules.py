"""Submodules: if enabled, their files appear under their path, with commits of the outer repository."""

from collections.abc import Iterator

import pytest

from docindex_dagster.sources.changes import fingerprint
from docindex_dagster.sources.discovery import discover
from tests.sources.conftest import LONG_AGO_NS, Tree, rows
from tests.sources.remotes import Followed, Server, serving

LATER_NS = LONG_AGO_NS + 3_600_000_000_000


@pytest.fixture
def server(tmp_path) -> Iterator[Server]:
    with serving(tmp_path) as server:
        yield server


def make(folder, *paths: str) -> Tree:
    folder.mkdir()
    tree = Tree(folder, "git")
    tree.git("init", "--quiet", "--initial-branch=main")
    tree.write_all(*paths)
    tree.commit("first of " + folder.name)
    return tree


def add_submodule(tree: Tree, server: Server, name: str, path: str) -> str:
    tree.git("submodule", "--quiet", "add", f"{server.url}/{name}", path)
    return tree.commit(f"add {name}")


@pytest.fixture
def nested(repository, server, tmp_path) -> Tree:
    """`repository` contains `middle`, which contains `inner`."""
    make(tmp_path / "inner", "i.md", "node_modules/x.js")
    middle = make(tmp_path / "middle", "m.md", "skip/s.md")
    add_submodule(middle, server, "inner", "libs/inner")
    repository.write("a.md")
    repository.commit()
    add_submodule(repository, server, "middle", "vendor/middle")
    repository.git("submodule", "--quiet", "update", "--init", "--recursive")
    return Tree(repository.root, "git")


WANTED = {
    ".gitmodules",
    "vendor/middle/.gitmodules",
    "a.md",
    "vendor/middle/m.md",
    "vendor/middle/skip/s.md",
    "vendor/middle/libs/inner/i.md",
}


def test_submodules_are_one_row_unless_they_are_wanted(nested):
    assert nested.indexed() == {".gitmodules", "a.md"}
    assert nested.reasons()["vendor/middle/"].startswith("submodule: ")
    assert nested.indexed(submodules=True) == WANTED


def test_their_files_have_the_blobs_of_the_submodule_and_the_commit_that_took_it_in(nested):
    found = nested.discover(submodules=True)

    inner = Tree(nested.root / "vendor/middle/libs/inner")
    row = found["vendor/middle/libs/inner/i.md"]
    assert row["git_blob"] == inner.git("rev-parse", "HEAD:i.md")
    assert (row["commit"], row["is_uncommitted"]) == (nested.git("rev-parse", "HEAD"), False)


def test_the_rules_of_the_source_hold_in_them(nested):
    assert nested.indexed(submodules=True, exclude=("vendor/middle/skip/**",)) == WANTED - {"vendor/middle/skip/s.md"}
    assert nested.indexed(submodules=True, exclude=("vendor/",)) == {".gitmodules", "a.md"}
    assert nested.reasons(submodules=True)["vendor/middle/libs/inner/node_modules/"].startswith("always-skipped")


def test_what_differs_in_a_submodule_is_uncommitted(nested):
    middle = Tree(nested.root / "vendor/middle")
    middle.write("m.md", "edited\n", mtime_ns=LATER_NS)
    middle.write("new.md")

    found = nested.discover(submodules=True)

    assert found["vendor/middle/m.md"]["git_blob"] is None
    uncommitted = {path for path, row in found.items() if row["is_uncommitted"]}
    assert uncommitted == {"vendor/middle/m.md", "vendor/middle/new.md"}


def test_all_of_a_submodule_at_another_commit_is_uncommitted(nested):
    Tree(nested.root / "vendor/middle/libs/inner").commit("another")

    found = nested.discover(submodules=True)

    assert {path for path, row in found.items() if row["is_uncommitted"]} == {"vendor/middle/libs/inner/i.md"}


def test_unchanged_files_are_reused_and_equal_a_full_discovery(nested):
    first = discover(nested.source(submodules=True))
    nested.write("b.md")
    nested.commit()

    again = rows(discover(nested.source(submodules=True), first))

    assert again == rows(discover(nested.source(submodules=True)))


def test_the_fingerprint_sees_what_changes_in_them(nested):
    source = nested.source(submodules=True)
    before = fingerprint(source)
    Tree(nested.root / "vendor/middle/libs/inner").write("i.md", "edited\n", mtime_ns=LATER_NS)

    assert fingerprint(source) != before


@pytest.mark.parametrize("settings", [{"submodules": True}, {"submodules": True, "exclude": ("vendor/",)}, {}])
def test_discovery_keeps_the_fingerprint_of_what_it_saw_in_them(nested, settings):
    source = nested.source(**settings)
    before = discover(source)
    Tree(nested.root / "vendor/middle/libs/inner").write("i.md", "edited\n", mtime_ns=LATER_NS)
    Tree(nested.root / "vendor/middle").write("new.md")
    for previous in (None, before):
        metadata = discover(source, previous).schema.metadata
        assert metadata[b"docindex.fingerprint"].decode() == fingerprint(source)


def test_what_changes_in_a_submodule_that_is_not_entered_does_not_count(nested):
    source = nested.source(submodules=True, exclude=("vendor/",))
    before = fingerprint(source)
    Tree(nested.root / "vendor/middle").write("new.md")
    assert fingerprint(source) == before


def test_a_submodule_that_is_not_checked_out_says_so(nested):
    nested.git("submodule", "--quiet", "deinit", "--force", "vendor/middle")

    assert nested.reasons(submodules=True)["vendor/middle/"] == "submodule: not checked out"


def follow(tree: Tree, server: Server, tmp_path, **settings) -> Followed:
    return Followed(tmp_path / "home", f"{server.url}/{tree.root.name}", settings=settings)


def test_a_followed_repository_brings_its_submodules(nested, server, tmp_path):
    followed = follow(nested, server, tmp_path, submodules=True)
    followed.update()

    assert followed.tree.indexed(submodules=True) == WANTED
    assert followed.reports == []


def test_a_followed_submodule_moves_with_the_repository_around_it_and_goes_with_it(nested, server, tmp_path):
    followed = follow(nested, server, tmp_path, submodules=True)
    followed.update()
    middle = Tree(tmp_path / "middle", "git")
    middle.write("later.md")
    middle.commit()
    nested.git("-C", "vendor/middle", "pull", "--quiet", "origin", "main")
    nested.commit("move")

    assert "vendor/middle/later.md" in followed.update()
    nested.git("rm", "--quiet", "--force", "vendor/middle")
    nested.commit("without")

    assert set(followed.update()) == {"a.md", ".gitmodules"}


def test_one_that_cannot_be_fetched_is_skipped_with_its_reason_and_the_others_are_there(nested, server, tmp_path):
    add_submodule(nested, server, "inner", "other")
    nested.git("config", "--file", ".gitmodules", "submodule.vendor/middle.url", f"{server.url}/nowhere")
    nested.commit()
    followed = follow(nested, server, tmp_path, submodules=True)

    followed.update()

    reasons = followed.tree.reasons(submodules=True)
    assert reasons["other/i.md"] is None
    assert reasons["vendor/middle/"].startswith("submodule: cannot fetch submodule vendor/middle: ")
    assert "\n" not in reasons["vendor/middle/"]
    nested.git("config", "--file", ".gitmodules", "submodule.vendor/middle.url", f"{server.url}/middle")
    nested.commit()
    assert "vendor/middle/m.md" in followed.update()
