"""What an update of a graph goes on from: what the graph says of its files, and the units that this process made last.

Of a file, the graph says what it was made from, what it offered and what it looked at. To read a file back and lay out
what it says takes longer than to resolve it, and an edit of one file looks into many others. In a process that watches,
these are mostly the same ones each time.
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

from docindex_dagster.callgraph.exported_symbols import Offers
from docindex_dagster.callgraph.program import Index, Units
from docindex_dagster.callgraph.units import Unit
from docindex_dagster.graph.source_graph import UNREADABLE, Graph

_KEY = "I"  # 32 bits, as hashes and fingerprints have
# Of all units together: an object a statement, of which each takes some hundred bytes.
_MOST_STATEMENTS = 200_000


@dataclass(frozen=True, slots=True)
class News:
    """What looks different now: keys, and the files that changed or are gone."""

    keys: frozenset[int]
    paths: frozenset[str]


@dataclass(frozen=True, eq=False)
class KnownFiles:
    """The files of a graph: what their nodes say of them."""

    files: pa.Table
    rows: Mapping[str, int]  # by path
    made_from: Mapping[str, str]  # by path, of files with all their edges: of others nothing can be taken over

    @classmethod
    def of(cls, graph: Graph) -> "KnownFiles":
        """The files of a graph."""
        columns = graph.nodes.select(["path", "made_from", "offers", "fingerprints", "depends", "problem"])
        files = columns.filter(pc.equal(graph.nodes["type"], "file")).combine_chunks()
        paths, made_from, problems = (files[name].to_pylist() for name in ("path", "made_from", "problem"))
        rows = {path: row for row, path in enumerate(paths)}
        whole = {path: row for path, row in rows.items() if (problems[row] or UNREADABLE).startswith(UNREADABLE)}
        return cls(files, rows, {path: made_from[row] for path, row in whole.items()})

    def fingerprints(self, path: str) -> dict[int, int]:
        """The keys that a file offered, and fingerprints of what was found there; none of a file that is not known."""
        row = self.rows.get(path)
        if row is None:
            return {}
        keys, found = (self.files[name][row].as_py() for name in ("offers", "fingerprints"))
        return dict(zip(keys, found, strict=True))

    def looking(self, keys: AbstractSet[int]) -> list[str]:
        """The files that looked at one of some keys."""
        depends = self.files["depends"].combine_chunks()
        wanted = pa.array(sorted(keys), pa.uint32())
        rows = pc.list_parent_indices(depends).filter(pc.is_in(pc.list_flatten(depends), wanted))
        found: list[str] = pc.unique(self.files["path"].take(rows)).to_pylist()
        return found

    def index(self, paths: Sequence[str], seen: "Offered") -> Index:
        """The index of the files of some paths, of which some were seen again, and all others are known."""
        positions = np.full(self.files.num_rows, -1)
        for position, path in enumerate(paths):
            if path not in seen:
                positions[self.rows[path]] = position
        offers = self.files["offers"].combine_chunks()
        files = positions[pc.list_parent_indices(offers).to_numpy()]
        keys = pc.list_flatten(offers).to_numpy().astype(np.int64)
        is_taken = files >= 0
        again = seen.keys_at({path: at for at, path in enumerate(paths) if path in seen})
        parts = zip((files[is_taken], keys[is_taken]), again, strict=True)
        return Index.of(paths, *map(np.concatenate, parts))


def news_of(seen: Mapping[str, Mapping[int, int]], known: KnownFiles, gone: AbstractSet[str]) -> News:
    """What looks different in files that were seen again, and in those that are gone."""
    keys: set[int] = set()
    for path in {*seen, *gone}:
        old, new = known.fingerprints(path), seen.get(path, {})
        keys.update(key for key in {*old, *new} if old.get(key) != new.get(key))
    return News(frozenset(keys), frozenset({*seen, *gone}))


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


class _Made(NamedTuple):
    unit: Unit
    offers: Offers  # which depend on the file alone
    statements: int


class RecentUnits:
    """The units that were used last, by what they were made from. Threads share them, and change nothing in them."""

    def __init__(self, most: int = _MOST_STATEMENTS) -> None:
        """Keep units with so many statements, at most."""
        self._most = most
        self._made: OrderedDict[str, _Made] = OrderedDict()
        self._statements = 0
        self._lock = Lock()

    def get(self, made_from: str, make: Callable[[], Unit]) -> tuple[Unit, Offers]:
        """The unit that is made from this, and what it offers; `make` makes one that is not known."""
        with self._lock:
            known = self._made.get(made_from)
            if known is not None:
                self._made.move_to_end(made_from)
                return known.unit, known.offers
        unit = make()
        made = _Made(unit, Offers(unit), unit.statements)
        with self._lock:
            if made_from not in self._made:
                self._made[made_from] = made
                self._statements += made.statements
            while self._statements > self._most:
                self._statements -= self._made.popitem(last=False)[1].statements
        return made.unit, made.offers

    def units(self, made_from: Mapping[str, str], make: Callable[[str], Unit]) -> Units:
        """The units of files, by what these are made from; one is taken from here, or made, when it is asked for."""
        return _Known(self, made_from, make)


class _Known(Units):
    """Units with which comes what they offer."""

    def __init__(self, recent: RecentUnits, made_from: Mapping[str, str], make: Callable[[str], Unit]) -> None:
        super().__init__(made_from, make)
        self._recent, self._made_from = recent, made_from

    def offers(self, path: str) -> Offers:
        """What the file of a path offers to others."""
        self[path]
        return super().offers(path)

    def _new(self, path: str) -> Unit:
        unit, self._offers[path] = self._recent.get(self._made_from[path], lambda: self.make(path))
        return unit
