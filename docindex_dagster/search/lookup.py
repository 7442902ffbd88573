"""Finding chunks by name rather than by meaning: an id, `source::path::index`, `path:line`, or a commit's hash."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from docindex_dagster.chunking.rows import chunk_id
from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.keys import is_branch
from docindex_dagster.core.schemas import COMMIT_PATH
from docindex_dagster.search.filters import Filters
from docindex_dagster.stores import tantivy_index
from docindex_dagster.stores.damage import reading_stores
from docindex_dagster.stores.reader import Reader

_ID = re.compile(r"[0-9a-f]{32}")
_WRITTEN_ID = re.compile(r"(?P<source>.+?)::(?P<path>.+)::(?P<index>\d{1,9})", re.DOTALL)
_PLACE = re.compile(r"(?P<path>.+):(?P<line>\d{1,9})(-\d{1,9})?", re.DOTALL)
_COMMIT_ID = re.compile(r"[0-9a-f]{7,64}")
_MOST_CHUNKS_A_FILE = 100_000
_MOST_COMMITS = 10


def check_paths(reader: Reader, filters: Filters) -> None:
    """Distinguish a filter of paths that no file meets from words that no file has.

    Raises:
        QueryError: it is one that no file meets.
    """
    from tantivy import Query

    if filters.path_glob is None:
        return
    clauses = replace(filters, languages=(), symbol_kinds=()).to_clauses(reader.index.schema)
    if not reader.searcher.search(Query.boolean_query(clauses), limit=1, count=False).hits:
        where = f" of {', '.join(filters.sources)}" if filters.sources else ""
        raise QueryError(f"no indexed file{where} has the path {filters.path_glob!r}, seen from the source's root")


def find_chunks(reader: Reader, reference: str, sources: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The rows that a reference names: one for an id, one a source for `path:line`, all of a file for a path alone.

    What is nothing of this may be the beginning of a commit's hash.

    With `sources`, only rows of these; without, those of further branches only where no other source has any.

    Raises:
        QueryError: nothing fits.
    """
    with reading_stores():
        found = _rows(reader, reference)
    if sources:
        found = [row for row in found if row["source"] in sources]
    else:
        found = [row for row in found if not is_branch(row["source"])] or found
    if not found:
        raise QueryError(_nothing_found(reader, reference, sources))
    return found


def _nothing_found(reader: Reader, reference: str, sources: Sequence[str]) -> str:
    """What to say where nothing fits: the line may be one that an indexed file does not have."""
    place = _PLACE.fullmatch(reference)
    with reading_stores():
        rows = _in_file(reader, place["path"], None) if place else []
    rows = [row for row in rows if not sources or row["source"] in sources]
    if place is None or not rows:
        return f"no indexed chunk is named {reference!r}; `docindex why PATH` says whether a file is indexed"
    last = max(row["end_line"] for row in rows)
    return f"no indexed chunk of {place['path']} is at line {place['line']}; the last line that is indexed is {last}"


def _rows(reader: Reader, reference: str) -> list[dict[str, Any]]:
    written = _WRITTEN_ID.fullmatch(reference)
    if _ID.fullmatch(reference) or written:
        wanted = chunk_id(written["source"], written["path"], int(written["index"])) if written else reference
        return list(tantivy_index.rows(reader.searcher, reader.index.schema, [wanted]).values())
    if whole := _in_file(reader, reference, None):
        return whole
    if place := _PLACE.fullmatch(reference):
        return _in_file(reader, place["path"], int(place["line"]))
    return _commits(reader, reference.lower()) if _COMMIT_ID.fullmatch(reference.lower()) else []


def _in_file(reader: Reader, path: str, line: int | None) -> list[dict[str, Any]]:
    rows = tantivy_index.matching(reader.searcher, reader.index.schema, "path", path, _MOST_CHUNKS_A_FILE)
    return [row for row in rows if line is None or row["start_line"] <= line <= row["end_line"]]


def _commits(reader: Reader, beginning: str) -> list[dict[str, Any]]:
    from tantivy import Query

    query = Query.regex_query(reader.index.schema, "path", f"{re.escape(COMMIT_PATH)}{beginning}[0-9a-f]*")
    hits = reader.searcher.search(query, limit=_MOST_COMMITS, count=False).hits
    rows = [tantivy_index.stored_row(reader.searcher, address) for _, address in hits]
    return sorted(rows, key=lambda row: (row["source"], row["path"]))
