"""A cheap fingerprint of what discovery would see, for sensors."""

import os
from dataclasses import replace
from pathlib import Path

from docindex_dagster.hashing import digest
from docindex_dagster.sources import git
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import join
from docindex_dagster.sources.rules import PathRules, Pruned, path_rules
from docindex_dagster.sources.walk import walk
from docindex_dagster.sources.worktree import parse_status, status_arguments


def fingerprint(source: Source) -> str:
    """Return a string that changes when the files of a source, their time stamps or its settings change.

    No file is opened but ignore files, and files that a rule skips do not count, so that a growing log wakes nobody.
    For git it is made of the last commit, the index, and the files that differ from them.

    Raises:
        SourceError: The folder is missing, or is not the root of a git work tree.
    """
    settings = replace(source, path=Path())
    seen = _git_state(source) if source.kind == "git" else _library_state(source)
    return digest(repr((settings, seen)).encode())


def _library_state(source: Source) -> list[object]:
    entries = sorted(walk(path_rules(source)))
    return [(entry.path, entry.reason or (entry.size, entry.mtime_ns)) for entry in entries]


def _git_state(source: Source) -> list[object]:
    rules = path_rules(source)
    output = git.run(rules.root, *status_arguments(untracked=source.untracked))
    status = parse_status(output)
    return [output, *(_stamp(rules, path) for path in (*sorted(status.changed), *status.untracked))]


def _stamp(rules: PathRules, path: bytes) -> tuple[int, int] | None:
    """Size and time stamp of a file that discovery would look at; None for others."""
    scope = rules.scope(path[: path.rfind(b"/") + 1])
    if isinstance(scope, Pruned) or rules.file_reason(scope, path[len(scope.path) :]) is not None:
        return None
    try:
        found = os.lstat(join(rules.root, path))
    except OSError:  # deleted
        return None
    return found.st_size, found.st_mtime_ns
