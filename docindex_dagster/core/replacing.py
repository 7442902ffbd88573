"""Tables that are sorted by path, and the rows of some files in them replaced, without a look at all others."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_LARGE = 16 << 20  # bytes of a column


def joined_by_path(parts: list[pa.Table]) -> pa.Table:
    """One table of all, sorted by path, the rows of a file in the order in which they were found.

    The list is emptied, and each column is let go of when it is copied: large tables are not in memory twice.
    """
    table = pa.concat_tables(parts)
    parts.clear()
    order, schema, columns = _order(table["path"]), table.schema, []
    while table.num_columns:
        column = table.column(0)
        table = table.remove_column(0)
        columns.append(column.combine_chunks() if order is None else column.take(order).combine_chunks())
        if column.nbytes > _LARGE:
            del column
            pa.default_memory_pool().release_unused()  # Arrow's allocator holds on to it
    return pa.Table.from_arrays(columns, schema=schema)


def _order(paths: pa.ChunkedArray) -> pa.Array | None:
    """The rows of paths, sorted by these; None where they are sorted."""
    encoded = paths.combine_chunks().dictionary_encode()
    ranks = np.empty(len(encoded.dictionary), np.int64)
    ranks[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(ranks))
    places = ranks[encoded.indices.to_numpy()]
    return None if np.all(places[1:] >= places[:-1]) else pa.array(np.argsort(places, kind="stable"))


def replaced(table: pa.Table, paths: Sequence[str], new: pa.Table) -> pa.Table:
    """A table with new rows of some files, of which it has the old ones, or none.

    Args:
        table: sorted by path.
        paths: of these files, sorted.
        new: their new rows, sorted by path; none of files that are gone.
    """
    parts: list[pa.Table] = []
    end = 0
    for path in paths:
        first, last = _span(table, path, end)
        parts += [table.slice(end, first - end), _rows_of(new, path)]
        end = last
    return pa.concat_tables([*parts, table.slice(end)])


def _rows_of(table: pa.Table, path: str) -> pa.Table:
    begin, end = _span(table, path, 0)
    return table.slice(begin, end - begin)


def _span(table: pa.Table, path: str, start: int) -> tuple[int, int]:
    """Where the rows of a path begin and end, from some row on."""
    begin = bisect_left(table["path"], path, start, key=pa.StringScalar.as_py)
    return begin, bisect_right(table["path"], path, begin, key=pa.StringScalar.as_py)
