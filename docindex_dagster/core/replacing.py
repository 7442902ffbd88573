"""Tables that are sorted by path, and the rows of some files in them replaced, without a look at all others."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def by_path(table: pa.Table) -> pa.Table:
    """Sorted by path, the rows of a file in the order in which they were found."""
    paths = table["path"].combine_chunks().dictionary_encode()
    ranks = np.empty(len(paths.dictionary), np.int64)
    ranks[pc.sort_indices(paths.dictionary).to_numpy()] = np.arange(len(ranks))
    places = ranks[paths.indices.to_numpy()]
    if np.all(places[1:] >= places[:-1]):
        return table
    return table.take(pa.array(np.argsort(places, kind="stable")))


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
