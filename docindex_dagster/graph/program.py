"""The files of a source, by what can be looked up in them.

Files are read when they are asked for, so that one edit of a large source reads few. Where a name is to be found
follows from keys: short hashes of what a file has to offer, which are kept with the graph.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from docindex_dagster.graph.modules import Modules
from docindex_dagster.graph.offers import Offers, Stored, key_of, stem
from docindex_dagster.graph.resolution.memo import Looks
from docindex_dagster.graph.units import Definition, Reference, Unit, make_unit

_Key = tuple[str, str]
_Found = TypeVar("_Found")
_PLACES = frozenset({"crate", "self", "super"})  # of Rust: relative to the importer
_PARTS = re.compile(r"[/.:\\]+")

COLUMNS = ("path", "chunk_id", "language", "source_type", "symbols", "facts")
"""What a unit is made of."""


@dataclass(frozen=True, eq=False)
class Units(Mapping[str, Unit]):
    """The units of the files of a table of chunks, which is sorted by path and position."""

    chunks: pa.Table
    _made: dict[str, Unit] = field(default_factory=dict)
    _offers: dict[str, Offers] = field(default_factory=dict)

    def offers(self, path: str) -> Offers:
        """What the file of a path offers to others."""
        if path not in self._offers:
            self._offers[path] = Offers(self[path])
        return self._offers[path]

    @cached_property
    def _spans(self) -> dict[str, tuple[int, int]]:
        paths = self.chunks["path"].combine_chunks().dictionary_encode()
        codes = paths.indices.to_numpy(zero_copy_only=False)
        begins = np.flatnonzero(np.diff(codes, prepend=-1))
        ends = np.append(begins, len(codes))[1:]
        names = paths.dictionary.take(pa.array(codes[begins])).to_pylist()
        return dict(zip(names, zip(begins.tolist(), ends.tolist(), strict=True), strict=True))

    def __getitem__(self, path: str) -> Unit:
        unit = self._made.get(path)
        if unit is None:
            begin, end = self._spans[path]
            rows = self.chunks.slice(begin, end - begin).select(list(COLUMNS)).to_pylist()
            unit = self._made[path] = make_unit(path, rows)
        return unit

    def __contains__(self, path: object) -> bool:
        return path in self._spans

    def __iter__(self) -> Iterator[str]:
        return iter(self._spans)

    def __len__(self) -> int:
        return len(self._spans)


@dataclass(frozen=True, eq=False)
class Index:
    """Which files offer a key."""

    paths: Sequence[str]
    _keys: NDArray[np.int64]  # sorted: shape (keys,)
    _files: NDArray[np.int64]  # of each key, the position of a path that offers it: shape (keys,)

    @classmethod
    def of(cls, offered: Mapping[str, Sequence[int]]) -> "Index":
        """The index of the keys that each path offers."""
        paths = [*offered]
        keys = np.array([key for each in offered.values() for key in each], np.int64)
        files = np.repeat(np.arange(len(paths)), [len(each) for each in offered.values()])
        order = np.lexsort((files, keys))
        return cls(paths, keys[order], files[order])

    def find(self, key: int) -> list[str]:
        """The paths that offer a key, in their order."""
        begin, end = np.searchsorted(self._keys, [key, key + 1])
        return [self.paths[file] for file in self._files[begin:end]]


@dataclass(frozen=True, eq=False)
class Used(Mapping[str, Unit]):
    """Units, with a note of each that is asked for."""

    units: Units
    looks: Looks
    _noted: dict[str, tuple[int, Unit]] = field(default_factory=dict)

    def __getitem__(self, path: str) -> Unit:
        noted = self._noted.get(path)
        if noted is None:
            noted = self._noted[path] = key_of("file", path), self.units[path]
        self.looks.append(noted[0])
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
    looks: Looks
    table: Callable[[Offers], Mapping[str, Sequence[_Found]]]
    _known: dict[_Key, tuple[int, list[tuple[str, _Found]]]] = field(default_factory=dict)

    def get(self, key: _Key, default: Sequence[tuple[str, _Found]] = ()) -> Sequence[tuple[str, _Found]]:
        """What there is, each with its path."""
        known = self._known.get(key)
        if known is None:
            (family, name), hashed = key, key_of(self.sort, *key)
            found = [
                (path, found)
                for path in self.index.find(hashed)
                if self.units[path].policy.family == family
                for found in self.table(self.units.offers(path)).get(name, ())
            ]
            known = self._known[key] = hashed, found
        self.looks.append(known[0])
        return known[1] or default


class Program:
    """All files of a source. The keys of its tables begin with the family of languages.

    What is looked at is noted in `looks`, so that a file is resolved again when that changes.
    """

    def __init__(self, units: Units, modules: Modules, index: Index) -> None:
        self.looks: Looks = []
        self.units = Used(units, self.looks)
        self.modules = modules
        self._led: dict[_Key, tuple[frozenset[int], tuple[str, ...]]] = {}

        def lookup(sort: str, table: Callable[[Offers], Mapping[str, Sequence[_Found]]]) -> Lookup[_Found]:
            return Lookup(sort, index, units, self.looks, table)

        self.named: Lookup[Definition] = lookup("name", lambda offers: offers.named)
        self.full: Lookup[Definition] = lookup("full", lambda offers: offers.full)
        self.extensions: Lookup[Definition] = lookup("extensions", lambda offers: offers.extensions)
        self.callers: Lookup[Reference] = lookup("callers", lambda offers: offers.callers)
        self.takers: Lookup[tuple[Reference, int]] = lookup("takers", lambda offers: offers.takers)
        self.derived: Lookup[str] = lookup("derived", lambda offers: offers.derived)
        self.assigned: Lookup[Reference] = lookup("assigned", lambda offers: offers.assigned)
        self.fills: Lookup[Reference] = lookup("fills", lambda offers: offers.fills)
        self.variables: Lookup[str] = lookup("variables", lambda offers: offers.variables)
        self.stored: Lookup[Stored] = lookup("stored", lambda offers: offers.stored)
        self._forwards: Lookup[str] = lookup("forwards", lambda offers: offers.forwards)
        self.tops: Lookup[str] = lookup("top", lambda offers: offers.tops)
        self._targets_of: Lookup[Reference] = lookup("references", lambda offers: offers.references)
        self._sharing: Lookup[str] = lookup("sharing", lambda offers: offers.sharing)
        self._spaces: Lookup[str] = lookup("spaces", lambda offers: offers.spaces)
        self._everywhere: Lookup[str] = lookup("everywhere", lambda offers: offers.everywhere)

    def sharing(self, family: str, place: str) -> list[str]:
        """The paths of the files in a folder or namespace whose names meet."""
        return [path for path, _ in self._sharing.get((family, place))]

    def is_namespace(self, family: str, name: str) -> bool:
        """Whether a file adds to a namespace, or to one in it."""
        return bool(self._spaces.get((family, name)))

    def declaring(self, family: str, name: str) -> frozenset[str]:
        """The paths of the files that declare a function of a full name."""
        return frozenset(path for path, _ in self._forwards.get((family, name)))

    def everywhere(self, family: str) -> list[str]:
        """The namespaces that all files of a language use."""
        return [name for _, name in self._everywhere.get((family, ""))]

    def references_in(self, unit: Unit, function: str) -> list[Reference]:
        """What a function calls, also in those that are written in it."""
        key = unit.policy.family, f"{unit.path}::{function}"
        return [reference for _, reference in self._targets_of.get(key)]

    def find_module(self, importer: Unit, module: str) -> tuple[str, ...]:
        """The files, or folders with a slash behind them, to which an import of a file leads."""
        key = importer.path, module
        known = self._led.get(key)
        if known is None:
            names = _module_names(importer.path, module)
            opening = {"__init__"} if importer.policy.family == "python" else set()  # what is a package
            looks = frozenset(key_of("module", name) for name in names | opening)
            known = self._led[key] = looks, self.modules.find(importer.path, importer.language, module)
        self.looks += known[0]
        return known[1]

    def is_file(self, path: str) -> bool:
        """Whether there is a file."""
        self.looks.append(key_of("module", stem(path)))
        return path in self.modules.paths

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder."""
        self.looks.append(key_of("module", stem(path)))
        return path in self.modules.folders


def _module_names(importer: str, module: str) -> set[str]:
    """The names of files and folders that decide where an import leads."""
    names = {name for name in _PARTS.split(module) if name}
    if not names.isdisjoint(_PLACES):
        return {*names, *_PARTS.split(importer), "main", "lib", "mod"}
    return names or {*importer.split("/")[-3:-1]}
