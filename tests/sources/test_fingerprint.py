import pytest

from docindex_dagster.errors import SourceError
from docindex_dagster.sources.fingerprint import fingerprint
from docindex_dagster.sources.model import Source
from tests.sources.conftest import LONG_AGO_NS

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
