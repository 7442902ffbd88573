"""Lookup of names across all files of a source.

Files are loaded lazily, so that a single edit in a large source loads only a few. An index of keys tells which files
provide a name; keys are short hashes of the names in a file and are stored with the graph.
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

from docindex_dagster.callgraph.exported_symbols import LookupTables, Taker, key_of, keys_of, stem
from docindex_dagster.callgraph.ir import Assignment, CallSite, Decorator, Definition, Fill
from docindex_dagster.callgraph.modules import Modules
from docindex_dagster.callgraph.nesting import TYPES
from docindex_dagster.callgraph.tabling import Memo, Table
from docindex_dagster.callgraph.units import Unit

_Key = tuple[str, str]
_Found = TypeVar("_Found")
_Predicate = Callable[[str, str], bool]  # arguments: language family, name
_RELATIVE = frozenset({"crate", "self", "super"})  # Rust path words, relative to the importer
_PARTS = re.compile(r"[/.:\\]+")
_HALF, _LOWER = 32, 0xFFFFFFFF


class Units(Mapping[str, Unit]):
    """The units of the files of a source, created on demand."""

    def __init__(self, paths: Mapping[str, object], make: Callable[[str], Unit]) -> None:
        """Take the sorted paths of the files and a factory for their units."""
        self.paths, self.make = paths, make
        self.statements = 0  # in all loaded units
        self._units: dict[str, Unit] = {}
        self._offers: dict[str, LookupTables] = {}

    def offers(self, path: str) -> LookupTables:
        """Return the lookup tables of a file."""
        if path not in self._offers:
            self._offers[path] = LookupTables(self[path])
        return self._offers[path]

    def clear(self) -> None:
        """Drop all units. A unit requested later is a new object."""
        self.statements = 0
        self._units.clear()
        self._offers.clear()

    def __getitem__(self, path: str) -> Unit:
        unit = self._units.get(path)
        if unit is None:
            unit = self._units[path] = self._new(path)
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
    """Index of the files that provide each key."""

    paths: Sequence[str]
    _pairs: memoryview  # sorted uint64: the key in the upper half, the position of a providing path in the lower half

    @classmethod
    def of(cls, paths: Sequence[str], files: NDArray[np.int64], keys: NDArray[np.int64]) -> "Index":
        """Build the index from keys and the positions of the paths that provide them; both of shape (keys,), int64."""
        pairs = (keys.astype(np.uint64) << np.uint64(_HALF)) | files.astype(np.uint64)
        return cls(paths, np.sort(pairs).data)

    def find(self, key: int) -> list[str]:
        """Return the paths that provide a key, in order."""
        pairs = self._pairs
        start = bisect_left(pairs, key << _HALF)
        if start == len(pairs) or pairs[start] >> _HALF != key:
            return []
        end = bisect_left(pairs, (key + 1) << _HALF, start)
        return [self.paths[pair & _LOWER] for pair in pairs[start:end]]


@dataclass(frozen=True, eq=False)
class TrackedUnits(Mapping[str, Unit]):
    """Units that record every read in the table."""

    units: Units
    table: Table
    _keyed: dict[str, tuple[int, Unit]] = field(default_factory=dict)

    def __getitem__(self, path: str) -> Unit:
        keyed = self._keyed.get(path)
        if keyed is None:
            keyed = self._keyed[path] = key_of("file", "", path), self.units[path]
        self.table.reads.append(keyed[0])
        return keyed[1]

    def offers(self, path: str) -> LookupTables:
        """Return the lookup tables of a file without recording a read."""
        return self.units.offers(path)

    @property
    def statements(self) -> int:
        """The number of statements in all loaded units."""
        return self.units.statements

    def clear(self) -> None:
        """Drop all units. A unit requested later is a new object."""
        self._keyed.clear()
        self.units.clear()

    def __contains__(self, path: object) -> bool:
        return path in self.units

    def __iter__(self) -> Iterator[str]:
        return iter(self.units)

    def __len__(self) -> int:
        return len(self.units)


@dataclass(frozen=True, eq=False)
class Lookup(Generic[_Found]):
    """One lookup table across all files, keyed by language family and name. Loads only as many files as needed."""

    sort: str
    index: Index
    units: Units
    table: Table
    _known: dict[_Key, "_LazyMatches[_Found]"] = field(default_factory=dict)
    _keys_of: dict[str, Callable[[str], int]] = field(default_factory=dict)  # by family

    def get(self, family: str, name: str, limit: int | None = None) -> Sequence[tuple[str, _Found]]:
        """Return the matches with their paths; at least the first `limit`, if there are as many."""
        matches = self._matches(family, name)
        return matches.found if matches.is_complete else matches.first(limit)

    def has(self, family: str, name: str) -> bool:
        """Return whether there is a match."""
        return bool(self.get(family, name, 1))

    def each(self, family: str, name: str) -> Iterator[tuple[str, _Found]]:
        """Yield the matches with their paths, loading files lazily."""
        return self._matches(family, name).each()

    def _matches(self, family: str, name: str) -> "_LazyMatches[_Found]":
        known = self._known.get((family, name))
        if known is None:
            hashed = self._keys(family)(name)
            known = self._known[family, name] = _LazyMatches(hashed, self._search(family, name, hashed))
        self.table.reads.append(known.key)
        return known

    def _search(self, family: str, name: str, hashed: int) -> Iterator[tuple[str, _Found]]:
        for path in self.index.find(hashed):
            if self.units[path].rules.family == family:
                for match in getattr(self.units.offers(path), self.sort).get(name, ()):
                    yield path, match

    def _keys(self, family: str) -> Callable[[str], int]:
        keys = self._keys_of.get(family)
        if keys is None:
            keys = self._keys_of[family] = keys_of(self.sort, family)
        return keys


class _LazyMatches(Generic[_Found]):
    """The matches for a key, found lazily."""

    __slots__ = ("_rest", "found", "is_complete", "key")

    def __init__(self, key: int, rest: Iterator[tuple[str, _Found]]) -> None:
        self.key, self._rest = key, rest
        self.found: list[tuple[str, _Found]] = []
        self.is_complete = False

    def first(self, limit: int | None) -> Sequence[tuple[str, _Found]]:
        """Return all matches found so far, after searching for `limit` matches (None: all)."""
        missing = None if limit is None else max(0, limit - len(self.found))
        self.found += islice(self._rest, missing)
        self.is_complete = limit is None or len(self.found) < limit
        return self.found

    def each(self) -> Iterator[tuple[str, _Found]]:
        """Yield all matches."""
        at = 0
        while at < len(self.first(at + 1)):
            yield self.found[at]
            at += 1


class Program:
    """All files of a source.

    Every lookup is recorded in the table, so that a file is resolved again when one of its dependencies changes.
    """

    def __init__(self, units: Units, modules: Modules, index: Index, table: Table) -> None:
        self.table = table
        self.units = TrackedUnits(units, table)
        self.modules = modules
        self._found_modules: dict[_Key, tuple[frozenset[int], tuple[str, ...]]] = {}

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
        # The paths of the files that forward-declare a function, by full name.
        self.declaring = Memo(table, partial(_declaring, lookup("forwards")))
        # Whether any definition has the last part of a full name; always true for template specializations, whose
        # names have several spellings.
        self.has_last_name = Memo(table, partial(_has_last_name, self.named))
        # Whether any definition other than a namespace has the full name.
        self.is_defined = Memo(table, partial(_is_defined, self.has_last_name, self.full))
        # Whether a definition, variable or namespace has the full name.
        self.is_known = Memo(table, partial(_is_known, self.is_defined, self.variables, self._spaces))
        # Whether a type has the name.
        self.is_type = Memo(table, partial(_is_type, self.named))

    def sharing(self, family: str, place: str) -> list[str]:
        """Return the paths of the files that share their names in a folder or namespace."""
        return [path for path, _ in self._sharing.get(family, place)]

    def is_namespace(self, family: str, name: str) -> bool:
        """Return whether a file adds to a namespace or to a nested one."""
        return self._spaces.has(family, name)

    def everywhere(self, family: str) -> list[str]:
        """Return the namespaces that all files of a language family use."""
        return [name for _, name in self._everywhere.get(family, "")]

    def calls_in(self, unit: Unit, function: str) -> Sequence[CallSite]:
        """Return the calls in a function, including those in nested functions."""
        self.table.reads.append(key_of("calls", "", unit.path))
        return self.units.offers(unit.path).calls.get(function, ())

    def find_module(self, importer: Unit, module: str) -> tuple[str, ...]:
        """Return the files, or folders with a trailing slash, that an import resolves to."""
        key = importer.path, module
        known = self._found_modules.get(key)
        if known is None:
            tried = importer.rules.candidates(self.modules, importer.path, module)
            names = {*_module_names(importer.path, module), *map(stem, map(posixpath.normpath, tried))}
            markers = {"__init__"} if importer.rules.family == "python" else set()  # files that define a package
            keys = frozenset(key_of("module", "", name) for name in names | markers)
            known = self._found_modules[key] = keys, tuple(importer.rules.find(self.modules, importer.path, module))
        self.table.reads += known[0]
        return known[1]

    def is_file(self, path: str) -> bool:
        """Return whether a file exists."""
        self.table.reads.append(key_of("module", "", stem(path)))
        return path in self.modules.paths

    def is_folder(self, path: str) -> bool:
        """Return whether a folder exists."""
        self.table.reads.append(key_of("module", "", stem(path)))
        return path in self.modules.folders


def _declaring(forwards: Lookup[str], family: str, full: str) -> frozenset[str]:
    return frozenset(path for path, _ in forwards.get(family, full))


def _has_last_name(named: Lookup[Definition], family: str, full: str) -> bool:
    return "<" in full or named.has(family, full.rpartition(".")[2])


def _is_defined(has_last_name: _Predicate, full_names: Lookup[Definition], family: str, full: str) -> bool:
    return has_last_name(family, full) and any(one.kind != "module" for _, one in full_names.each(family, full))


def _is_known(is_defined: _Predicate, variables: Lookup[str], spaces: Lookup[str], family: str, full: str) -> bool:
    return is_defined(family, full) or variables.has(family, full) or spaces.has(family, full)


def _is_type(named: Lookup[Definition], family: str, name: str) -> bool:
    return any(one.kind in TYPES for _, one in named.each(family, name))


def _module_names(importer: str, module: str) -> set[str]:
    """Return the names of files and folders that an import depends on."""
    names = {name for name in _PARTS.split(module) if name}
    if not names.isdisjoint(_RELATIVE):
        return {*names, *_PARTS.split(importer), "main", "lib", "mod"}
    return names or {*importer.split("/")[-3:-1]}
