"""What files offer to others, as columns: a number takes four bytes there, and a hundred in a dictionary."""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from docindex_dagster.callgraph.program import Units

_KEY = "I"  # 32 bits, as hashes and fingerprints have


@dataclass(frozen=True, slots=True, eq=False)
class Offered(Mapping[str, Mapping[int, int]]):
    """By path, the keys that a file offers, each with a fingerprint of what is found there."""

    _rows: Mapping[str, tuple[int, int]]  # where the keys of a path begin and end
    _keys: "array[int]"
    _fingerprints: "array[int]"

    @classmethod
    def of(cls, units: Units, paths: Iterable[str], most: int) -> "Offered":
        """What the files of some paths offer. Units are let go of where they hold more than `most` statements."""
        rows: dict[str, tuple[int, int]] = {}
        keys, fingerprints = array(_KEY), array(_KEY)
        for path in paths:
            if units.statements > most:
                units.clear()
            found, begin = units.offers(path).fingerprints, len(keys)
            keys.extend(found)
            fingerprints.extend(found.values())
            rows[path] = begin, len(keys)
        return cls(rows, keys, fingerprints)

    def keys_at(self, positions: Mapping[str, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The position of each file, as often as it has keys, and these: both of shape (keys,), int64."""
        counts = [end - begin for begin, end in self._rows.values()]
        at = np.fromiter((positions[path] for path in self._rows), np.int64, len(counts))
        return np.repeat(at, counts), np.frombuffer(self._keys, np.uint32).astype(np.int64)

    def __getitem__(self, path: str) -> Mapping[int, int]:
        begin, end = self._rows[path]
        return dict(zip(self._keys[begin:end], self._fingerprints[begin:end], strict=True))

    def __contains__(self, path: object) -> bool:
        return path in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)
