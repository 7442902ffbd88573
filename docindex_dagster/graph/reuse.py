"""Reuse across graph updates: what a graph records about its files, and the units this process built last.

For each file, the graph records what it was made from, what it offered and what it looked at. Reading a file back and
building its unit takes longer than resolving it, and an edit of one file looks into many others. In a watching process,
these are mostly the same files each time.
"""

from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from docindex_dagster.callgraph.exported_symbols import LookupTables
from docindex_dagster.callgraph.program import Index, Units
from docindex_dagster.callgraph.units import Unit
from docindex_dagster.graph.source_graph import UNREADABLE, Graph

_KEY = "I"  # 32 bits, the size of hashes and fingerprints
# Limit for all units together: one object per statement, some hundred bytes each.
_MOST_STATEMENTS = 200_000


@dataclass(frozen=True, slots=True)
class ChangedKeys:
    """Differences from the known graph: changed keys, and the files that changed or were deleted."""

    keys: frozenset[int]
    paths: frozenset[str]


@dataclass(frozen=True, eq=False)
class KnownFiles:
    """Files of a graph, as their nodes describe them."""

    files: pa.Table
    rows: Mapping[str, int]  # by path
    made_from: Mapping[str, str]  # by path, only files with all their edges; others cannot be reused

    @classmethod
    def of(cls, graph: Graph) -> "KnownFiles":
        """Return the files of a graph."""
        columns = graph.nodes.select(["path", "made_from", "offers", "fingerprints", "depends", "problem"])
        files = columns.filter(pc.equal(graph.nodes["type"], "file")).combine_chunks()
        paths, made_from, problems = (files[name].to_pylist() for name in ("path", "made_from", "problem"))
        rows = {path: row for row, path in enumerate(paths)}
        complete = {path: row for path, row in rows.items() if (problems[row] or UNREADABLE).startswith(UNREADABLE)}
        return cls(files, rows, {path: made_from[row] for path, row in complete.items()})

    def fingerprints(self, path: str) -> dict[int, int]:
        """Return the keys that a file offered, with their fingerprints; empty for an unknown file."""
        row = self.rows.get(path)
        if row is None:
            return {}
        keys, found = (self.files[name][row].as_py() for name in ("offers", "fingerprints"))
        return dict(zip(keys, found, strict=True))

    def dependents_of(self, keys: AbstractSet[int]) -> list[str]:
        """Return the files that looked at any of some keys."""
        depends = self.files["depends"].combine_chunks()
        wanted = pa.array(sorted(keys), pa.uint32())
        rows = pc.list_parent_indices(depends).filter(pc.is_in(pc.list_flatten(depends), wanted))
        found: list[str] = pc.unique(self.files["path"].take(rows)).to_pylist()
        return found

    def index(self, paths: Sequence[str], seen: "OfferedKeys") -> Index:
        """Return the index of the files with some paths; files not in `seen` must be known."""
        positions = np.full(self.files.num_rows, -1)
        for position, path in enumerate(paths):
            if path not in seen:
                positions[self.rows[path]] = position
        offers = self.files["offers"].combine_chunks()
        files = positions[pc.list_parent_indices(offers).to_numpy()]
        keys = pc.list_flatten(offers).to_numpy().astype(np.int64)
        is_included = files >= 0
        seen_again = seen.keys_at({path: at for at, path in enumerate(paths) if path in seen})
        parts = zip((files[is_included], keys[is_included]), seen_again, strict=True)
        return Index.of(paths, *map(np.concatenate, parts))


def find_changes(seen: Mapping[str, Mapping[int, int]], known: KnownFiles, deleted: AbstractSet[str]) -> ChangedKeys:
    """Return what changed in files that were read again, and in deleted files."""
    keys: set[int] = set()
    for path in {*seen, *deleted}:
        old, new = known.fingerprints(path), seen.get(path, {})
        keys.update(key for key in {*old, *new} if old.get(key) != new.get(key))
    return ChangedKeys(frozenset(keys), frozenset({*seen, *deleted}))


@dataclass(frozen=True, slots=True, eq=False)
class OfferedKeys(Mapping[str, Mapping[int, int]]):
    """Fingerprints of what each file offers, by path and key."""

    _rows: Mapping[str, tuple[int, int]]  # begin and end of the keys of a path
    _keys: "array[int]"
    _fingerprints: "array[int]"

    @classmethod
    def of(cls, units: Units, paths: Iterable[str], most: int) -> "OfferedKeys":
        """Return what the files with some paths offer. Units are released when they hold over `most` statements."""
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
        """Return the keys, and for each the position of its file: both of shape (keys,), int64."""
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


class _CachedUnit(NamedTuple):
    unit: Unit
    offers: LookupTables  # depends only on the file
    statements: int


class RecentUnits:
    """Least-recently-used cache of units, keyed by what they were made from. Threads share them as immutable."""

    def __init__(self, most: int = _MOST_STATEMENTS) -> None:
        """Keep units with at most this many statements in total."""
        self._most = most
        self._cached: OrderedDict[str, _CachedUnit] = OrderedDict()
        self._statements = 0
        self._lock = Lock()

    def get(self, made_from: str, make: Callable[[], Unit]) -> tuple[Unit, LookupTables]:
        """Return the unit made from this, and what it offers; call `make` if it is not cached."""
        with self._lock:
            known = self._cached.get(made_from)
            if known is not None:
                self._cached.move_to_end(made_from)
                return known.unit, known.offers
        unit = make()
        cached = _CachedUnit(unit, LookupTables(unit), unit.statements)
        with self._lock:
            if made_from not in self._cached:
                self._cached[made_from] = cached
                self._statements += cached.statements
            while self._statements > self._most:
                self._statements -= self._cached.popitem(last=False)[1].statements
        return cached.unit, cached.offers

    def units(self, made_from: Mapping[str, str], make: Callable[[str], Unit]) -> Units:
        """Return the units of files, keyed by what these are made from; each is fetched or made on first use."""
        return _RecentUnitsView(self, made_from, make)


class _RecentUnitsView(Units):
    """Units whose offers come from the cache."""

    def __init__(self, recent: RecentUnits, made_from: Mapping[str, str], make: Callable[[str], Unit]) -> None:
        super().__init__(made_from, make)
        self._recent, self._made_from = recent, made_from

    def offers(self, path: str) -> LookupTables:
        """Return what a file offers to others."""
        self[path]
        return super().offers(path)

    def _new(self, path: str) -> Unit:
        unit, self._offers[path] = self._recent.get(self._made_from[path], lambda: self.make(path))
        return unit
