"""A cheap fingerprint of what discovery would see, for sensors."""

import os
from dataclasses import replace
from pathlib import Path

from docindex_dagster.hashing import digest
from docindex_dagster.sources import changes, git
from docindex_dagster.sources.entries import stamp
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import join
from docindex_dagster.sources.rules import PathRules, Pruned, path_rules
from docindex_dagster.sources.status import Standing, read_standing
from docindex_dagster.sources.walk import walk
from docindex_dagster.sources.worktree import submodule_roots


def fingerprint(source: Source) -> str:
    """Return a string that changes when the files of a source, their time stamps or its settings change.

    No file is opened but ignore files, and files that a rule skips do not count, so that a growing log wakes nobody.
    For git it is made of the last commit, the index, and the files that differ from them. Of a repository that docindex
    clones it is the commit that is checked out: the remote is not asked.

    Raises:
        SourceError: The folder is missing, or is not the root of a git work tree.
    """
    remote = source.remote and replace(source.remote, repository=Path())
    settings = replace(source, path=Path(), remote=remote)
    if source.remote is not None:
        seen = _checkout_state(source)
    else:
        seen = _git_state(source) if source.kind == "git" else _library_state(source)
    return digest(repr((settings, seen)).encode())


def _library_state(source: Source) -> list[object]:
    entries = sorted(walk(path_rules(source)))
    return [(entry.path, entry.reason or (entry.size, entry.mtime_ns)) for entry in entries]


def _checkout_state(source: Source) -> list[object]:
    if not (source.path / ".git").exists():  # not yet, or not any more: the next run makes it
        return []
    return [git.attempt(os.fsencode(source.path), "rev-parse", "--verify", "--quiet", "HEAD")]


def _git_state(source: Source) -> list[object]:
    rules = path_rules(source)
    standing = read_standing(rules.root, untracked=source.untracked)
    inner = submodule_roots(rules.root) if source.submodules else []
    others = [(root, read_standing(root, untracked=source.untracked)) for root in inner]
    seen = [part for root, found in ((rules.root, standing), *others) for part in _work_tree_state(rules, root, found)]
    return [changes.state_of(source, rules, standing), *seen]


def _work_tree_state(rules: PathRules, root: bytes, standing: Standing) -> list[object]:
    """The state of one work tree; that of a submodule lies below the root of the rules."""
    status, index = standing.status, standing.index
    prefix = join(root, b"")[len(join(rules.root, b"")) :]
    differing = (*sorted(status.changed), *status.untracked)
    return [status.head, sorted(index.files.items()), differing, *(_stamp(rules, prefix + path) for path in differing)]


def _stamp(rules: PathRules, path: bytes) -> tuple[int, int] | None:
    """Size and time stamp of a file that discovery would look at; None for others."""
    scope = rules.scope_around(path)
    if isinstance(scope, Pruned) or rules.file_reason(scope, path[len(scope.path) :]) is not None:
        return None
    return stamp(join(rules.root, path))
