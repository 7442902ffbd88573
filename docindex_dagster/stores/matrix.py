"""Nearest-neighbor search over the vectors in the parts of a generation.

Comparing all vectors is exact, and takes a tenth of the time in which LanceDB finds some of them: 1 ms for 20,000
vectors of 256 values. If there are too many to hold in memory as 32-bit floats, only some are compared. They are
selected by the sign bits of all vectors: 8 ms for a million on one processor.

Each vector has 512 sign bits. Each bit says on which side of a plane through the origin the vector lies. The smaller
the angle between two vectors, the fewer planes separate them, so counting differing bits replaces multiplications. That
reads an eighth of the bytes of half precision, and needs no arithmetic (Charikar 2002). Orthogonal planes are the most
informative (Ji et al. 2012). The planes are random with a fixed seed, so sign bits need no training, and those of a
source depend only on the source.
"""

from collections.abc import Callable
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from docindex_dagster.core.background import run_in_two_threads

if TYPE_CHECKING:
    from docindex_dagster.stores.parts import Chosen, Part

BITS = 512
BYTES = BITS // 8
_WORDS = BYTES // 8
_SEED = 20_251_126  # changing it invalidates all stored sign bits
_MULTIPLIED = 4_096  # vectors per matrix multiplication
_COMPARED_TOGETHER = 8_192  # vectors per comparison of sign bits, so that intermediate results fit into a cache
_EVERY_OTHER_BYTE = np.uint64(0x00FF00FF00FF00FF)
_ALL_PAIRS, _LAST_PAIR = np.uint64(0x0001000100010001), np.uint64(48)
_BYTE = np.uint64(8)
# A half has a sign bit, 5 bits of exponent and 10 of mantissa; a single has 8 and 23.
_MORE_MANTISSA = 13
_BITS = np.int32(0x8FFFE000 - (1 << 32))  # mask for the sign, exponent and mantissa bits of a half within a single
_MORE_EXPONENT = np.float32(2.0**112)  # the difference of the exponent biases: 127 - 15
_MAX_BYTES = 128 << 20  # as 32-bit floats: 131,072 vectors of 256 values
_BYTES_PER_VALUE = 4
_BLOCK = 16_384  # rows per unit of work of a thread
_COMPARED = 1_024  # vectors converted together, so that they fit into a cache
_RUN = 64  # values of which only the largest is considered at first
_MIN_COMPARED = 16_384  # with up to this many rows, all are compared
_SHARE = 50  # compare at least one in this many rows; `python -m benchmarks.latency` reports the recall
_SAMPLE = 8  # estimate the distribution from one in this many counts
# Writes its results for rows of a part into its last argument, an array of shape (rows,).
_Work = Callable[["Part", NDArray[np.int64], NDArray[Any]], None]


def signs(vectors: NDArray[np.float16]) -> NDArray[np.uint64]:
    """Return the sign bits of vectors, (vectors, dimension): (vectors, 8)."""
    bits = np.empty((len(vectors), BYTES), np.uint8)
    for start in range(0, len(vectors), _MULTIPLIED):
        block = to_float32(vectors[start : start + _MULTIPLIED])
        bits[start : start + len(block)] = np.packbits(block @ _planes(vectors.shape[1]).T > 0, axis=1)
    return bits.view(np.uint64)


def signs_of_query(query: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Return the sign bits of one vector, (dimension,): (8,)."""
    # Not `@`, whose threads wait for each other.
    return np.packbits(np.vecdot(_planes(len(query)), query) > 0).view(np.uint64)


def differences(of: NDArray[np.uint64], query: NDArray[np.uint64], out: NDArray[np.uint16]) -> None:
    """Write to `out`, (vectors,), how many of the sign bits, (vectors, 8), differ from those of a query, (8,)."""
    repeated = _repeated(query.tobytes())
    differing = np.empty(min(of.size, len(repeated)), np.uint64)
    counts = np.empty(len(differing), np.uint8)
    for start in range(0, len(of), _COMPARED_TOGETHER):
        block = of[start : start + _COMPARED_TOGETHER].reshape(-1)
        np.bitwise_xor(block, repeated[: len(block)], out=differing[: len(block)])
        np.bitwise_count(differing[: len(block)], out=counts[: len(block)])
        word_counts = counts[: len(block)].view(np.uint64)  # one byte per word of a vector
        pairs = (word_counts & _EVERY_OTHER_BYTE) + (word_counts >> _BYTE & _EVERY_OTHER_BYTE)
        out[start : start + _COMPARED_TOGETHER] = pairs * _ALL_PAIRS >> _LAST_PAIR


@lru_cache(maxsize=16)  # it is the same for all parts of an index
def _repeated(query: bytes) -> NDArray[np.uint64]:
    """Repeat the sign bits of a query for each vector of a block: comparing arrays of equal shape is faster."""
    return np.tile(np.frombuffer(query, np.uint64), _COMPARED_TOGETHER)


@cache
def _planes(dimension: int) -> NDArray[np.float32]:
    """Return the unit normal vectors of the planes: (512, dimension)."""
    random = np.random.RandomState(_SEED)
    drawn: list[NDArray[np.float32]] = []
    while sum(map(len, drawn)) < BITS:
        turned, upper = np.linalg.qr(random.standard_normal((dimension, min(dimension, BITS))))
        drawn.append(np.ascontiguousarray((turned * np.sign(np.diag(upper))).T, np.float32))
    return np.concatenate(drawn)[:BITS]


def to_float32(halves: NDArray[np.float16]) -> NDArray[np.float32]:
    """Convert finite halves, (vectors, dimension), to singles, exactly: float32, same shape."""
    bits: NDArray[Any] = halves.view(np.int16).astype(np.int32)
    bits <<= _MORE_MANTISSA
    bits &= _BITS
    converted: NDArray[np.float32] = bits.view(np.float32)
    converted *= _MORE_EXPONENT
    return converted


def fits_in_memory(rows: int, dimension: int) -> bool:
    """Return whether this many vectors may be held in memory as singles."""
    return rows * dimension * _BYTES_PER_VALUE <= _MAX_BYTES


def nearest(query: NDArray[np.float32], chosen: "Chosen", limit: int, *, is_exact: bool) -> list[tuple[str, float]]:
    """Return the `limit` ids nearest to a unit vector of shape (dimension,), unordered, and their cosines.

    Ties with the last one are included. With `is_exact` false, a few may be missing.
    """
    if is_exact:
        for part, _ in chosen:
            part.vectors  # noqa: B018 compute them here if needed, rather than in both threads
        cosines = _for_each(partial(_compare, query), chosen, np.float32, _BLOCK)
    else:
        chosen = _likely(query, chosen, limit)
        cosines = _for_each(partial(_compare_stored, query), chosen, np.float32, _COMPARED)
    best = largest(cosines, limit)
    return list(zip(_ids_at(chosen, best), cosines[best].tolist(), strict=True))


def _likely(query: NDArray[np.float32], chosen: "Chosen", limit: int) -> "Chosen":
    """Return the rows that are likely near a query, by the number of sign bits that differ."""
    starts = np.cumsum([0, *(len(rows) for _, rows in chosen)]).tolist()
    target_count = max(_MIN_COMPARED, starts[-1] // _SHARE, limit)
    if starts[-1] <= target_count:
        return chosen
    for part, _ in chosen:
        part.signs  # noqa: B018 as with the vectors above
    counts = _for_each(partial(_count, signs_of_query(query)), chosen, np.uint16, _BLOCK)
    cumulative = np.cumsum(np.bincount(counts[::_SAMPLE], minlength=BITS + 1))
    is_likely = counts <= np.searchsorted(cumulative, target_count // _SAMPLE)
    return [
        (part, rows[is_likely[first:end]]) for (part, rows), (first, end) in zip(chosen, pairwise(starts), strict=True)
    ]


def _for_each(work: _Work, chosen: "Chosen", kind: type[np.generic], step: int) -> NDArray[Any]:
    """Call `work` for all selected rows, `step` at a time; return the concatenated results as an array of `kind`."""
    found = np.empty(sum(len(rows) for _, rows in chosen), kind)
    blocks: list[Callable[[], None]] = []
    start = 0
    for part, rows in chosen:
        for first in range(0, len(rows), step):
            block = rows[first : first + step]
            blocks.append(partial(work, part, block, found[start + first : start + first + len(block)]))
        start += len(rows)
    run_in_two_threads(blocks)
    return found


def _compare(query: NDArray[np.float32], part: "Part", rows: NDArray[np.int64], out: NDArray[np.float32]) -> None:
    # Not `@`: the threads of BLAS busy-wait for each other, 8 ms and more if other processes are running.
    np.vecdot(_at(part.vectors, rows), query, out=out)


def _compare_stored(
    query: NDArray[np.float32], part: "Part", rows: NDArray[np.int64], out: NDArray[np.float32]
) -> None:
    vectors = to_float32(part.stored[rows])
    lengths = np.maximum(np.sqrt(np.vecdot(vectors, vectors)), np.finfo(np.float32).tiny)
    np.divide(np.vecdot(vectors, query), lengths, out=out)


def _count(of_query: NDArray[np.uint64], part: "Part", rows: NDArray[np.int64], out: NDArray[np.uint16]) -> None:
    differences(_at(part.signs, rows), of_query, out)


def _at(values: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    """Return the values at sorted positions, as a view if they are consecutive."""
    first, end = int(rows[0]), int(rows[-1]) + 1
    return values[first:end] if end - first == len(rows) else values[rows]


def _ids_at(chosen: "Chosen", positions: NDArray[np.int64]) -> list[str]:
    """Return the ids at sorted positions, int64 (places,), in the concatenated rows."""
    ids: list[str] = []
    starts = np.cumsum([0, *(len(rows) for _, rows in chosen)])
    bounds = np.searchsorted(positions, starts).tolist()
    for (part, rows), start, (first, end) in zip(chosen, starts, pairwise(bounds), strict=False):
        ids += [part.ids[row].as_py() for row in rows[positions[first:end] - start].tolist()]
    return ids


def largest(values: NDArray[np.float32], limit: int) -> NDArray[np.int64]:
    """Return the positions of the `limit` largest values, (values,), and of all ties with the least of them.

    The positions are sorted: int64 (found,).
    """
    if limit >= len(values):
        return np.arange(len(values))
    # The `limit`-th largest of the run maxima is a lower bound for the `limit`-th largest value: few values remain.
    runs = values[: len(values) // _RUN * _RUN].reshape(-1, _RUN).max(axis=1)
    if limit < len(runs):
        likely = np.flatnonzero(values >= np.partition(runs, -limit)[-limit])
    else:
        likely = np.arange(len(values))
    least = np.partition(values[likely], -limit)[-limit]
    found: NDArray[np.int64] = likely[values[likely] >= least]
    return found
