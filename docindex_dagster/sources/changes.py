"""What changed in a source since the run before, or since a sensor looked.

Of a git work tree, only files that may differ from the table of the run before are looked at again. Git knows what
changed between the two commits and what differs from the newer one, the file system which files have other time stamps.
What neither knows is kept with the table: the files that were not as in their commit then, and those that have to be
looked at each time. Sensors compare a fingerprint of what discovery sees; discovery keeps that with its table.
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

_DIRTY = b"docindex.dirty"  # in the metadata of a table: paths, each with a NUL behind it, to be looked at again
_DIFF = (
    *("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-relative"),
    "--ignore-submodules=dirty",  # or a wrong .gitmodules would be an error
)
_MOST_DIRTY = 20_000  # with more of them, looking at everything is as quick
_ALWAYS = ("symlink:", "special-file:", "unreadable:")  # git does not notice when these change


@dataclass(frozen=True, slots=True)
class Moves:
    """What happened between two commits, neither of which need build on the other."""

    differing: frozenset[bytes]  # paths whose content differs
    touched: frozenset[bytes]  # paths that a commit changed which is behind only one of the two


def moves_since(previous: pa.Table | None, source: Source, head: str | None, state: bytes) -> Moves | None:
    """What happened since the previous table; None where that is unknown, and everything has to be looked at.

    That is so after an edit of the settings, and where the commit of that table is not there any more.
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
    """The paths to look at again; rows of others can be taken over."""
    dirty = previous.schema.metadata[_DIRTY].split(b"\0")[:-1]
    now = (tree_status.changed, tree_status.untracked, tree_status.hidden, tree_status.links)
    return frozenset().union(moves.differing, moves.touched, dirty, *now, _restamped(previous, rules, tree_status))


def _restamped(previous: pa.Table, rules: PathRules, tree_status: TreeStatus) -> set[bytes]:
    """Files whose size or time stamp are not those of their row, and those that only one of both knows.

    git compares what it would commit, and so does not report a file that it, or a filter, wrote in another form.
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
    """How a work tree stands at some paths, and in the folders around them that are not entered."""
    folders = _pruned(rules, paths)

    def is_asked(path: bytes) -> bool:
        return path in paths or any(path.startswith(folder) for folder in folders)

    files = {path: blob for path, blob in tree_status.files.items() if is_asked(path)}
    links = {path: commit for path, commit in tree_status.links.items() if path in paths}
    untracked = tuple(path for path in tree_status.untracked if is_asked(path))
    return replace(tree_status, untracked=untracked, files=files, links=links)


def names_at(paths: frozenset[bytes]) -> pa.Array:
    """The names of the rows that stand for some paths: their own, and those of folders that are not entered.

    Also those of folders that were not entered before git tracked one of the paths.
    """
    rows = {*paths, *(path + b"/" for path in paths), *folders_around(paths)}
    return pa.array([path_to_name(path) for path in rows], pa.string())


def metadata_to_keep(state: bytes, dirty: Collection[bytes]) -> dict[bytes, bytes]:
    """What the metadata of a table must hold so that the next run can take rows over."""
    if len(dirty) > _MOST_DIRTY:
        return {STATE: state}
    return {STATE: state, _DIRTY: b"".join(path + b"\0" for path in sorted(dirty))}


def outdated(metadata: Mapping[bytes, bytes] | None) -> dict[bytes, bytes]:
    """The metadata of a table of which some rows were brought up to date alone: the next run looks at everything."""
    return {key: value for key, value in (metadata or {}).items() if key not in {_DIRTY, FINGERPRINT}}


def to_look_at_again(
    entries: Sequence[Entry], contents: Sequence[Content], tree_status: TreeStatus, started_ns: int
) -> set[bytes]:
    """The paths that the next run has to look at, whatever git says then.

    Besides those that differ from the last commit now, they are those of which git does not know whether they change,
    and those that were written while this run went on, since they may have been read in another state than git saw.
    """
    odd = {
        entry.path
        for entry, content in zip(entries, contents, strict=True)
        if entry.mtime_ns >= started_ns or (content.reason or "").startswith(_ALWAYS)
    }
    return odd.union(tree_status.changed, tree_status.untracked, tree_status.hidden, tree_status.links)


def state_of(source: Source, rules: PathRules, tree_status: TreeStatus) -> bytes:
    """A digest of what decides rows besides git's files: the settings, our ignore files, where a shallow clone ends."""
    settings = repr(replace(source, path=Path(), remote=None))
    folders = folders_around((*tree_status.files, *tree_status.untracked))
    files = [folder + name for folder in folders for name in rules.ignore_files]
    present = sorted(path for path in files if os.path.lexists(join(rules.root, path)))
    seen = [(path, rules.read_ignore_file(path)) for path in present]
    return digest(repr((settings, seen, shallow_end(rules.root))).encode()).encode()


def _pruned(rules: PathRules, paths: Iterable[bytes]) -> frozenset[bytes]:
    """The folders that are not entered and hold one of the paths."""
    scopes = (rules.scope_around(path) for path in paths)
    return frozenset(scope.path for scope in scopes if isinstance(scope, Pruned))


def fingerprint(source: Source) -> str:
    """Return a string that changes when the files of a source, their time stamps or its settings change.

    No file is opened but ignore files, and files that a rule skips do not count, so that a growing log starts no run.
    For git it is made of the last commit, the index, and the files that differ from them. Of a repository that docindex
    clones it is the commit that is checked out: the remote is not asked.

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
    """The fingerprint of a repository that docindex clones, were that commit checked out."""
    return _fingerprint_of(source, commit)


def fingerprint_of_entries(source: Source, entries: Iterable[Entry]) -> str:
    """The fingerprint of a library in which `walk` found these entries."""
    # Of an entry that a rule skips, only that counts.
    states = [
        (path, reason, 0, 0) if reason else (path, "", size, mtime_ns) for path, size, mtime_ns, reason, *_ in entries
    ]
    return _fingerprint_of(source, sorted(states))


def fingerprint_of_work_trees(source: Source, rules: PathRules, trees: Sequence[WorkTree], state: bytes) -> str:
    """The fingerprint of a git source whose work trees stand so, and of which `state_of` says `state`."""
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
    """Size and time stamp of a file that discovery would look at; None for others.

    With its path, or that of the folder around it that is not entered.
    """
    scope = rules.scope_around(path)
    if isinstance(scope, Pruned):
        return scope.path, None
    if path.endswith(b"/") or rules.file_reason(scope, path[len(scope.path) :]) is not None:
        return path, None
    return path, stamp(root, path)
