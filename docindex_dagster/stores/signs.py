"""Signs of vectors: 512 bits each, by which the vectors that may be near another one are found among millions.

Each bit says on which side of a plane through the origin a vector lies. The smaller the angle between two vectors, the
fewer planes part them, so that bits that differ are counted in place of products: an eighth of the bytes of half
precision, and no arithmetic (Charikar 2002). Planes that stand at right angles to each other tell more than any (Ji et
al. 2012). They are drawn by chance, always the same ones, so that signs need no training and those of a source change
with it alone.
"""

from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

BITS = 512
BYTES = BITS // 8
_WORDS = BYTES // 8
_SEED = 20_251_126  # another one gives other signs, so that those that were written are worth nothing
_BLOCK = 4_096  # vectors that are multiplied together
_FEW = 8_192  # whose signs are compared together, since what lies between fits into a cache
_EVERY_OTHER_BYTE = np.uint64(0x00FF00FF00FF00FF)
_ALL_PAIRS, _LAST_PAIR = np.uint64(0x0001000100010001), np.uint64(48)
_BYTE = np.uint64(8)
# Of a half, the sign and, behind it, 5 bits of exponent and 10 of mantissa; a single has 8 and 23.
_MORE_MANTISSA = 13
_BITS = np.int32(0x8FFFE000 - (1 << 32))  # of the sign, and where exponent and mantissa of a half stand in a single
_MORE_EXPONENT = np.float32(2.0**112)  # 127 - 15: by so much a single's exponent is shifted further


def signs(vectors: NDArray[np.float16]) -> NDArray[np.uint64]:
    """Those of vectors, (vectors, dimension): (vectors, 8)."""
    found = np.empty((len(vectors), BYTES), np.uint8)
    for start in range(0, len(vectors), _BLOCK):
        block = singles(vectors[start : start + _BLOCK])
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
    for start in range(0, len(of), _FEW):
        block = of[start : start + _FEW].reshape(-1)
        np.bitwise_xor(block, repeated[: len(block)], out=differing[: len(block)])
        np.bitwise_count(differing[: len(block)], out=counts[: len(block)])
        of_words = counts[: len(block)].view(np.uint64)  # one byte for each word of a vector
        pairs = (of_words & _EVERY_OTHER_BYTE) + (of_words >> _BYTE & _EVERY_OTHER_BYTE)
        out[start : start + _FEW] = pairs * _ALL_PAIRS >> _LAST_PAIR


@lru_cache(maxsize=16)  # it is the same for all parts of an index
def _repeated(query: bytes) -> NDArray[np.uint64]:
    """The signs of a query as often as vectors are compared together: what is of one shape is compared faster."""
    return np.tile(np.frombuffer(query, np.uint64), _FEW)


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
