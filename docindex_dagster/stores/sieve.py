"""The vectors of an index that has too many of them to compare all: their signs say which ones are compared.

Both lie in mapped files: all signs are read, and those vectors that are compared. Comparing the signs of a million
vectors takes 8 ms on one processor.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from docindex_dagster.core.background import in_two_threads
from docindex_dagster.stores.matrix import BLOCK, Choose, Chosen, Matrix, Part, ids_at, largest
from docindex_dagster.stores.signs import BITS, differences, signs_of_query, singles

_FEW = 16_384  # of so many rows, all are compared
_SHARE = 50  # one of so many rows is compared, at least; `python -m benchmarks.latency` says what that finds
_SAMPLE = 8  # one of so many counts says how many there are of each
_COMPARED = 1_024  # vectors that are converted together, since they fit into a cache


@dataclass(frozen=True, eq=False, slots=True)
class Sieve(Matrix):
    """A matrix of which a search compares those vectors alone whose signs are most like the query's."""

    def nearest(self, query: NDArray[np.float32], key: Hashable, choose: Choose, limit: int) -> list[tuple[str, float]]:
        """What a matrix gives for a vector of shape (dimension,), each as near as it says, but that few are missing."""
        chosen = self.chosen(key, choose)
        likely = _likely(query, chosen, limit)
        cosines = _cosines(query, chosen, likely)
        best = largest(cosines, limit)
        return list(zip(ids_at(chosen, likely[best]), cosines[best].tolist(), strict=True))


def _likely(query: NDArray[np.float32], chosen: Chosen, limit: int) -> NDArray[np.int64]:
    """The places of what may be near a query, in rising order, among the rows that are looked at."""
    rows = sum(len(each) for _, each in chosen)
    wanted = max(_FEW, rows // _SHARE, limit)
    if rows <= wanted:
        return np.arange(rows)
    counts = np.empty(rows, np.uint16)
    of_query = signs_of_query(query)
    blocks: list[Callable[[], None]] = []
    start = 0
    for part, each in chosen:
        for first in range(0, len(each), BLOCK):
            end = min(first + BLOCK, len(each))
            blocks.append(partial(_count, of_query, part, each, slice(first, end), counts[start:][first:end]))
        start += len(each)
    in_two_threads(blocks)
    so_many_differ = np.cumsum(np.bincount(counts[::_SAMPLE], minlength=BITS + 1))
    return np.flatnonzero(counts <= np.searchsorted(so_many_differ, wanted // _SAMPLE))


def _count(
    of_query: NDArray[np.uint64], part: Part, rows: NDArray[np.int64], within: slice, out: NDArray[np.uint16]
) -> None:
    is_whole = len(rows) == part.rows.num_rows
    differences(part.signs[within if is_whole else rows[within]], of_query, out)


def _cosines(query: NDArray[np.float32], chosen: Chosen, places: NDArray[np.int64]) -> NDArray[np.float32]:
    """Between a unit vector and those at some places among the rows that are looked at: shape (places,)."""
    cosines = np.empty(len(places), np.float32)
    starts = np.cumsum([0, *(len(rows) for _, rows in chosen)])
    bounds = np.searchsorted(places, starts).tolist()
    blocks: list[Callable[[], None]] = []
    for (part, rows), begin, (first, end) in zip(chosen, starts[:-1], pairwise(bounds), strict=True):
        picked = rows[places[first:end] - begin]
        for at in range(0, len(picked), _COMPARED):
            some = picked[at : at + _COMPARED]
            blocks.append(partial(_compare, query, part, some, cosines[first + at : first + at + len(some)]))
    in_two_threads(blocks)
    return cosines


def _compare(query: NDArray[np.float32], part: Part, rows: NDArray[np.int64], out: NDArray[np.float32]) -> None:
    vectors = singles(part.stored[rows])
    np.divide(np.vecdot(vectors, query), np.sqrt(np.vecdot(vectors, vectors)), out=out)
