"""The vectors nearest to another one, among the parts of a generation.

Comparing all of them is exact, and takes a tenth of the time in which LanceDB finds some of them: 1 ms for 20,000
vectors of 256 values. Where they are too many to be held in memory as 32-bit numbers, their signs, which are all read,
say which ones are compared: 8 ms for a million on one processor.

Signs are 512 bits a vector. Each bit says on which side of a plane through the origin a vector lies. The smaller the
angle between two vectors, the fewer planes part them, so that bits that differ are counted in place of products: an
eighth of the bytes of half precision, and no arithmetic (Charikar 2002). Planes that stand at right angles to each
other tell more than any (Ji et al. 2012). They are drawn by chance, always the same ones, so that signs need no
training and those of a source change with it alone.
"""

from collections.abc import Callable
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from docindex_dagster.core.background import in_two_threads

if TYPE_CHECKING:
    from docindex_dagster.stores.parts import Chosen, Part

BITS = 512
BYTES = BITS // 8
_WORDS = BYTES // 8
_SEED = 20_251_126  # another one gives other signs, so that those that were written are worth nothing
_MULTIPLIED = 4_096  # vectors that are multiplied together
_COMPARED_TOGETHER = 8_192  # whose signs are compared together, since what lies between fits into a cache
_EVERY_OTHER_BYTE = np.uint64(0x00FF00FF00FF00FF)
_ALL_PAIRS, _LAST_PAIR = np.uint64(0x0001000100010001), np.uint64(48)
_BYTE = np.uint64(8)
# Of a half, the sign and, behind it, 5 bits of exponent and 10 of mantissa; a single has 8 and 23.
_MORE_MANTISSA = 13
_BITS = np.int32(0x8FFFE000 - (1 << 32))  # of the sign, and where exponent and mantissa of a half stand in a single
_MORE_EXPONENT = np.float32(2.0**112)  # 127 - 15: by so much a single's exponent is shifted further
_MOST_BYTES = 128 << 20  # as 32-bit numbers: 131,072 vectors of 256 values
_BYTES_A_VALUE = 4
_BLOCK = 16_384  # rows that a thread looks at before it takes the next ones
_COMPARED = 1_024  # vectors that are converted together, since they fit into a cache
_RUN = 64  # values of which first the largest alone is looked at
_FEW = 16_384  # of so many rows, all are compared
_SHARE = 50  # one of so many rows is compared, at least; `python -m benchmarks.latency` says what that finds
_SAMPLE = 8  # one of so many counts says how many there are of each
# Writes into its last argument what it finds for some rows of a part: an array of shape (rows,).
_Work = Callable[["Part", NDArray[np.int64], NDArray[Any]], None]


def signs(vectors: NDArray[np.float16]) -> NDArray[np.uint64]:
    """Those of vectors, (vectors, dimension): (vectors, 8)."""
    found = np.empty((len(vectors), BYTES), np.uint8)
    for start in range(0, len(vectors), _MULTIPLIED):
        block = singles(vectors[start : start + _MULTIPLIED])
        found[start : start + len(block)] = np.packbits(block @ _planes(vectors.shape[1]).T > 0, axis=1)
    return found.view(np.uint64)


def signs_of_query(query: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Those of one vector, (dimension,): (8,)."""
    # Not `@`, whose threads wait for each other.
    return np.packbits(np.vecdot(_planes(len(query)), query) > 0).view(np.uint64)


def differences(of: NDArray[np.uint64], query: NDArray[np.uint64], out: NDArray[np.uint16]) -> None:
    """Write into `out`, (vectors,), how many of the signs, (vectors, 8), differ from those of a query, (8,)."""
    repeated = _repeated(query.tobytes())
    differing = np.empty(min(of.size, len(repeated)), np.uint64)
    counts = np.empty(len(differing), np.uint8)
    for start in range(0, len(of), _COMPARED_TOGETHER):
        block = of[start : start + _COMPARED_TOGETHER].reshape(-1)
        np.bitwise_xor(block, repeated[: len(block)], out=differing[: len(block)])
        np.bitwise_count(differing[: len(block)], out=counts[: len(block)])
        of_words = counts[: len(block)].view(np.uint64)  # one byte for each word of a vector
        pairs = (of_words & _EVERY_OTHER_BYTE) + (of_words >> _BYTE & _EVERY_OTHER_BYTE)
        out[start : start + _COMPARED_TOGETHER] = pairs * _ALL_PAIRS >> _LAST_PAIR


@lru_cache(maxsize=16)  # it is the same for all parts of an index
def _repeated(query: bytes) -> NDArray[np.uint64]:
    """The signs of a query as often as vectors are compared together: what is of one shape is compared faster."""
    return np.tile(np.frombuffer(query, np.uint64), _COMPARED_TOGETHER)


@cache
def _planes(dimension: int) -> NDArray[np.float32]:
    """Unit vectors that stand upright on the planes: (512, dimension)."""
    random = np.random.RandomState(_SEED)
    drawn: list[NDArray[np.float32]] = []
    while sum(map(len, drawn)) < BITS:
        turned, upper = np.linalg.qr(random.standard_normal((dimension, min(dimension, BITS))))
        drawn.append(np.ascontiguousarray((turned * np.sign(np.diag(upper))).T, np.float32))
    return np.concatenate(drawn)[:BITS]


def singles(halves: NDArray[np.float16]) -> NDArray[np.float32]:
    """The same finite numbers, exactly: float32, of the shape that the halves have, (vectors, dimension)."""
    bits: NDArray[Any] = halves.view(np.int16).astype(np.int32)
    bits <<= _MORE_MANTISSA
    bits &= _BITS
    found: NDArray[np.float32] = bits.view(np.float32)
    found *= _MORE_EXPONENT
    return found


def fits(rows: int, dimension: int) -> bool:
    """Whether so many vectors are held in memory."""
    return rows * dimension * _BYTES_A_VALUE <= _MOST_BYTES


def nearest(query: NDArray[np.float32], chosen: "Chosen", limit: int, *, is_exact: bool) -> list[tuple[str, float]]:
    """So many of the ids nearest to a unit vector of shape (dimension,), in no order, and their cosines.

    Those that are as near as the last one come with it. Of what is not exact, few are missing.
    """
    if is_exact:
        for part, _ in chosen:
            part.vectors  # noqa: B018 they are made here, if they have to be, and not by both threads
        cosines = _for_each(partial(_compare, query), chosen, np.float32, _BLOCK)
    else:
        chosen = _likely(query, chosen, limit)
        cosines = _for_each(partial(_compare_stored, query), chosen, np.float32, _COMPARED)
    best = largest(cosines, limit)
    return list(zip(_ids_at(chosen, best), cosines[best].tolist(), strict=True))


def _likely(query: NDArray[np.float32], chosen: "Chosen", limit: int) -> "Chosen":
    """The rows that may be near a query, by how many of their signs differ from its own."""
    starts = np.cumsum([0, *(len(rows) for _, rows in chosen)]).tolist()
    wanted = max(_FEW, starts[-1] // _SHARE, limit)
    if starts[-1] <= wanted:
        return chosen
    for part, _ in chosen:
        part.signs  # noqa: B018 as the vectors
    counts = _for_each(partial(_count, signs_of_query(query)), chosen, np.uint16, _BLOCK)
    so_many_differ = np.cumsum(np.bincount(counts[::_SAMPLE], minlength=BITS + 1))
    is_likely = counts <= np.searchsorted(so_many_differ, wanted // _SAMPLE)
    return [
        (part, rows[is_likely[first:end]]) for (part, rows), (first, end) in zip(chosen, pairwise(starts), strict=True)
    ]


def _for_each(work: _Work, chosen: "Chosen", kind: type[np.generic], step: int) -> NDArray[Any]:
    """What `work` finds for all rows that are looked at, so many at once, end to end: an array of that kind."""
    found = np.empty(sum(len(rows) for _, rows in chosen), kind)
    blocks: list[Callable[[], None]] = []
    start = 0
    for part, rows in chosen:
        for first in range(0, len(rows), step):
            some = rows[first : first + step]
            blocks.append(partial(work, part, some, found[start + first : start + first + len(some)]))
        start += len(rows)
    in_two_threads(blocks)
    return found


def _compare(query: NDArray[np.float32], part: "Part", rows: NDArray[np.int64], out: NDArray[np.float32]) -> None:
    # Not `@`: the threads of BLAS wait for each other in a loop, 8 ms and more where other processes are at work.
    np.vecdot(_at(part.vectors, rows), query, out=out)


def _compare_stored(
    query: NDArray[np.float32], part: "Part", rows: NDArray[np.int64], out: NDArray[np.float32]
) -> None:
    vectors = singles(part.stored[rows])
    lengths = np.maximum(np.sqrt(np.vecdot(vectors, vectors)), np.finfo(np.float32).tiny)
    np.divide(np.vecdot(vectors, query), lengths, out=out)


def _count(of_query: NDArray[np.uint64], part: "Part", rows: NDArray[np.int64], out: NDArray[np.uint16]) -> None:
    differences(_at(part.signs, rows), of_query, out)


def _at(values: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    """The values of rows in rising order; not copied where they are in a row."""
    first, end = int(rows[0]), int(rows[-1]) + 1
    return values[first:end] if end - first == len(rows) else values[rows]


def _ids_at(chosen: "Chosen", places: NDArray[np.int64]) -> list[str]:
    """The ids at places, int64 (places,), in rising order, among the rows that are looked at, end to end."""
    ids: list[str] = []
    starts = np.cumsum([0, *(len(rows) for _, rows in chosen)])
    bounds = np.searchsorted(places, starts).tolist()
    for (part, rows), start, (first, end) in zip(chosen, starts, pairwise(bounds), strict=False):
        ids += [part.ids[row].as_py() for row in rows[places[first:end] - start].tolist()]
    return ids


def largest(values: NDArray[np.float32], limit: int) -> NDArray[np.int64]:
    """Where the largest of values, (values,), stand: so many, and all that equal the least of them, int64 (found,).

    They are in rising order.
    """
    if limit >= len(values):
        return np.arange(len(values))
    # The least of so many maxima of runs is no larger than the least value that is looked for: few are left to sort.
    runs = values[: len(values) // _RUN * _RUN].reshape(-1, _RUN).max(axis=1)
    if limit < len(runs):
        likely = np.flatnonzero(values >= np.partition(runs, -limit)[-limit])
    else:
        likely = np.arange(len(values))
    least = np.partition(values[likely], -limit)[-limit]
    found: NDArray[np.int64] = likely[values[likely] >= least]
    return found
