"""The files of a source, by what can be looked up in them.

Files are read when they are asked for, so that one edit of a large source reads few. Where a name is to be found
follows from keys: short hashes of what a file has to offer, which are stored with the graph.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from docindex_dagster.callgraph.dependencies.tabling import Table
from docindex_dagster.callgraph.fingerprints import key_of
from docindex_dagster.callgraph.ir import Assignment, CallSite, Decorator, Definition, Fill
from docindex_dagster.callgraph.modules import Modules
from docindex_dagster.callgraph.offers import Offers, Taker, stem
from docindex_dagster.callgraph.units import Unit

_Key = tuple[str, str]
_Found = TypeVar("_Found")
_PLACES = frozenset({"crate", "self", "super"})  # of Rust: relative to the importer
_PARTS = re.compile(r"[/.:\\]+")
_HALF, _LOWER = np.uint64(32), np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, eq=False)
class Units(Mapping[str, Unit]):
    """The units of the files of a source, each made when it is asked for."""

    paths: Mapping[str, object]  # in their order
    make: Callable[[str], Unit]
    _made: dict[str, Unit] = field(default_factory=dict)
    _offers: dict[str, Offers] = field(default_factory=dict)

    def offers(self, path: str) -> Offers:
        """What the file of a path offers to others."""
        if path not in self._offers:
            self._offers[path] = Offers(self[path])
        return self._offers[path]

    def __getitem__(self, path: str) -> Unit:
        unit = self._made.get(path)
        if unit is None:
            unit = self._made[path] = self.make(path)
        return unit

    def __contains__(self, path: object) -> bool:
        return path in self.paths

    def __iter__(self) -> Iterator[str]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)


@dataclass(frozen=True, eq=False)
class Index:
    """Which files offer a key."""

    paths: Sequence[str]
    _pairs: NDArray[np.uint64]  # sorted: a key, and in the lower half the position of a path that offers it

    @classmethod
    def of(cls, paths: Sequence[str], files: NDArray[np.int64], keys: NDArray[np.int64]) -> "Index":
        """The index of keys, each of which the path at a position offers; both of shape (keys,), int64."""
        return cls(paths, np.sort((keys.astype(np.uint64) << _HALF) | files.astype(np.uint64)))

    def find(self, key: int) -> list[str]:
        """The paths that offer a key, in their order."""
        first = np.uint64(key) << _HALF
        begin, end = np.searchsorted(self._pairs, [first, first | _LOWER])
        return [self.paths[file] for file in (self._pairs[begin:end] & _LOWER).tolist()]


@dataclass(frozen=True, eq=False)
class Read(Mapping[str, Unit]):
    """Units, with a note of each that is read."""

    units: Units
    table: Table
    _noted: dict[str, tuple[int, Unit]] = field(default_factory=dict)

    def __getitem__(self, path: str) -> Unit:
        noted = self._noted.get(path)
        if noted is None:
            noted = self._noted[path] = key_of("file", path), self.units[path]
        self.table.reads.append(noted[0])
        return noted[1]

    def offers(self, path: str) -> Offers:
        """What a file offers, without a note."""
        return self.units.offers(path)

    def __contains__(self, path: object) -> bool:
        return path in self.units

    def __iter__(self) -> Iterator[str]:
        return iter(self.units)

    def __len__(self) -> int:
        return len(self.units)


@dataclass(frozen=True, eq=False)
class Lookup(Generic[_Found]):
    """One sort of thing, in all files that have it under a family of languages and a name."""

    sort: str
    index: Index
    units: Units
    table: Table
    of_file: Callable[[Offers], Mapping[str, Sequence[_Found]]]
    _known: dict[_Key, tuple[int, list[tuple[str, _Found]]]] = field(default_factory=dict)

    def get(self, family: str, name: str) -> Sequence[tuple[str, _Found]]:
        """What there is, each with its path."""
        known = self._known.get((family, name))
        if known is None:
            hashed = key_of(self.sort, family, name)
            found = [
                (path, one)
                for path in self.index.find(hashed)
                if self.units[path].rules.family == family
                for one in self.of_file(self.units.offers(path)).get(name, ())
            ]
            known = self._known[family, name] = hashed, found
        self.table.reads.append(known[0])
        return known[1]


class Program:
    """All files of a source.

    What is looked at is noted in the table, so that a file is resolved again when that changes.
    """

    def __init__(self, units: Units, modules: Modules, index: Index, table: Table) -> None:
        self.table = table
        self.units = Read(units, table)
        self.modules = modules
        self._led: dict[_Key, tuple[frozenset[int], tuple[str, ...]]] = {}

        def lookup(sort: str, of_file: Callable[[Offers], Mapping[str, Sequence[_Found]]]) -> Lookup[_Found]:
            return Lookup(sort, index, units, table, of_file)

        self.named: Lookup[Definition] = lookup("name", lambda offers: offers.named)
        self.full: Lookup[Definition] = lookup("full", lambda offers: offers.full)
        self.extensions: Lookup[Definition] = lookup("extensions", lambda offers: offers.extensions)
        self.callers: Lookup[CallSite | Decorator] = lookup("callers", lambda offers: offers.callers)
        self.takers: Lookup[Taker] = lookup("takers", lambda offers: offers.takers)
        self.derived: Lookup[str] = lookup("derived", lambda offers: offers.derived)
        self.assigned: Lookup[Assignment] = lookup("assigned", lambda offers: offers.assigned)
        self.fills: Lookup[Fill] = lookup("fills", lambda offers: offers.fills)
        self.variables: Lookup[str] = lookup("variables", lambda offers: offers.variables)
        self.stored: Lookup[Assignment] = lookup("stored", lambda offers: offers.stored)
        self._forwards: Lookup[str] = lookup("forwards", lambda offers: offers.forwards)
        self.tops: Lookup[str] = lookup("top", lambda offers: offers.tops)
        self._calls: Lookup[CallSite] = lookup("calls", lambda offers: offers.calls)
        self._sharing: Lookup[str] = lookup("sharing", lambda offers: offers.sharing)
        self._spaces: Lookup[str] = lookup("spaces", lambda offers: offers.spaces)
        self._everywhere: Lookup[str] = lookup("everywhere", lambda offers: offers.everywhere)

    def sharing(self, family: str, place: str) -> list[str]:
        """The paths of the files in a folder or namespace whose names meet."""
        return [path for path, _ in self._sharing.get(family, place)]

    def is_namespace(self, family: str, name: str) -> bool:
        """Whether a file adds to a namespace, or to one in it."""
        return bool(self._spaces.get(family, name))

    def declaring(self, family: str, name: str) -> frozenset[str]:
        """The paths of the files that declare a function of a full name."""
        return frozenset(path for path, _ in self._forwards.get(family, name))

    def everywhere(self, family: str) -> list[str]:
        """The namespaces that all files of a language use."""
        return [name for _, name in self._everywhere.get(family, "")]

    def calls_in(self, unit: Unit, function: str) -> list[CallSite]:
        """What a function calls, also in those that are written in it."""
        return [call for _, call in self._calls.get(unit.rules.family, f"{unit.path}::{function}")]

    def find_module(self, importer: Unit, module: str) -> tuple[str, ...]:
        """The files, or folders with a slash behind them, to which an import of a file leads."""
        key = importer.path, module
        known = self._led.get(key)
        if known is None:
            names = _module_names(importer.path, module)
            opening = {"__init__"} if importer.rules.family == "python" else set()  # what is a package
            looks = frozenset(key_of("module", name) for name in names | opening)
            known = self._led[key] = looks, tuple(importer.rules.find(self.modules, importer.path, module))
        self.table.reads += known[0]
        return known[1]

    def is_file(self, path: str) -> bool:
        """Whether there is a file."""
        self.table.reads.append(key_of("module", stem(path)))
        return path in self.modules.paths

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder."""
        self.table.reads.append(key_of("module", stem(path)))
        return path in self.modules.folders


def _module_names(importer: str, module: str) -> set[str]:
    """The names of files and folders that decide where an import leads."""
    names = {name for name in _PARTS.split(module) if name}
    if not names.isdisjoint(_PLACES):
        return {*names, *_PARTS.split(importer), "main", "lib", "mod"}
    return names or {*importer.split("/")[-3:-1]}
