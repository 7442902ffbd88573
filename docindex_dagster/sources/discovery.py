"""Discovery: a source to its `discovered_files` table."""

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
from docindex_dagster.sources.paths import Root, error_reason, name_to_path, path_to_name, read_whole
from docindex_dagster.sources.previous_listing import FINGERPRINT, HEAD, RULES, Memory, remember, rules_version
from docindex_dagster.sources.rules import path_rules
from docindex_dagster.sources.walk import Entry, stamp, walk
from docindex_dagster.sources.worktree import TreeStatus, list_files, read_work_trees

# Time stamps of files come from a clock of the kernel's that ticks a hundred times a second, or more often: that of a
# file which is written now may be so much older.
_CLOCK_TICK_NS = 10_000_000
# How far the clock of a file server may be ahead of ours.
_CLOCKS_APART_NS = 60_000_000_000
_UNWANTED = "code-not-wanted: include_code is false"


@dataclass(frozen=True, slots=True)
class _Found:
    """What is to be looked at, and the rows of the previous table that stand as they are; for git, how it stands."""

    entries: Collection[Entry]
    kept: pa.Table
    fingerprint: str = ""
    tree_status: TreeStatus | None = None
    moves: Moves | None = None
    state: bytes = b""


def discover(source: Source, previous: pa.Table | None = None, only: Collection[str] = ()) -> pa.Table:
    """Return the files of a source with the schema `DISCOVERED_FILES`, sorted by path.

    Every file found is a row; one that is not to be indexed says why in `skipped_reason`, written `rule: detail`. A
    folder that is not entered is one row, whose path ends in a slash. Given the previous table, files that have not
    changed are not opened, and where git knows, not even looked at. With `only`, names of rows, nothing else is, and
    the other rows stay as they were. The schema's metadata say when discovery began, for git which commit it saw, and
    what `fingerprint` gave then.

    Raises:
        SourceError: The folder is missing, or is not the root of a git work tree.
    """
    started_ns = time.time_ns() - _CLOCK_TICK_NS
    if previous is not None and not previous.schema.equals(DISCOVERED_FILES):  # another version made it
        previous = None
    found = _find_only(source, previous, only) if only and previous is not None else _find(source, previous)
    names, entries = _by_name(found.entries)
    rules = rules_version(source.secrets)
    memory = remember(previous, names, rules)
    announce = reporter(source.key, "discovered_files", "files")
    contents = []
    for done, entry in enumerate(entries, start=1):
        contents.append(judge(source, entry, memory))
        announce(done, len(entries))
    source.folder()  # raises if a pull has made it a link since it was listed
    commits = _commits(source, found, zip(entries, contents, strict=True), memory)
    table = _table(source.key, names, entries, contents, commits)
    if found.kept.num_rows:
        table = pa.concat_tables([found.kept.replace_schema_metadata(None), table]).sort_by("path").combine_chunks()
    if only and previous is not None:
        return table.replace_schema_metadata(changes.outdated(previous.schema.metadata))
    metadata = {STARTED_NS: str(started_ns).encode(), RULES: rules}
    # Nobody but us writes a checkout.
    if found.tree_status is None or source.remote is not None or _are_settled(source, entries, started_ns):
        metadata[FINGERPRINT] = found.fingerprint.encode()
    if found.tree_status is not None and found.tree_status.head is not None:
        again = changes.to_look_at_again(entries, contents, found.tree_status, started_ns)
        metadata |= {HEAD: found.tree_status.head.encode(), **changes.metadata_to_keep(found.state, again)}
    return table.replace_schema_metadata(metadata)


def _find(source: Source, previous: pa.Table | None) -> _Found:
    none = DISCOVERED_FILES.empty_table()
    if source.kind != "git":
        walked = list(walk(path_rules(source)))
        return _Found(walked, none, changes.fingerprint_of_entries(source, walked))
    rules, trees = read_work_trees(source)
    tree_status = trees[0].tree_status
    state = changes.state_of(source, rules, tree_status)
    seen = changes.fingerprint_of_work_trees(source, rules, trees, state)
    moves = changes.moves_since(previous, source, tree_status.head, state)
    kept = none
    if previous is not None and moves is not None and not source.submodules:
        suspects = changes.suspects(previous, moves, rules, tree_status)
        kept = _others(previous, suspects)
        trees = [replace(trees[0], tree_status=changes.tree_status_at(rules, tree_status, suspects))]
    entries = list_files(rules, trees, submodules=source.submodules)
    return _Found(entries, kept, seen, tree_status, moves, state)


def _find_only(source: Source, previous: pa.Table, only: Collection[str]) -> _Found:
    """Look at some paths alone."""
    asked = frozenset(name_to_path(name) for name in only)
    kept = _others(previous, asked)
    if source.kind != "git":
        return _Found([entry for entry in walk(path_rules(source)) if entry.path in asked], kept)
    rules, trees = read_work_trees(source)
    tree_status = trees[0].tree_status
    if not source.submodules:
        trees = [replace(trees[0], tree_status=changes.tree_status_at(rules, tree_status, asked))]
    entries = list_files(rules, trees, submodules=source.submodules)
    return _Found([entry for entry in entries if entry.path in asked], kept, tree_status=tree_status)


def _others(previous: pa.Table, paths: frozenset[bytes]) -> pa.Table:
    """The rows that do not stand for some paths."""
    return previous.filter(pc.invert(pc.is_in(previous["path"], changes.names_at(paths))))


def list_entries(source: Source) -> Collection[Entry]:
    """Return the entries of a source in no order.

    Raises:
        SourceError: As `discover` does.
    """
    return _find(source, None).entries


def judge(source: Source, entry: Entry, memory: Memory) -> Content:
    """Decide whether an entry is indexed, reading its file where nothing else decides and nothing is remembered."""
    reason = entry.reason or _setting_reason(source, entry)
    if reason is not None:
        return _unread(entry, reason)
    try:
        content = memory.content(entry) or _examine(source, entry.path)
    except OSError as error:
        return _unread(entry, error_reason(error))
    return content if source.include_code or _is_document(content.kind) else Content(content.kind, reason=_UNWANTED)


def _setting_reason(source: Source, entry: Entry) -> str | None:
    most = source.most_bytes(entry.path)
    if entry.size > most:
        times = "" if most == source.max_file_bytes else f", times {most // source.max_file_bytes} for what is no text"
        return f"too-large: {entry.size} bytes, max_file_bytes is {source.max_file_bytes}{times}"
    if not source.include_code and not _is_document(classify_name(entry.path)):
        return _UNWANTED
    return None


def _is_document(kind: FileKind | None) -> bool:
    return kind is None or kind.source_type == "doc"


def _unread(entry: Entry, reason: str) -> Content:
    return Content(None if entry.path.endswith(b"/") else classify_name(entry.path), reason=reason)


def _examine(source: Source, path: bytes) -> Content:
    data = read_whole(os.fsencode(source.folder()), path, source.most_bytes(path))
    return examine(path, data, skips_secrets=source.secrets == "skip")


def _commits(
    source: Source, found: _Found, judged: Iterable[tuple[Entry, Content]], memory: Memory
) -> dict[bytes, str]:
    """Return the last commit of each file to index that is part of the last commit of all."""
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


def _are_settled(source: Source, entries: Iterable[Entry], started_ns: int) -> bool:
    """Whether no file of a work tree was written since git was asked about it.

    The fingerprint has no time stamps of files that git took for unchanged: were one changed back, that would pass
    unnoticed. A file that is dated in the future was not written now.
    """
    latest_ns = time.time_ns() + _CLOCKS_APART_NS
    with Root(os.fsencode(source.folder())) as root:
        return all(
            not started_ns <= entry.mtime_ns <= latest_ns and stamp(root, entry.path) == (entry.size, entry.mtime_ns)
            for entry in entries
            if entry.reason is None
        )


def _by_name(found: Iterable[Entry]) -> tuple[list[str], list[Entry]]:
    """Sort entries by the names that the table gives them; return both."""
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
