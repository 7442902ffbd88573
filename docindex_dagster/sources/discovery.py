"""Discovery: build the `discovered_files` table of a source."""

import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.events import reporter
from docindex_dagster.core.schemas import DISCOVERED_FILES
from docindex_dagster.core.tables import STARTED_NS
from docindex_dagster.sources import changes, history
from docindex_dagster.sources.changes import Moves
from docindex_dagster.sources.classify import FileKind, classify_name
from docindex_dagster.sources.content import Content, examine
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import Root, error_reason, name_to_path, path_to_name, read_complete
from docindex_dagster.sources.previous_listing import FINGERPRINT, HEAD, RULES, Memory, load_memory, rules_version
from docindex_dagster.sources.rules import path_rules
from docindex_dagster.sources.walk import Entry, stamp, walk
from docindex_dagster.sources.worktree import TreeStatus, list_files, read_work_trees

# File timestamps come from a kernel clock that ticks at least a hundred times a second, so a file written now may carry
# a timestamp that is older by one tick.
_CLOCK_TICK_NS = 10_000_000
# How far a file server's clock may be ahead of this machine's.
_MAX_CLOCK_SKEW_NS = 60_000_000_000
_UNWANTED = "code-not-wanted: include_code is false"


@dataclass(frozen=True, slots=True)
class _Listing:
    """The entries to examine and the previous rows to keep; for git, also the state of the work tree."""

    entries: Collection[Entry]
    kept: pa.Table
    fingerprint: str = ""
    tree_status: TreeStatus | None = None
    moves: Moves | None = None
    state: bytes = b""


def discover(source: Source, previous: pa.Table | None = None, only: Collection[str] = ()) -> pa.Table:
    """Return the files of a source with the schema `DISCOVERED_FILES`, sorted by path.

    Every file found is a row; `skipped_reason` says why a file is not indexed, as `rule: detail`. A folder that is not
    entered is a single row whose path ends in a slash. With the previous table, unchanged files are not opened, and
    files that git knows to be unchanged are not even checked. With `only`, a set of row names, only these files are
    examined and all other rows are kept. The schema's metadata record when discovery began, which commit of a git
    source it saw, and the fingerprint at that time.

    Raises:
        SourceError: The folder is missing, or is not the root of a git work tree.
    """
    started_ns = time.time_ns() - _CLOCK_TICK_NS
    if previous is not None and not previous.schema.equals(DISCOVERED_FILES):  # written by another version
        previous = None
    found = _find_only(source, previous, only) if only and previous is not None else _find(source, previous)
    names, entries = _by_name(found.entries)
    rules = rules_version(source.secrets)
    memory = load_memory(previous, names, rules)
    announce = reporter(source.key, "discovered_files", "files")
    contents = []
    for done, entry in enumerate(entries, start=1):
        contents.append(judge(source, entry, memory))
        announce(done, len(entries))
    source.folder()  # raises if a pull has replaced it with a symlink since it was listed
    commits = _commits(source, found, zip(entries, contents, strict=True), memory)
    table = _table(source.key, names, entries, contents, commits)
    if found.kept.num_rows:
        table = pa.concat_tables([found.kept.replace_schema_metadata(None), table]).sort_by("path").combine_chunks()
    if only and previous is not None:
        return table.replace_schema_metadata(changes.partial_update_metadata(previous.schema.metadata))
    metadata = {STARTED_NS: str(started_ns).encode(), RULES: rules}
    # Only docindex writes to a checkout.
    if found.tree_status is None or source.remote is not None or _is_settled(source, entries, started_ns):
        metadata[FINGERPRINT] = found.fingerprint.encode()
    if found.tree_status is not None and found.tree_status.head is not None:
        again = changes.paths_to_recheck(entries, contents, found.tree_status, started_ns)
        metadata |= {HEAD: found.tree_status.head.encode(), **changes.reuse_metadata(found.state, again)}
    return table.replace_schema_metadata(metadata)


def _find(source: Source, previous: pa.Table | None) -> _Listing:
    none = DISCOVERED_FILES.empty_table()
    if source.kind != "git":
        walked = list(walk(path_rules(source)))
        return _Listing(walked, none, changes.fingerprint_of_entries(source, walked))
    rules, trees = read_work_trees(source)
    tree_status = trees[0].tree_status
    state = changes.state_of(source, rules, tree_status)
    seen = changes.fingerprint_of_work_trees(source, rules, trees, state)
    moves = changes.compute_moves(previous, source, tree_status.head, state)
    kept = none
    if previous is not None and moves is not None and not source.submodules:
        suspects = changes.suspects(previous, moves, rules, tree_status)
        kept = _rows_except(previous, suspects)
        trees = [replace(trees[0], tree_status=changes.tree_status_at(rules, tree_status, suspects))]
    entries = list_files(rules, trees, submodules=source.submodules)
    return _Listing(entries, kept, seen, tree_status, moves, state)


def _find_only(source: Source, previous: pa.Table, only: Collection[str]) -> _Listing:
    """Examine only some paths."""
    paths = frozenset(name_to_path(name) for name in only)
    kept = _rows_except(previous, paths)
    if source.kind != "git":
        return _Listing([entry for entry in walk(path_rules(source)) if entry.path in paths], kept)
    rules, trees = read_work_trees(source)
    tree_status = trees[0].tree_status
    if not source.submodules:
        trees = [replace(trees[0], tree_status=changes.tree_status_at(rules, tree_status, paths))]
    entries = list_files(rules, trees, submodules=source.submodules)
    return _Listing([entry for entry in entries if entry.path in paths], kept, tree_status=tree_status)


def _rows_except(previous: pa.Table, paths: frozenset[bytes]) -> pa.Table:
    """Return the rows of all other paths."""
    return previous.filter(pc.invert(pc.is_in(previous["path"], changes.names_at(paths))))


def list_entries(source: Source) -> Collection[Entry]:
    """Return the entries of a source in no particular order.

    Raises:
        SourceError: As `discover` does.
    """
    return _find(source, None).entries


def judge(source: Source, entry: Entry, memory: Memory) -> Content:
    """Decide whether an entry is indexed; read its file only if no rule decides and `memory` has no answer."""
    reason = entry.reason or _setting_reason(source, entry)
    if reason is not None:
        return _unread(entry, reason)
    try:
        content = memory.content(entry) or _examine(source, entry.path)
    except OSError as error:
        return _unread(entry, error_reason(error))
    return content if source.include_code or _is_document(content.kind) else Content(content.kind, reason=_UNWANTED)


def _setting_reason(source: Source, entry: Entry) -> str | None:
    most = source.max_bytes_of(entry.path)
    if entry.size > most:
        times = "" if most == source.max_file_bytes else f", times {most // source.max_file_bytes} for converted files"
        return f"too-large: {entry.size} bytes, max_file_bytes is {source.max_file_bytes}{times}"
    if not source.include_code and not _is_document(classify_name(entry.path)):
        return _UNWANTED
    return None


def _is_document(kind: FileKind | None) -> bool:
    return kind is None or kind.source_type == "doc"


def _unread(entry: Entry, reason: str) -> Content:
    return Content(None if entry.path.endswith(b"/") else classify_name(entry.path), reason=reason)


def _examine(source: Source, path: bytes) -> Content:
    data = read_complete(os.fsencode(source.folder()), path, source.max_bytes_of(path))
    return examine(path, data, skips_secrets=source.secrets == "skip")


def _commits(
    source: Source, found: _Listing, judged: Iterable[tuple[Entry, Content]], memory: Memory
) -> dict[bytes, str]:
    """Return the last commit of each file to index that the HEAD commit contains."""
    if found.tree_status is None or found.tree_status.head is None:
        return {}
    wanted, known = set[bytes](), dict[bytes, str]()
    for entry, content in judged:
        if entry.is_in_head and content.reason is None:
            path = entry.commit_path or entry.path
            wanted.add(path)
            commit = memory.commit(entry.path)
            if commit is not None and found.moves is not None and path not in found.moves.touched:
                known[path] = commit
    return known | history.last_commits(os.fsencode(source.path), found.tree_status.head, wanted - known.keys())


def _is_settled(source: Source, entries: Iterable[Entry], started_ns: int) -> bool:
    """Return whether no file of a work tree was written after git examined it.

    The fingerprint lacks the timestamps of files that git considered unchanged, so reverting one of them would go
    unnoticed. A file dated in the future was not written now.
    """
    latest_ns = time.time_ns() + _MAX_CLOCK_SKEW_NS
    with Root(os.fsencode(source.folder())) as root:
        return all(
            not started_ns <= entry.mtime_ns <= latest_ns and stamp(root, entry.path) == (entry.size, entry.mtime_ns)
            for entry in entries
            if entry.reason is None
        )


def _by_name(found: Iterable[Entry]) -> tuple[list[str], list[Entry]]:
    """Sort entries by their names in the table; return the names and the entries."""
    by_name = {path_to_name(entry.path): entry for entry in found}
    names = sorted(by_name)
    return names, [by_name[name] for name in names]


def _table(
    key: str,
    names: Sequence[str],
    entries: Sequence[Entry],
    contents: Sequence[Content],
    commits: Mapping[bytes, str],
) -> pa.Table:
    kinds = [content.kind for content in contents]
    columns = {
        "source": [key] * len(entries),
        "path": names,
        "size": [entry.size for entry in entries],
        "mtime_ns": [entry.mtime_ns for entry in entries],
        "content_hash": [content.content_hash for content in contents],
        "source_type": [kind.source_type if kind else None for kind in kinds],
        "language": [kind.language if kind else None for kind in kinds],
        "git_blob": [entry.blob for entry in entries],
        "commit": [commits.get(entry.commit_path or entry.path) for entry in entries],
        "is_uncommitted": [entry.is_uncommitted for entry in entries],
        "loader": [kind.loader if kind else None for kind in kinds],
        "encoding": [content.encoding for content in contents],
        "is_lossy": [content.is_lossy for content in contents],
        "masked": [_structs(content) for content in contents],
        "skipped_reason": [content.reason for content in contents],
    }
    return pa.Table.from_pydict(columns, schema=DISCOVERED_FILES)


def _structs(content: Content) -> list[dict[str, object]] | None:
    return None if content.masked is None else [secret._asdict() for secret in content.masked]
