"""The rows whose texts a search reads: from the files of the texts, or where a source has none, from the table."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from docindex_dagster.search.filters import Filters
from docindex_dagster.stores.reader import Reader
from docindex_dagster.stores.texts import Piece, Texts

_ROWS = 1000  # of a piece


def batches(reader: Reader, filters: Filters, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """All rows that meet the filters, with at least these columns, in no order."""
    if reader.texts is not None:
        for piece in pieces(reader.texts, filters):
            yield piece.batch
        return
    found = reader.table.search().where(filters.to_sql()).select(list(columns))
    yield from found.limit(None).to_batches()


def pieces(texts: Texts, filters: Filters) -> Iterator[Piece]:
    """The same of the files alone."""
    return texts.pieces(filters, filters.to_mask, _ROWS)
