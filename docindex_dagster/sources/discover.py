"""Discovery: a source to its `discovered_files` table."""

import errno
import os
import time
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from docindex_dagster.schemas import DISCOVERED_FILES
from docindex_dagster.sources import history
from docindex_dagster.sources.classify import FileKind, classify_name
from docindex_dagster.sources.content import Content, examine
from docindex_dagster.sources.entries import Entry, error_reason
from docindex_dagster.sources.memory import HEAD, RULES, RULES_VERSION, STARTED_NS, Memory, remember
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import path_to_name, read_beneath
from docindex_dagster.sources.rules import path_rules
from docindex_dagster.sources.walk import walk
from docindex_dagster.sources.worktree import list_work_tree

_UNWANTED = "code-not-wanted: include_code is false"


def discover(source: Source, previous: pa.Table | None = None) -> pa.Table:
    """Return the files of a source with the schema `DISCOVERED_FILES`, sorted by path.

    Every file found is a row; one that is not to be indexed says why in `skipped_reason`, written `rule: detail`. A
    folder that is not entered is one row, whose path ends in a slash. Given the previous table, files that have not
    changed are not opened. The schema's metadata say when discovery began and, for git, which commit it saw.

    Raises:
        SourceError: The folder is missing, or is not the root of a git work tree.
    """
    started_ns = time.time_ns()
    memory = remember(previous)
    head, found = list_entries(source)
    names, entries = _by_name(found)
    contents = [judge(source, entry, memory) for entry in entries]
    commits = _commits(source, head, zip(entries, contents, strict=True), memory)
    metadata = {STARTED_NS: str(started_ns).encode(), RULES: RULES_VERSION}
    if head is not None:
        metadata[HEAD] = head.encode()
    return _table(source.key, names, entries, contents, commits).replace_schema_metadata(metadata)


def list_entries(source: Source) -> tuple[str | None, Iterable[Entry]]:
    """Return the last commit, for git, and the entries of a source in no order.

    Raises:
        SourceError: As `discover` does.
    """
    rules = path_rules(source)
    if source.kind == "git":
        status, entries = list_work_tree(rules, untracked=source.untracked)
        return status.head, entries
    return None, walk(rules)


def judge(source: Source, entry: Entry, memory: Memory) -> Content:
    """Decide whether an entry is indexed, reading its file where nothing else decides and nothing is remembered."""
    reason = entry.reason or _setting_reason(source, entry)
    if reason is not None:
        return _unread(entry, reason)
    try:
        content = memory.content(entry) or examine(entry.path, _read(source, entry.path))
    except OSError as error:
        return _unread(entry, error_reason(error))
    return content if source.include_code or _is_document(content.kind) else Content(content.kind, reason=_UNWANTED)


def _setting_reason(source: Source, entry: Entry) -> str | None:
    if entry.size > source.max_file_bytes:
        return f"too-large: {entry.size} bytes, max_file_bytes is {source.max_file_bytes}"
    if not source.include_code and not _is_document(classify_name(entry.path)):
        return _UNWANTED
    return None


def _is_document(kind: FileKind | None) -> bool:
    return kind is None or kind.source_type == "doc"


def _unread(entry: Entry, reason: str) -> Content:
    return Content(None if entry.path.endswith(b"/") else classify_name(entry.path), reason=reason)


def _read(source: Source, path: bytes) -> bytes:
    data = read_beneath(os.fsencode(source.path), path, source.max_file_bytes + 1)
    if len(data) > source.max_file_bytes:
        raise OSError(errno.EFBIG, "grew past max_file_bytes while it was read")
    return data


def _commits(
    source: Source, head: str | None, found: Iterable[tuple[Entry, Content]], memory: Memory
) -> dict[bytes, str]:
    """Return the last commit of each file to index that is part of `head`."""
    if head is None:
        return {}
    root = os.fsencode(source.path)
    wanted = {entry.path for entry, content in found if entry.is_in_head and content.reason is None}
    known = {path: commit for path in wanted if (commit := memory.commit(path)) is not None}
    if known and memory.head != head:
        changed = history.changed_since(root, memory.head, head) if memory.head is not None else None
        known = {path: commit for path, commit in known.items() if changed is not None and path not in changed}
    return known | history.last_commits(root, head, wanted - known.keys())


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
        "commit": [commits.get(entry.path) for entry in entries],
        "is_uncommitted": [entry.is_uncommitted for entry in entries],
        "loader": [kind.loader if kind else None for kind in kinds],
        "encoding": [content.encoding for content in contents],
        "is_lossy": [content.is_lossy for content in contents],
        "skipped_reason": [content.reason for content in contents],
    }
    return pa.Table.from_pydict(columns, schema=DISCOVERED_FILES)
