"""Finding chunks by name rather than by meaning: an id, `source::path::index`, or `path:line`."""

import re
from collections.abc import Sequence
from typing import Any

from docindex_dagster.chunking.rows import chunk_id
from docindex_dagster.errors import QueryError
from docindex_dagster.stores import tantivy_index
from docindex_dagster.stores.damage import reading_stores
from docindex_dagster.stores.reader import Reader

_ID = re.compile(r"[0-9a-f]{32}")
_WRITTEN_ID = re.compile(r"(?P<source>.+?)::(?P<path>.+)::(?P<index>\d+)", re.DOTALL)
_PLACE = re.compile(r"(?P<path>.+):(?P<line>\d{1,9})(-\d{1,9})?", re.DOTALL)
_MOST_CHUNKS_A_FILE = 100_000


def find_chunks(reader: Reader, reference: str, sources: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The rows that a reference names: one for an id, one a source for `path:line`, all of a file for a path alone.

    With `sources`, only rows of these.

    Raises:
        QueryError: nothing fits.
    """
    with reading_stores():
        found = _rows(reader, reference)
    found = [row for row in found if not sources or row["source"] in sources]
    if not found:
        raise QueryError(f"no indexed chunk is named {reference!r}; `docindex why PATH` says whether a file is indexed")
    return found


def _rows(reader: Reader, reference: str) -> list[dict[str, Any]]:
    written = _WRITTEN_ID.fullmatch(reference)
    if _ID.fullmatch(reference) or written:
        wanted = chunk_id(written["source"], written["path"], int(written["index"])) if written else reference
        return list(tantivy_index.rows(reader.searcher, reader.index.schema, [wanted]).values())
    place = _PLACE.fullmatch(reference)
    whole = _in_file(reader, reference, None)
    return whole or (_in_file(reader, place["path"], int(place["line"])) if place else [])


def _in_file(reader: Reader, path: str, line: int | None) -> list[dict[str, Any]]:
    rows = tantivy_index.matching(reader.searcher, reader.index.schema, "path", path, _MOST_CHUNKS_A_FILE)
    return [row for row in rows if line is None or row["start_line"] <= line <= row["end_line"]]
