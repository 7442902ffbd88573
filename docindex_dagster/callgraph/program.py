"""The files of a source, by what can be looked up in them.

Files are read when they are asked for, so that one edit of a large source reads few. Where a name is to be found
follows from keys: short hashes of what a file has to offer, which are stored with the graph.
"""

import posixpath
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from docindex_dagster.callgraph.exported_symbols import Offers, Taker, key_of, keys_of, stem
from docindex_dagster.callgraph.ir import Assignment, CallSite, Decorator, Definition, Fill
from docindex_dagster.callgraph.modules import Modules
from docindex_dagster.callgraph.nesting import TYPES
from docindex_dagster.callgraph.tabling import Memo, Table
from docindex_dagster.callgraph.units import Unit

_Key = tuple[str, str]
_Found = TypeVar("_Found")
_Asked = Callable[[str, str], bool]  # of a family of languages and a name
_PLACES = frozenset({"crate", "self", "super"})  # of Rust: relative to the importer
_PARTS = re.compile(r"[/.:\\]+")
_HALF, _LOWER = 32, 0xFFFFFFFF


class Units(Mapping[str, Unit]):
    """The units of the files of a source, each made when it is asked for."""

    def __init__(self, paths: Mapping[str, object], make: Callable[[str], Unit]) -> None:
        """Make the units of paths, which stand in their order."""
        self.paths, self.make = paths, make
        self.statements = 0  # in all units that are held
        self._made: dict[str, Unit] = {}
        self._offers: dict[str, Offers] = {}

    def offers(self, path: str) -> Offers:
        """What the file of a path offers to others."""
        if path not in self._offers:
            self._offers[path] = Offers(self[path])
        return self._offers[path]

    def clear(self) -> None:
        """Let go of all units; one that is asked for is made again, and is another object."""
        self.statements = 0
        self._made.clear()
        self._offers.clear()

    def __getitem__(self, path: str) -> Unit:
        unit = self._made.get(path)
        if unit is None:
            unit = self._made[path] = self._new(path)
            self.statements += unit.statements
        return unit

    def _new(self, path: str) -> Unit:
        return self.make(path)

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
    _pairs: memoryview  # sorted: a key, and in the lower half the position of a path that offers it

    @classmethod
    def of(cls, paths: Sequence[str], files: NDArray[np.int64], keys: NDArray[np.int64]) -> "Index":
        """The index of keys, each of which the path at a position offers; both of shape (keys,), int64."""
        pairs = (keys.astype(np.uint64) << np.uint64(_HALF)) | files.astype(np.uint64)
        return cls(paths, np.sort(pairs).data)

    def find(self, key: int) -> list[str]:
        """The paths that offer a key, in their order."""
        pairs = self._pairs
        begin = bisect_left(pairs, key << _HALF)
        if begin == len(pairs) or pairs[begin] >> _HALF != key:
            return []
        end = bisect_left(pairs, (key + 1) << _HALF, begin)
        return [self.paths[pair & _LOWER] for pair in pairs[begin:end]]


@dataclass(frozen=True, eq=False)
class Read(Mapping[str, Unit]):
    """Units, with a note of each that is read."""

    units: Units
    table: Table
    _noted: dict[str, tuple[int, Unit]] = field(default_factory=dict)

    def __getitem__(self, path: str) -> Unit:
        noted = self._noted.get(path)
        if noted is None:
            noted = self._noted[path] = key_of("file", "", path), self.units[path]
        self.table.reads.append(noted[0])
        return noted[1]

    def offers(self, path: str) -> Offers:
        """What a file offers, without a note."""
        return self.units.offers(path)

    @property
    def statements(self) -> int:
        """In all units that are held."""
        return self.units.statements

    def clear(self) -> None:
        """Let go of all units; one that is read again is another object."""
        self._noted.clear()
        self.units.clear()

    def __contains__(self, path: object) -> bool:
        return path in self.units

    def __iter__(self) -> Iterator[str]:
        return iter(self.units)

    def __len__(self) -> int:
        return len(self.units)


@dataclass(frozen=True, eq=False)
class Lookup(Generic[_Found]):
    """What a table of all files has under a family of languages and a name. Files are read as far as it is needed."""

    sort: str
    index: Index
    units: Units
    table: Table
    _known: dict[_Key, "_Listed[_Found]"] = field(default_factory=dict)
    _keys_of: dict[str, Callable[[str], int]] = field(default_factory=dict)  # by family

    def get(self, family: str, name: str, most: int | None = None) -> Sequence[tuple[str, _Found]]:
        """What there is, each with its path; the first so many, where more are of no use."""
        listed = self._listed(family, name)
        return listed.found if listed.is_whole else listed.first(most)

    def has(self, family: str, name: str) -> bool:
        """Whether there is anything."""
        return bool(self.get(family, name, 1))

    def each(self, family: str, name: str) -> Iterator[tuple[str, _Found]]:
        """What there is, each with its path, as far as it is asked for."""
        return self._listed(family, name).each()

    def _listed(self, family: str, name: str) -> "_Listed[_Found]":
        known = self._known.get((family, name))
        if known is None:
            hashed = self._keys(family)(name)
            known = self._known[family, name] = _Listed(hashed, self._found(family, name, hashed))
        self.table.reads.append(known.key)
        return known

    def _found(self, family: str, name: str, hashed: int) -> Iterator[tuple[str, _Found]]:
        for path in self.index.find(hashed):
            if self.units[path].rules.family == family:
                for one in getattr(self.units.offers(path), self.sort).get(name, ()):
                    yield path, one

    def _keys(self, family: str) -> Callable[[str], int]:
        keys = self._keys_of.get(family)
        if keys is None:
            keys = self._keys_of[family] = keys_of(self.sort, family)
        return keys


class _Listed(Generic[_Found]):
    """What there is under a key, as far as it was asked for."""

    __slots__ = ("_rest", "found", "is_whole", "key")

    def __init__(self, key: int, rest: Iterator[tuple[str, _Found]]) -> None:
        self.key, self._rest = key, rest
        self.found: list[tuple[str, _Found]] = []
        self.is_whole = False

    def first(self, most: int | None) -> Sequence[tuple[str, _Found]]:
        """All, or the first so many."""
        wanted = None if most is None else max(0, most - len(self.found))
        self.found += islice(self._rest, wanted)
        self.is_whole = most is None or len(self.found) < most
        return self.found

    def each(self) -> Iterator[tuple[str, _Found]]:
        """All, one after the other."""
        at = 0
        while at < len(self.first(at + 1)):
            yield self.found[at]
            at += 1


class Program:
    """All files of a source.

    What is looked at is noted in the table, so that a file is resolved again when that changes.
    """

    def __init__(self, units: Units, modules: Modules, index: Index, table: Table) -> None:
        self.table = table
        self.units = Read(units, table)
        self.modules = modules
        self._led: dict[_Key, tuple[frozenset[int], tuple[str, ...]]] = {}

        def lookup(sort: str) -> Lookup[Any]:
            return Lookup(sort, index, units, table)

        self.named: Lookup[Definition] = lookup("named")
        self.full: Lookup[Definition] = lookup("full")
        self.extensions: Lookup[Definition] = lookup("extensions")
        self.callers: Lookup[CallSite | Decorator] = lookup("callers")
        self.takers: Lookup[Taker] = lookup("takers")
        self.derived: Lookup[str] = lookup("derived")
        self.assigned: Lookup[Assignment] = lookup("assigned")
        self.fills: Lookup[Fill] = lookup("fills")
        self.variables: Lookup[str] = lookup("variables")
        self.stored: Lookup[Assignment] = lookup("stored")
        self.tops: Lookup[str] = lookup("tops")
        self.mounted: Lookup[str] = lookup("mounted")
        self._sharing: Lookup[str] = lookup("sharing")
        self._spaces: Lookup[str] = lookup("spaces")
        self._everywhere: Lookup[str] = lookup("everywhere")
        # The paths of the files that declare a function of a full name.
        self.declaring = Memo(table, partial(_declaring, lookup("forwards")))
        # Whether anything has the last part of a full name; specialisations of templates are named in many ways.
        self.has_last = Memo(table, partial(_has_last, self.named))
        # Whether anything but namespaces has a full name.
        self.is_defined = Memo(table, partial(_is_defined, self.has_last, self.full))
        # Whether a definition, variable or namespace has it.
        self.is_anything = Memo(table, partial(_is_anything, self.is_defined, self.variables, self._spaces))
        # Whether a type has a name.
        self.is_type = Memo(table, partial(_is_type, self.named))

    def sharing(self, family: str, place: str) -> list[str]:
        """The paths of the files in a folder or namespace whose names meet."""
        return [path for path, _ in self._sharing.get(family, place)]

    def is_namespace(self, family: str, name: str) -> bool:
        """Whether a file adds to a namespace, or to one in it."""
        return self._spaces.has(family, name)

    def everywhere(self, family: str) -> list[str]:
        """The namespaces that all files of a language use."""
        return [name for _, name in self._everywhere.get(family, "")]

    def calls_in(self, unit: Unit, function: str) -> Sequence[CallSite]:
        """What a function calls, also in those that are written in it."""
        self.table.reads.append(key_of("calls", "", unit.path))
        return self.units.offers(unit.path).calls.get(function, ())

    def find_module(self, importer: Unit, module: str) -> tuple[str, ...]:
        """The files, or folders with a slash behind them, to which an import of a file leads."""
        key = importer.path, module
        known = self._led.get(key)
        if known is None:
            tried = importer.rules.candidates(self.modules, importer.path, module)
            names = {*_module_names(importer.path, module), *map(stem, map(posixpath.normpath, tried))}
            opening = {"__init__"} if importer.rules.family == "python" else set()  # what is a package
            keys = frozenset(key_of("module", "", name) for name in names | opening)
            known = self._led[key] = keys, tuple(importer.rules.find(self.modules, importer.path, module))
        self.table.reads += known[0]
        return known[1]

    def is_file(self, path: str) -> bool:
        """Whether there is a file."""
        self.table.reads.append(key_of("module", "", stem(path)))
        return path in self.modules.paths

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder."""
        self.table.reads.append(key_of("module", "", stem(path)))
        return path in self.modules.folders


def _declaring(forwards: Lookup[str], family: str, full: str) -> frozenset[str]:
    return frozenset(path for path, _ in forwards.get(family, full))


def _has_last(named: Lookup[Definition], family: str, full: str) -> bool:
    return "<" in full or named.has(family, full.rpartition(".")[2])


def _is_defined(has_last: _Asked, listed: Lookup[Definition], family: str, full: str) -> bool:
    return has_last(family, full) and any(one.kind != "module" for _, one in listed.each(family, full))


def _is_anything(is_defined: _Asked, variables: Lookup[str], spaces: Lookup[str], family: str, full: str) -> bool:
    return is_defined(family, full) or variables.has(family, full) or spaces.has(family, full)


def _is_type(named: Lookup[Definition], family: str, name: str) -> bool:
    return any(one.kind in TYPES for _, one in named.each(family, name))


def _module_names(importer: str, module: str) -> set[str]:
    """The names of files and folders that decide where an import leads."""
    names = {name for name in _PARTS.split(module) if name}
    if not names.isdisjoint(_PLACES):
        return {*names, *_PARTS.split(importer), "main", "lib", "mod"}
    return names or {*importer.split("/")[-3:-1]}
