"""Repositories inside a checkout: docindex runs no program that their config names, even with older versions of git."""

import os
import shutil

from docindex_dagster.core.git_folders import is_tracked


def test_an_older_git_fetches_nothing_to_see_what_it_tracks(tmp_path, git, monkeypatch):
    older = tmp_path / "bin/git"
    older.parent.mkdir()
    older.write_text(f'#!/bin/sh\nunset GIT_NO_LAZY_FETCH\nexec {shutil.which("git")} "$@"\n')
    older.chmod(0o755)
    monkeypatch.setenv("PATH", f"{older.parent}:{os.environ['PATH']}")
    root, pwned = tmp_path / "checkout", tmp_path / "pwned"
    (root / "other/x").mkdir(parents=True)
    (root / "other/x/b.md").write_text("b\n")
    (root / "a.md").write_text("a\n")
    git(root, "init")
    git(root, "add", ".")
    git(root, "commit", "-m", "one")
    git(root, "sparse-checkout", "set", "--cone", "--sparse-index", "nothing")
    for name, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": root.as_uri(),
        "remote.origin.uploadpack": f"touch {pwned}; git-upload-pack",
    }.items():
        git(root, "config", name, value)
    missing = git(root, "rev-parse", "HEAD:other").strip()
    (root / ".git/objects" / missing[:2] / missing[2:]).unlink()

    assert not is_tracked(root / "nothing")

    assert not pwned.exists()
