import itertools
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from docindex_dagster.core.errors import SourceError
from docindex_dagster.sources import git, worktree
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source
from tests.sources.conftest import LONG_AGO_NS, rows

LATER_NS = LONG_AGO_NS + 3_600_000_000_000


def test_a_tracked_file_has_its_blob_and_its_last_commit(repository):
    repository.write("a.md", "one\n")
    repository.write("b.md", "two\n")
    first = repository.commit()
    repository.write("a.md", "more\n", mtime_ns=LATER_NS)
    second = repository.commit()
    table = discover(repository.source())
    assert table.schema.metadata[b"docindex.head"] == second.encode()
    assert {path: (row["git_blob"], row["commit"], row["is_uncommitted"]) for path, row in rows(table).items()} == {
        "a.md": (repository.git("rev-parse", "HEAD:a.md"), second, False),
        "b.md": (repository.git("rev-parse", "HEAD:b.md"), first, False),
    }


def test_a_repository_without_commits_works(repository):
    repository.write_all("staged.md", "loose.md")
    repository.git("add", "staged.md")
    table = discover(repository.source())
    assert b"docindex.head" not in table.schema.metadata
    assert {path: (row["commit"], row["is_uncommitted"]) for path, row in rows(table).items()} == {
        "loose.md": (None, True),
        "staged.md": (None, True),
    }


def test_what_differs_from_the_last_commit_is_uncommitted(repository):
    repository.write_all("same.md", "edited.md", "staged.md", "deleted.md", "unstaged.md")
    head = repository.commit()
    repository.write("edited.md", "other\n", mtime_ns=LATER_NS)
    repository.write("staged.md", "other text\n", mtime_ns=LATER_NS)
    repository.git("add", "staged.md")
    repository.write("new.md", "new\n")
    repository.git("add", "new.md")
    repository.git("rm", "--cached", "--quiet", "unstaged.md")
    (repository.root / "deleted.md").unlink()
    found = repository.discover()
    assert {path: (row["commit"], row["is_uncommitted"]) for path, row in found.items()} == {
        "edited.md": (head, True),
        "new.md": (None, True),
        "same.md": (head, False),
        "staged.md": (head, True),
        "unstaged.md": (None, True),
    }
    assert found["edited.md"]["git_blob"] is None  # no git object holds these bytes
    assert found["staged.md"]["git_blob"] == repository.git("rev-parse", ":staged.md")


def test_untracked_files_count_unless_git_ignores_them_or_they_are_not_wanted(repository):
    repository.write(".gitignore", "*.tmp\n")
    repository.write_all("tracked.md")
    repository.commit()
    repository.write_all("loose.md", "scratch.tmp", "docs/loose.md")
    assert repository.indexed() == {".gitignore", "tracked.md", "loose.md", "docs/loose.md"}
    assert repository.indexed(untracked=False) == {".gitignore", "tracked.md"}


def test_a_tracked_file_counts_even_where_git_would_ignore_it(repository):
    repository.write_all("kept.log.md")
    repository.commit()
    repository.write(".gitignore", "*.md\n")
    assert repository.indexed() == {"kept.log.md", ".gitignore"}


def test_own_rules_hold_for_tracked_files(repository):
    repository.write(".docindexignore", "drafts/\n")
    repository.write("docs/.docindexignore", "old.md\n")
    repository.write_all(
        "a.md", "drafts/a.md", "docs/old.md", "dist/app.js", "pkg/node_modules/x.js", ".env", "uv.lock"
    )
    repository.commit()
    reasons = repository.reasons()
    assert {path: reason for path, reason in reasons.items() if reason} == {
        ".env": "secret: .env*",
        "docs/old.md": "ignored: docs/.docindexignore:1 old.md",
        "drafts/": "ignored: .docindexignore:1 drafts/",
        "pkg/node_modules/": "always-skipped: node_modules/",
        "uv.lock": "always-skipped: *.lock",
    }


def test_odd_names_survive(repository):
    names = [b"two\nlines.md", b"caf\xe9.md", b"-n.md", b" spaced .md", b"\ttab.md", b'"quoted".md', b"a%41.md"]
    for name in names:
        repository.write(b"odd/" + name)
    head = repository.commit()
    repository.write("odd/-loose.md")
    found = repository.discover()
    assert {path: row["commit"] for path, row in found.items()} == {
        "odd/two\nlines.md": head,
        "odd/caf%E9.md": head,
        "odd/-n.md": head,
        "odd/ spaced .md": head,
        "odd/\ttab.md": head,
        'odd/"quoted".md': head,
        "odd/a%2541.md": head,
        "odd/-loose.md": None,
    }


def test_repositories_inside_are_one_row(repository, tmp_path):
    other = tmp_path / "other"
    subprocess.run(["git", "init", "--quiet", other], check=True)
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", other, *identity, "commit", "--quiet", "--allow-empty", "-m", "x"], check=True)
    repository.write("a.md")
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "vendor/other")
    repository.commit()
    subprocess.run(["git", "clone", "--quiet", other, repository.root / "loose"], check=True, capture_output=True)
    reasons = repository.reasons()
    assert reasons["vendor/other/"] == "submodule: a separate repository; add it as a source"
    assert reasons["loose/"] == "submodule: a separate repository; add it as a source"


def test_tracked_links_are_not_followed(repository, tmp_path):
    (tmp_path / "secret.md").write_text("secret")
    (repository.root / "out.md").symlink_to(tmp_path / "secret.md")
    repository.commit()
    assert repository.reasons() == {"out.md": "symlink: points outside the source"}


def test_a_folder_that_became_a_link_hides_its_tracked_files(repository, tmp_path):
    repository.write("docs/a.md")
    repository.commit()
    (repository.root / "docs").rename(tmp_path / "elsewhere")
    (repository.root / "docs").symlink_to(tmp_path / "elsewhere")
    found = repository.discover()
    assert "docs/a.md" not in found or found["docs/a.md"]["content_hash"] is None
    assert found["docs"]["skipped_reason"] == "symlink: points outside the source"


def test_a_conflict_is_uncommitted_and_has_no_blob(repository):
    repository.write("a.md", "base\n")
    repository.commit()
    repository.git("checkout", "--quiet", "-b", "side")
    repository.write("a.md", "side\n", mtime_ns=LATER_NS)
    repository.commit()
    repository.git("checkout", "--quiet", "main")
    repository.write("a.md", "main\n", mtime_ns=LATER_NS * 2)
    head = repository.commit()
    with pytest.raises(subprocess.CalledProcessError):
        repository.git("merge", "--quiet", "side")
    row = repository.discover()["a.md"]
    assert (row["git_blob"], row["is_uncommitted"], row["commit"]) == (None, True, head)


def test_a_linked_worktree_is_a_work_tree(repository, tmp_path):
    repository.write("a.md")
    head = repository.commit()
    repository.git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    table = discover(Source(key="git/demo@side", kind="git", name="demo@side", path=tmp_path / "side"))
    assert rows(table)["a.md"]["commit"] == head


@pytest.mark.parametrize("place", ["plain", "repository/sub", "bare.git"])
def test_what_is_not_the_root_of_a_work_tree_is_an_error_that_says_so(repository, tmp_path, place):
    repository.write("sub/a.md")
    (tmp_path / "plain").mkdir()
    subprocess.run(["git", "init", "--quiet", "--bare", tmp_path / "bare.git"], check=True)
    with pytest.raises(SourceError, match="is not the root of a git work tree"):
        discover(Source(key="git/x", kind="git", name="x", path=tmp_path / place))


def test_a_missing_folder_is_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(SourceError, match=r"gone is not a folder; fix its path in docindex\.toml"):
        discover(Source(key="git/x", kind="git", name="x", path=tmp_path / "gone"))


def test_git_that_is_not_installed_is_an_error_that_says_so(repository, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SourceError, match="git is not installed"):
        discover(repository.source())


def test_a_damaged_repository_is_an_error_with_the_words_of_git(repository):
    repository.write("a.md")
    repository.commit()
    (repository.root / ".git" / "index").write_bytes(b"nonsense")
    with pytest.raises(SourceError, match=r"git cannot read .*(index|sha1)"):
        discover(repository.source())


def test_the_environment_of_a_hook_does_not_lead_astray(repository, monkeypatch, tmp_path):
    repository.write("a.md")
    repository.commit()
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other.git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other.index"))
    assert repository.indexed() == {"a.md"}


def test_programs_named_in_the_settings_of_a_repository_are_not_run(repository, tmp_path):
    repository.write("a.md")
    repository.commit()
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    for setting in ("core.fsmonitor", "core.pager", "diff.external", "gpg.program", "core.sshCommand"):
        repository.git("config", setting, str(trap))
    repository.git("config", "log.showSignature", "true")
    assert repository.indexed() == {"a.md"}
    assert not (tmp_path / "sprung").exists()


def test_the_index_is_not_written(repository):
    repository.write("a.md")
    repository.commit()
    index = repository.root / ".git" / "index"
    before = index.read_bytes()
    repository.write("a.md", mtime_ns=LATER_NS)  # git would notice a new timestamp
    repository.discover()
    assert index.read_bytes() == before


def test_a_file_that_is_committed_while_git_is_asked_is_found_with_its_blob(repository, monkeypatch):
    repository.write("edited.md", "before\n")
    repository.commit()
    repository.write("edited.md", "after\n", mtime_ns=LATER_NS)
    repository.write("new.md", "new\n")
    read_index, started = worktree.read_index, git.started
    commits: list[str] = []

    def read_and_commit(root: bytes) -> worktree.TreeStatus:
        index = read_index(root)
        if not commits:
            commits.append(repository.commit())
        return index

    @contextmanager
    def started_when_it_is_read(root: bytes, *arguments: str | bytes, **given: Any) -> Iterator[Iterator[bytes]]:
        def blocks() -> Iterator[bytes]:
            with started(root, *arguments, **given) as found:
                yield from found

        yield blocks()

    monkeypatch.setattr(worktree, "read_index", read_and_commit)
    monkeypatch.setattr(git, "started", started_when_it_is_read)
    blobs = {path: row["git_blob"] for path, row in repository.discover().items()}
    assert len(commits) == 1
    assert blobs == {path: repository.git("rev-parse", f"HEAD:{path}") for path in ("edited.md", "new.md")}


def test_an_index_that_is_written_all_the_time_is_an_error_that_says_so(repository, monkeypatch):
    repository.write_all("a.md")
    read_index, sizes = worktree.read_index, itertools.count(1)

    def read_and_write(root: bytes) -> worktree.TreeStatus:
        index = read_index(root)
        repository.write("a.md", "x" * next(sizes))
        repository.git("add", "a.md")
        return index

    monkeypatch.setattr(worktree, "read_index", read_and_write)
    with pytest.raises(SourceError, match="changed 5 times while git read it"):
        repository.discover()
