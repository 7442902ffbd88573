"""From the chunks that were chosen to the results that are shown."""

from collections.abc import Mapping, Sequence
from typing import Any

from docindex_dagster.chunking.embedding_text import readable
from docindex_dagster.core.errors import DamagedStoreError
from docindex_dagster.core.traces import spanned
from docindex_dagster.documents.model import page_at
from docindex_dagster.search import snippets
from docindex_dagster.search.model import Hit, Scored
from docindex_dagster.stores import tantivy_index
from docindex_dagster.stores.reader import Reader

_MADE = {"heading_path", "snippet", "line", "column", "symbol", "score", "signals", "file", "stale", "is_weak", "page"}
_COPIED = tuple(name for name in Hit.__dataclass_fields__ if name not in _MADE)


def rows_by_id(reader: Reader, chunk_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The rows of some chunks, by their ids, without those that are not there."""
    return tantivy_index.rows(reader.searcher, reader.index.schema, chunk_ids)


@spanned("read rows")
def rows_of(reader: Reader, found: Sequence[Scored]) -> dict[str, dict[str, Any]]:
    """The chunks that were found, by their ids.

    Raises:
        DamagedStoreError: one of them is not there.
    """
    rows = rows_by_id(reader, [item.chunk_id for item in found])
    if lost := [item.chunk_id for item in found if item.chunk_id not in rows]:
        raise DamagedStoreError(f"chunk {lost[0]} is in one store and not in another; run `docindex doctor --repair`")
    return rows


def hit_of(
    row: Mapping[str, Any], item: Scored, find: snippets.Finder, *, is_weak: bool = False, is_scanned: bool = False
) -> Hit:
    """A chunk as a result, with the lines of it that `find` finds the most in.

    Args:
        row: the chunk.
        item: its score.
        find: finds matches in a text.
        is_weak: whether nothing of the answer is close to the query.
        is_scanned: whether the text was read as it is, with what is not for readers.
    """
    copied = {name: row[name] for name in _COPIED}
    snippet = snippets.snippet(row["text"], find, None if is_scanned else readable(row))
    line = min(row["start_line"] + snippet.line, row["end_line"])
    return Hit(
        **copied,
        heading_path=tuple(row["heading_path"] or ()),
        snippet=snippet,
        line=line,
        column=snippet.column,
        symbol=_symbol_at(row, line),
        score=item.score,
        signals=item.signals,
        is_weak=is_weak,
        page=page_at(row, line),
    )


def _symbol_at(row: Mapping[str, Any], line: int) -> str | None:
    """The innermost symbol at a line: of those that begin in the chunk, else the one that the chunk is a part of."""
    symbols = row["symbols"] or ()
    # An index of an earlier version does not say which symbols are local.
    around = [one for one in symbols if not one.get("is_local") and one["start_line"] <= line <= one["end_line"]]
    if around:
        name: str | None = max(around, key=lambda one: (one["start_line"], -one["end_line"]))["qualified_name"]
        return name
    begins_here = any(one["qualified_name"] == row["qualified_name"] for one in symbols)
    found: str | None = row["parent"] if begins_here else row["qualified_name"]
    return found
