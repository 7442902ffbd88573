"""Detection of changes in a source since the previous run, or since a sensor checked.

For a git work tree, only files that may differ from the previous table are examined again. Git reports changes between
the two commits and differences from the newer one; the file system reports changed timestamps. Everything else is kept
with the table: the files that differed from their commit at the time, and those that must be checked on every run.
Sensors compare a fingerprint of what discovery sees; discovery stores it with its table.
"""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path

import pyarrow as pa

from docindex_dagster.core.hashing import digest
from docindex_dagster.sources import git, history
from docindex_dagster.sources.content import Content
from docindex_dagster.sources.history import shallow_end
from docindex_dagster.sources.mirror import checked_out
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import Root, folders_around, join, name_to_path, path_to_name
from docindex_dagster.sources.previous_listing import FINGERPRINT, HEAD, RULES, STATE, rules_version
from docindex_dagster.sources.rules import PathRules, Pruned, path_rules
from docindex_dagster.sources.walk import Entry, open_root, stamp, walk
from docindex_dagster.sources.worktree import TreeStatus, WorkTree, read_work_trees

_DIRTY = b"docindex.dirty"  # table metadata: NUL-terminated paths to examine again
_DIFF = (
    *("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-relative"),
    "--ignore-submodules=dirty",  # or an invalid .gitmodules would be an error
)
_MAX_DIRTY = 20_000  # beyond this, examining everything is as fast
_ALWAYS_RECHECKED = ("symlink:", "special-file:", "unreadable:")  # git does not notice changes of these


@dataclass(frozen=True, slots=True)
class Moves:
    """The changes between two commits, neither of which needs to be an ancestor of the other."""

    differing: frozenset[bytes]  # paths whose content differs
    touched: frozenset[bytes]  # paths changed by commits that are reachable from only one of the two


def compute_moves(previous: pa.Table | None, source: Source, head: str | None, state: bytes) -> Moves | None:
    """Return the changes since the previous table; None if unknown, so that every file must be examined.

    They are unknown after an edit of the settings, and if the commit of the previous table no longer exists.
    """
    if previous is None or head is None:
        return None
    metadata, rules = previous.schema.metadata or {}, rules_version(source.secrets)
    root = os.fsencode(source.path)
    old = metadata.get(HEAD, b"").decode()
    if not old or _DIRTY not in metadata or (metadata.get(STATE), metadata.get(RULES)) != (state, rules):
        return None
    if old == head:
        return Moves(frozenset(), frozenset())
    touched = history.touched_between(root, old, head)
    listed = git.attempt(root, *_DIFF, old, head, "--")
    if touched is None or listed is None:
        return None
    return Moves(frozenset(listed.split(b"\0")[:-1]), frozenset(touched))


def suspects(previous: pa.Table, moves: Moves, rules: PathRules, tree_status: TreeStatus) -> frozenset[bytes]:
    """Return the paths to examine again; the rows of all other paths can be reused."""
    dirty = previous.schema.metadata[_DIRTY].split(b"\0")[:-1]
    now = (tree_status.changed, tree_status.untracked, tree_status.hidden, tree_status.links)
    return frozenset().union(moves.differing, moves.touched, dirty, *now, _restamped(previous, rules, tree_status))


def _restamped(previous: pa.Table, rules: PathRules, tree_status: TreeStatus) -> set[bytes]:
    """Return files whose size or timestamp differs from their row, and files that only one of index and table contains.

    git compares what it would commit, so it does not report files that git or a filter wrote in another form.
    """
    stamps = zip(previous["size"].to_pylist(), previous["mtime_ns"].to_pylist(), strict=True)
    rows = dict(zip(map(name_to_path, previous["path"].to_pylist()), stamps, strict=True))
    with open_root(rules) as root:
        return {
            path
            for path in tree_status.files
            if rows.get(path) != stamp(root, path) and not isinstance(rules.scope_around(path), Pruned)
        }


def tree_status_at(rules: PathRules, tree_status: TreeStatus, paths: frozenset[bytes]) -> TreeStatus:
    """Return the status of a work tree restricted to some paths and the pruned folders around them."""
    folders = _pruned(rules, paths)

    def is_selected(path: bytes) -> bool:
        return path in paths or any(path.startswith(folder) for folder in folders)

    files = {path: blob for path, blob in tree_status.files.items() if is_selected(path)}
    links = {path: commit for path, commit in tree_status.links.items() if path in paths}
    untracked = tuple(path for path in tree_status.untracked if is_selected(path))
    return replace(tree_status, untracked=untracked, files=files, links=links)


def names_at(paths: frozenset[bytes]) -> pa.Array:
    """Return the names of all rows that may stand for some paths: their own, and those of folders that are not entered.

    This includes folders that were not entered before git tracked one of the paths.
    """
    rows = {*paths, *(path + b"/" for path in paths), *folders_around(paths)}
    return pa.array([path_to_name(path) for path in rows], pa.string())


def reuse_metadata(state: bytes, dirty: Collection[bytes]) -> dict[bytes, bytes]:
    """Return the table metadata that the next run needs to reuse rows."""
    if len(dirty) > _MAX_DIRTY:
        return {STATE: state}
    return {STATE: state, _DIRTY: b"".join(path + b"\0" for path in sorted(dirty))}


def partial_update_metadata(metadata: Mapping[bytes, bytes] | None) -> dict[bytes, bytes]:
    """Return the metadata for a table with only some rows updated: the next run examines every file."""
    return {key: value for key, value in (metadata or {}).items() if key not in {_DIRTY, FINGERPRINT}}


def paths_to_recheck(
    entries: Sequence[Entry], contents: Sequence[Content], tree_status: TreeStatus, started_ns: int
) -> set[bytes]:
    """Return the paths that the next run must examine, whatever git reports then.

    These files differ from the last commit now, change without git noticing, or were written during this run. The last
    kind may have been read in another state than git saw.
    """
    odd = {
        entry.path
        for entry, content in zip(entries, contents, strict=True)
        if entry.mtime_ns >= started_ns or (content.reason or "").startswith(_ALWAYS_RECHECKED)
    }
    return odd.union(tree_status.changed, tree_status.untracked, tree_status.hidden, tree_status.links)


def state_of(source: Source, rules: PathRules, tree_status: TreeStatus) -> bytes:
    """Return a digest of what decides rows besides git's files: settings, ignore files, shallow boundary."""
    settings = repr(replace(source, path=Path(), remote=None))
    folders = folders_around((*tree_status.files, *tree_status.untracked))
    files = [folder + name for folder in folders for name in rules.ignore_files]
    present = sorted(path for path in files if os.path.lexists(join(rules.root, path)))
    seen = [(path, rules.read_ignore_file(path)) for path in present]
    return digest(repr((settings, seen, shallow_end(rules.root))).encode()).encode()


def _pruned(rules: PathRules, paths: Iterable[bytes]) -> frozenset[bytes]:
    """Return the folders that are not entered and contain one of the paths."""
    scopes = (rules.scope_around(path) for path in paths)
    return frozenset(scope.path for scope in scopes if isinstance(scope, Pruned))


def fingerprint(source: Source) -> str:
    """Return a string that changes when the files of a source, their timestamps or its settings change.

    No files other than ignore files are opened. Files that a rule skips do not count, so a growing log does not trigger
    runs. For git, the fingerprint covers the last commit, the index, and the files that differ from them. For a
    repository that docindex clones, it is the checked-out commit: the remote is not contacted.

    Raises:
        SourceError: The folder is missing, or is not the root of a git work tree.
    """
    if source.remote is not None:
        return _fingerprint_of(source, checked_out(source))
    if source.kind != "git":
        return fingerprint_of_entries(source, walk(path_rules(source)))
    rules, trees = read_work_trees(source)
    return fingerprint_of_work_trees(source, rules, trees, state_of(source, rules, trees[0].tree_status))


def fingerprint_of_commit(source: Source, commit: str) -> str:
    """Return the fingerprint that a repository cloned by docindex would have with this commit checked out."""
    return _fingerprint_of(source, commit)


def fingerprint_of_entries(source: Source, entries: Iterable[Entry]) -> str:
    """Return the fingerprint of a library in which `walk` found these entries."""
    # For an entry that a rule skips, only the reason counts.
    states = [
        (path, reason, 0, 0) if reason else (path, "", size, mtime_ns) for path, size, mtime_ns, reason, *_ in entries
    ]
    return _fingerprint_of(source, sorted(states))


def fingerprint_of_work_trees(source: Source, rules: PathRules, trees: Sequence[WorkTree], state: bytes) -> str:
    """Return the fingerprint of a git source with these work trees, for which `state_of` returned `state`."""
    if source.remote is not None:
        return _fingerprint_of(source, trees[0].tree_status.head)
    with open_root(rules) as root:
        return _fingerprint_of(source, (state, [_work_tree_state(rules, root, tree) for tree in trees]))


def _fingerprint_of(source: Source, seen: object) -> str:
    remote = source.remote and replace(source.remote, repository=Path())
    settings = replace(source, path=Path(), remote=remote)
    return digest(repr((rules_version(source.secrets), settings, seen)).encode())


def _work_tree_state(rules: PathRules, root: Root, tree: WorkTree) -> list[object]:
    status = tree.tree_status
    named = [sorted(status.files.items()), sorted(status.links.items())]
    differing = (*status.changed, *status.untracked, *status.hidden)
    stamps = dict(_stamp(rules, root, tree.prefix + path) for path in differing)
    return [tree.prefix, status.head, *named, sorted(stamps.items(), key=itemgetter(0))]


def _stamp(rules: PathRules, root: Root, path: bytes) -> tuple[bytes, tuple[int, int] | None]:
    """Return the path of a file with its size and timestamp if discovery would read it, else with None.

    For a file in a folder that is not entered, return the path of the folder.
    """
    scope = rules.scope_around(path)
    if isinstance(scope, Pruned):
        return scope.path, None
    if path.endswith(b"/") or rules.file_reason(scope, path[len(scope.path) :]) is not None:
        return path, None
    return path, stamp(root, path)
