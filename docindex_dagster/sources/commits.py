"""The newest commits of a git source: author, date, message and changed files.

A commit never changes, so commits that an earlier run read come from its table; commits that a history rewrite dropped
disappear by themselves. A commit whose files a partial clone lacked is recorded without line counts until a full run.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.schemas import COMMITS
from docindex_dagster.core.tables import column_version, stamp
from docindex_dagster.sources import git, history, noise
from docindex_dagster.sources.classify import classify_name
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import path_to_name
from docindex_dagster.sources.previous_listing import rules_version
from docindex_dagster.sources.secrets import find_secrets, mask, secret_reason
from docindex_dagster.sources.text import decode

# Increase it when the same commit yields another row.
HISTORY_VERSION = "1"
_VERSION = b"docindex.history_version"
_REQUEST = b"docindex.asked"  # metadata key for the result of `_request_version`

_MAX_FILES = 100
_MAX_MESSAGE = 20_000  # characters, like the limits below
_MAX_SUBJECT = 200
_MAX_NAME = 100
_BYTES_PER_CHARACTER = 4
_LAST_SECOND = 253_402_300_799  # the end of the year 9999
_CONTROLS = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)))


@dataclass(frozen=True, slots=True)
class History:
    """The commits of a source, stamped with their data version, and its repository statistics, if any."""

    commits: pa.Table
    figures: history.RepositoryStatistics | None


def read_history(source: Source, head: str | None, previous: pa.Table | None, limit: int) -> History:
    """Return the commits of a source and store the statistics in the table's metadata; arguments as in `read_commits`.

    Raises:
        SourceError: git cannot read the history.
    """
    table = read_commits(source, head, previous, limit)
    before = (
        history.from_json((previous.schema.metadata or {}).get(history.REPOSITORY)) if previous is not None else None
    )
    figures = history.read_statistics(source, head, before) if source.kind == "git" else None
    encoded = history.to_json(figures) if figures else ""
    metadata = {history.REPOSITORY: encoded.encode(), _REQUEST: _request_version(source, head, limit)}
    described = table.replace_schema_metadata({**(table.schema.metadata or {}), **metadata})
    return History(stamp(described, digest_parts(column_version(table, "row_hash"), encoded)), figures)


def is_current_history(source: Source, commits: pa.Table, head: str | None, limit: int) -> bool:
    """Return whether `read_history` would return the same commits again."""
    return (commits.schema.metadata or {}).get(_REQUEST) == _request_version(source, head, limit)


def _request_version(source: Source, head: str | None, limit: int) -> bytes:
    """Return what decides the commits of a source; empty if there are none."""
    return b"%s %s" % (f"{HISTORY_VERSION} {head} {limit}".encode(), rules_version(source.secrets)) if head else b""


def read_commits(source: Source, head: str | None, previous: pa.Table | None, limit: int) -> pa.Table:
    """Return up to `limit` commits reachable from `head`, newest first, with the schema `COMMITS`.

    Args:
        source: The source to read; a library has no commits.
        head: Id of the newest commit, or None before the first.
        previous: The table of an earlier run, whose rows are reused.
        limit: Maximum number of commits; 0 for none.

    Raises:
        SourceError: git cannot read the history.
    """
    if source.kind != "git" or head is None or limit == 0:
        return COMMITS.empty_table()
    root = os.fsencode(source.path)
    # At the boundary of a shallow clone, commits differ from the originals.
    end = history.shallow_end(root).decode("ascii", "replace")
    version = digest_parts(HISTORY_VERSION, rules_version(source.secrets).decode(), end).encode()
    wanted = pa.array(git.run(root, "rev-list", f"--max-count={limit}", head, "--").decode().split(), pa.string())
    known = _reusable(previous, version)
    missing = wanted.filter(pc.invert(pc.is_in(wanted, known["commit"].combine_chunks())))
    rows = pa.concat_tables([known, _read(source, root, missing.to_pylist())])
    source.check_repository()  # last, so that nothing that git read before is used
    table = rows.take(pc.index_in(wanted, rows["commit"].combine_chunks())).combine_chunks()
    return table.replace_schema_metadata({_VERSION: version})


def _reusable(previous: pa.Table | None, version: bytes) -> pa.Table:
    """Return the rows of an earlier run if they would be read the same way now."""
    if previous is None or not previous.schema.equals(COMMITS):
        return COMMITS.empty_table()
    if (previous.schema.metadata or {}).get(_VERSION) != version:
        return COMMITS.empty_table()
    return previous.replace_schema_metadata(None)


def _read(source: Source, root: bytes, commits: Sequence[str]) -> pa.Table:
    if not commits:
        return COMMITS.empty_table()
    found = list(history.heads(root, commits))
    counted = [head.commit for head in found if 0 < head.file_count <= history.MAX_FILES_READ]
    hunks = dict(history.read_hunks(root, counted))
    return pa.Table.from_pylist([_row(source, head, hunks.get(head.commit)) for head in found], COMMITS)


def _row(source: Source, head: history.Head, hunks: list[history.FileHunks] | None) -> dict[str, Any]:
    _, parents, author, email, authored, committed, message = head.fields
    masked = _masked if source.secrets == "skip" else str
    text = masked(_text(message, _MAX_MESSAGE))
    files = list(_files(head.changes, hunks, masked))
    row = {
        "source": source.key,
        "commit": head.commit,
        "parents": parents.decode().split(),
        "author": _text(author, _MAX_NAME),
        "author_email": _text(email, _MAX_NAME),
        "authored_at": _milliseconds(authored),
        "committed_at": _milliseconds(committed),
        "subject": " ".join(text.partition("\n\n")[0].split())[:_MAX_SUBJECT],
        "message": text,
        "files": files[:_MAX_FILES],
        "file_count": head.file_count,
        "insertions": None if hunks is None else sum(file["insertions"] or 0 for file in files),
        "deletions": None if hunks is None else sum(file["deletions"] or 0 for file in files),
    }
    return {**row, "row_hash": digest_parts(*(repr(value) for value in row.values()))}


def _files(
    changes: Sequence[history.Change], hunks: list[history.FileHunks] | None, masked: Callable[[str], str]
) -> Iterator[dict[str, Any]]:
    patches = iter(hunks or ())
    for change in changes:
        found = list(islice(patches, change.patches))
        counted = [patch for patch in found if patch.insertions is not None and patch.deletions is not None]
        functions = [masked(_text(name, _MAX_NAME)) for patch in found for name in patch.functions]
        yield {
            "status": change.status,
            "path": path_to_name(change.path),
            "renamed_from": None if change.renamed_from is None else path_to_name(change.renamed_from),
            "insertions": sum(patch.insertions or 0 for patch in counted) if counted else None,
            "deletions": sum(patch.deletions or 0 for patch in counted) if counted else None,
            "functions": functions if _is_quotable(change.path) else [],
        }


def _is_quotable(path: bytes) -> bool:
    """Return whether lines of a file may be stored in a table: only lines of code, since others may hold secrets."""
    kind = classify_name(path)
    is_code = kind is not None and kind.source_type in {"code", "test"}
    folder = path.rfind(b"/") + 1
    return is_code and (secret_reason(path[:folder], path[folder:]) or noise.file_reason(path[folder:])) is None


def _text(data: bytes, max_length: int) -> str:
    """Return an author's text in any encoding, without control characters and truncated."""
    return decode(data[: max_length * _BYTES_PER_CHARACTER]).text.translate(_CONTROLS)[:max_length].strip()


def _masked(text: str) -> str:
    return mask(text, find_secrets(text))


def _milliseconds(seconds: bytes) -> int | None:
    """Return milliseconds since 1970; None if the input is not a valid date."""
    number = int(seconds) if seconds.isdigit() else -1
    return number * 1000 if 0 <= number <= _LAST_SECOND else None
