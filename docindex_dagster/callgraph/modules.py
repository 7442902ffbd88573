"""Module resolution: the files of a source and the search for imported ones."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from docindex_dagster.core.errors import first_line

_Derived = TypeVar("_Derived")
_UP = re.compile(r"^(?:\.\.?/)+")
_NONE = re.compile(r"(?!)")
_CONFIGURATION = re.compile(r"(?:.*/)?(?:go\.mod|Cargo\.toml|package\.json|[tj]sconfig(?:\.[^/]*)?\.json)", re.DOTALL)


def is_config_file(path: str) -> bool:
    """Return whether a file, judging by its name, configures how imports are resolved."""
    return _CONFIGURATION.fullmatch(path) is not None


@dataclass(frozen=True, eq=False)
class Modules:
    """The files of a source.

    Attributes:
        paths: all paths.
        text: returns the text of a file.
        unreadable: configuration files that cannot be parsed, with the reason; filled while they are read.
    """

    paths: frozenset[str]
    text: Callable[[str], str]
    unreadable: dict[str, str] = field(default_factory=dict)
    _derived: dict[object, Any] = field(default_factory=dict)

    @cached_property
    def folders(self) -> frozenset[str]:
        """The folders of the files and their parents."""
        found: set[str] = set()
        for path in self.paths:
            folder = path
            while folder and (folder := posixpath.dirname(folder)) not in found:
                found.add(folder)
        return frozenset(found)

    @cached_property
    def folders_named(self) -> Mapping[str, Sequence[str]]:
        """The folders by name, up to the first dot."""
        return _named(self.folders)

    @cached_property
    def named(self) -> Mapping[str, Sequence[str]]:
        """The files by name, up to the first dot."""
        return _named(self.paths)

    def called(self, name: str) -> list[str]:
        """Return the files with a name, sorted by path."""
        candidates = self.named.get(name.partition(".")[0], ())
        return sorted(path for path in candidates if posixpath.basename(path) == name)

    def configuration(self, path: str, parse: Callable[[str], object]) -> Mapping[str, Any]:
        """Return a parsed configuration file; empty if it cannot be parsed."""
        try:
            found = parse(self.text(path).removeprefix("\ufeff"))
        except (ValueError, RecursionError) as error:
            self.unreadable[path] = first_line(error)
            return {}
        if isinstance(found, dict):
            return found
        self.unreadable[path] = "expected an object"
        return {}

    def derived(self, make: Callable[["Modules"], _Derived]) -> _Derived:
        """Return data that a language derives from the files, computed once."""
        if make not in self._derived:
            self._derived[make] = make(self)
        found: _Derived = self._derived[make]
        return found


def _named(paths: Iterable[str]) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        found[posixpath.basename(path).partition(".")[0]].append(path)
    return found


def upwards(folder: str) -> Iterator[str]:
    """Yield a folder and its parents, up to the root of the source."""
    yield folder
    while folder:
        folder = posixpath.dirname(folder)
        yield folder


def nearest(importer: str, paths: Iterable[str]) -> Iterator[str]:
    """Yield the path that shares the most folders with the importer, then has the fewest; nothing if there is none."""
    around = importer.split("/")[:-1]

    def distance(path: str) -> tuple[int, int, str]:
        return -len(posixpath.commonprefix([around, path.split("/")[:-1]])), path.count("/"), path

    yield from sorted(paths, key=distance)[:1]


@dataclass(frozen=True, slots=True)
class Search:
    """Search path of a language for imports: the importer's folder, its parents, then all files."""

    places: tuple[str, ...] = ()  # path patterns relative to a folder; `{}` is the name
    ending: str = ""  # an optional extension of names
    is_dotted: bool = False  # names are dotted paths
    near: re.Pattern[str] = _NONE  # names tried only next to the importer: relative, standard library
    climbs: bool = True  # parent folders are searched too
    anywhere: tuple[str, ...] = ()  # extensions of files that may match by the end of their path

    def find(self, modules: Modules, importer: str, module: str) -> Iterator[str]:
        """Yield the file that a name refers to, if the source contains it."""
        name = self._plain(module)
        is_near = self.is_near(name)
        tail = _UP.sub("", posixpath.normpath(name))
        for folder in upwards(posixpath.dirname(importer)):
            for place in self.places[:1] if is_near else self.places:
                path = posixpath.normpath(posixpath.join(folder, place.replace("{}", name)))
                if path in modules.paths and (is_near or path != importer):
                    yield path
                    return
            if is_near or not self.climbs:
                break
            name = tail
        if not is_near:
            ends = tuple(f"/{tail}{ending}" for ending in self.anywhere)
            known = modules.named.get(posixpath.basename(tail).partition(".")[0], ()) if ends else ()
            yield from nearest(importer, (path for path in known if f"/{path}".endswith(ends)))

    def is_near(self, name: str) -> bool:
        """Return whether a name is searched only in the importer's folder."""
        return self.near.match(name) is not None

    def _plain(self, module: str) -> str:
        """Return a name as a path without extension."""
        if self.is_dotted and not (self.ending and module.endswith(self.ending)):
            return module.removeprefix("./").replace(".", "/")
        return module.removesuffix(self.ending)
