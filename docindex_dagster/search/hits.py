"""Conversion of selected chunks to search results."""

from collections.abc import Mapping, Sequence
from typing import Any

from docindex_dagster.chunking.embedding_text import readable
from docindex_dagster.core.errors import DamagedStoreError
from docindex_dagster.core.traces import spanned
from docindex_dagster.documents.model import page_at
from docindex_dagster.search import snippets
from docindex_dagster.search.model import Hit, Intent, Scored
from docindex_dagster.stores import tantivy_index
from docindex_dagster.stores.reader import Reader

_COMPUTED = {
    "heading_path",
    "snippet",
    "line",
    "column",
    "symbol",
    "score",
    "signals",
    "file",
    "stale",
    "is_weak",
    "intent",
    "page",
}
_COPIED = tuple(name for name in Hit.__dataclass_fields__ if name not in _COMPUTED)


def rows_by_id(reader: Reader, chunk_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the rows of chunks by id, without chunks that do not exist."""
    return tantivy_index.rows(reader.searcher, reader.index.schema, chunk_ids)


@spanned("read rows")
def rows_of(reader: Reader, found: Sequence[Scored]) -> dict[str, dict[str, Any]]:
    """Return the rows of the chunks found, by id.

    Raises:
        DamagedStoreError: a chunk is missing.
    """
    rows = rows_by_id(reader, [item.chunk_id for item in found])
    if missing := [item.chunk_id for item in found if item.chunk_id not in rows]:
        raise DamagedStoreError(
            f"chunk {missing[0]} is in one store but not in another. Run `docindex doctor --repair`"
        )
    return rows


def hit_of(
    row: Mapping[str, Any],
    item: Scored,
    find: snippets.Finder,
    intent: Intent | None = None,
    *,
    is_weak: bool = False,
    is_scanned: bool = False,
) -> Hit:
    """Return a chunk as a result, with the lines that `find` matches best.

    Args:
        row: the chunk.
        item: its score.
        find: finds matches in a text.
        intent: of the query; None if it has none.
        is_weak: whether no result is close to the query.
        is_scanned: whether the raw text was scanned, including parts that readers do not see.
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
        intent=intent,
        page=page_at(row, line),
    )


def _symbol_at(row: Mapping[str, Any], line: int) -> str | None:
    """Return the innermost symbol at a line that starts in the chunk, or else the symbol that the chunk is part of."""
    symbols = row["symbols"] or ()
    # Indexes of earlier versions do not record which symbols are local.
    enclosing = [
        symbol
        for symbol in symbols
        if not symbol.get("is_local") and symbol["start_line"] <= line <= symbol["end_line"]
    ]
    if enclosing:
        innermost = max(enclosing, key=lambda symbol: (symbol["start_line"], -symbol["end_line"]))
        name: str | None = innermost["qualified_name"]
        return name
    starts_here = any(symbol["qualified_name"] == row["qualified_name"] for symbol in symbols)
    owner: str | None = row["parent"] if starts_here else row["qualified_name"]
    return owner
