"""A cheap fingerprint of what discovery would see, for sensors."""

import os
from collections.abc import Iterable

from docindex_dagster.hashing import digest
from docindex_dagster.sources import git
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import join
from docindex_dagster.sources.rules import path_rules
from docindex_dagster.sources.walk import walk
from docindex_dagster.sources.worktree import parse_status, status_arguments


def fingerprint(source: Source) -> str:
    """Return a string that changes when the files of a source, their time stamps or its settings change.

    No file is opened but ignore files. For git it is made of the last commit, the index and the files that differ.

    Raises:
        SourceError: The folder is missing, or is not the root of a git work tree.
    """
    settings = (source.include, source.exclude, source.recursive, source.include_code, source.max_file_bytes)
    seen = _git_state(source) if source.kind == "git" else _library_state(source)
    return digest(repr((source.kind, settings, list(seen))).encode())


def _library_state(source: Source) -> Iterable[object]:
    return sorted(tuple(entry) for entry in walk(path_rules(source)))


def _git_state(source: Source) -> Iterable[object]:
    root = os.fsencode(source.path)
    output = git.run(root, *status_arguments(untracked=source.untracked))
    status = parse_status(output)
    differing = [*sorted(status.changed), *status.untracked]
    return [output, *(_stamp(join(root, path)) for path in differing)]


def _stamp(path: bytes) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:  # deleted
        return None
    return found.st_size, found.st_mtime_ns
