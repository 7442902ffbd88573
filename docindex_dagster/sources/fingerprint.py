"""A cheap fingerprint of what discovery sees, for sensors; discovery keeps that of what it saw with its table."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

from docindex_dagster.core.hashing import digest
from docindex_dagster.sources import changes
from docindex_dagster.sources.memory import rules_version
from docindex_dagster.sources.mirror import checked_out
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import join
from docindex_dagster.sources.rules import PathRules, Pruned, path_rules
from docindex_dagster.sources.walk import Entry, stamp, walk
from docindex_dagster.sources.worktree import WorkTree, read_work_trees


def fingerprint(source: Source) -> str:
    """Return a string that changes when the files of a source, their time stamps or its settings change.

    No file is opened but ignore files, and files that a rule skips do not count, so that a growing log starts no run.
    For git it is made of the last commit, the index, and the files that differ from them. Of a repository that docindex
    clones it is the commit that is checked out: the remote is not asked.

    Raises:
        SourceError: The folder is missing, or is not the root of a git work tree.
    """
    if source.remote is not None:
        return _of(source, checked_out(source))
    if source.kind != "git":
        return of_entries(source, walk(path_rules(source)))
    rules, trees = read_work_trees(source)
    return of_work_trees(source, rules, trees, changes.state_of(source, rules, trees[0].tree_status))


def of_commit(source: Source, commit: str) -> str:
    """The fingerprint of a repository that docindex clones, were that commit checked out."""
    return _of(source, commit)


def of_entries(source: Source, entries: Iterable[Entry]) -> str:
    """The fingerprint of a library in which `walk` found these entries."""
    # Of an entry that a rule skips, only that counts.
    states = [
        (path, reason, 0, 0) if reason else (path, "", size, mtime_ns) for path, size, mtime_ns, reason, *_ in entries
    ]
    return _of(source, sorted(states))


def of_work_trees(source: Source, rules: PathRules, trees: Sequence[WorkTree], state: bytes) -> str:
    """The fingerprint of a git source whose work trees stand so, and of which `changes.state_of` says `state`."""
    if source.remote is not None:
        return _of(source, trees[0].tree_status.head)
    return _of(source, (state, [_work_tree_state(rules, tree) for tree in trees]))


def _of(source: Source, seen: object) -> str:
    remote = source.remote and replace(source.remote, repository=Path())
    settings = replace(source, path=Path(), remote=remote)
    return digest(repr((rules_version(source.secrets), settings, seen)).encode())


def _work_tree_state(rules: PathRules, tree: WorkTree) -> list[object]:
    status = tree.tree_status
    named = [sorted(status.files.items()), sorted(status.links.items())]
    differing = (*status.changed, *status.untracked, *status.hidden)
    stamps = dict(_stamp(rules, tree.prefix + path) for path in differing)
    return [tree.prefix, status.head, *named, sorted(stamps.items(), key=itemgetter(0))]


def _stamp(rules: PathRules, path: bytes) -> tuple[bytes, tuple[int, int] | None]:
    """Size and time stamp of a file that discovery would look at; None for others.

    With its path, or that of the folder around it that is not entered.
    """
    scope = rules.scope_around(path)
    if isinstance(scope, Pruned):
        return scope.path, None
    if path.endswith(b"/") or rules.file_reason(scope, path[len(scope.path) :]) is not None:
        return path, None
    return path, stamp(join(rules.root, path))
