"""The files of a source, and how those are found that others import."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from docindex_dagster.core.errors import first_line

_Made = TypeVar("_Made")
_UP = re.compile(r"^(?:\.\.?/)+")
_NONE = re.compile(r"(?!)")
_CONFIGURATION = re.compile(r"(?:.*/)?(?:go\.mod|Cargo\.toml|package\.json|[tj]sconfig(?:\.[^/]*)?\.json)", re.DOTALL)


def is_configuration(path: str) -> bool:
    """Whether a file says by its name that it tells where imports lead."""
    return _CONFIGURATION.fullmatch(path) is not None


@dataclass(frozen=True, eq=False)
class Modules:
    """The files of a source.

    Attributes:
        paths: of all.
        text: gives the text of one.
        unreadable: configurations that cannot be read, and why; filled while they are read.
    """

    paths: frozenset[str]
    text: Callable[[str], str]
    unreadable: dict[str, str] = field(default_factory=dict)
    _made: dict[object, Any] = field(default_factory=dict)

    @cached_property
    def folders(self) -> frozenset[str]:
        """The folders of the files, with those around them."""
        found: set[str] = set()
        for path in self.paths:
            folder = path
            while folder and (folder := posixpath.dirname(folder)) not in found:
                found.add(folder)
        return frozenset(found)

    @cached_property
    def folders_named(self) -> Mapping[str, Sequence[str]]:
        """The folders by their last names."""
        return _named(self.folders)

    @cached_property
    def named(self) -> Mapping[str, Sequence[str]]:
        """The files by their names up to the first dot."""
        return _named(self.paths)

    def called(self, name: str) -> list[str]:
        """The files with a name, in the order of their paths."""
        alike = self.named.get(name.partition(".")[0], ())
        return sorted(path for path in alike if posixpath.basename(path) == name)

    def configuration(self, path: str, parse: Callable[[str], object]) -> Mapping[str, Any]:
        """What a configuration says, as it is parsed; nothing if it cannot be."""
        try:
            found = parse(self.text(path).removeprefix("\ufeff"))
        except (ValueError, RecursionError) as error:
            self.unreadable[path] = first_line(error)
            return {}
        if isinstance(found, dict):
            return found
        self.unreadable[path] = "expected an object"
        return {}

    def derived(self, make: Callable[["Modules"], _Made]) -> _Made:
        """What a language makes of the files, which is made once."""
        if make not in self._made:
            self._made[make] = make(self)
        found: _Made = self._made[make]
        return found


def _named(paths: Iterable[str]) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        found[posixpath.basename(path).partition(".")[0]].append(path)
    return found


def upwards(folder: str) -> Iterator[str]:
    """A folder and those around it, up to the root of the source."""
    yield folder
    while folder:
        folder = posixpath.dirname(folder)
        yield folder


def nearest(importer: str, paths: Iterable[str]) -> Iterator[str]:
    """The path that shares most folders with the importer, the shortest of them; none of none."""
    around = importer.split("/")[:-1]

    def distance(path: str) -> tuple[int, int, str]:
        return -len(posixpath.commonprefix([around, path.split("/")[:-1]])), path.count("/"), path

    yield from sorted(paths, key=distance)[:1]


@dataclass(frozen=True, slots=True)
class Search:
    """Where a language looks for what an import names: beside the importer, in folders above, and among all files."""

    places: tuple[str, ...] = ()  # of a file by the name `{}`, in a folder
    ending: str = ""  # that a name may be written with
    is_dotted: bool = False  # the parts of a name have dots between them
    near: re.Pattern[str] = _NONE  # what only lies at the first place beside the importer: relative names, the library
    climbs: bool = True  # folders above are searched, too
    anywhere: tuple[str, ...] = ()  # endings of files that are found by how their paths end

    def find(self, modules: Modules, importer: str, module: str) -> Iterator[str]:
        """The file that a name means, if the source has it."""
        name = self._plain(module)
        beside = posixpath.dirname(importer)
        is_near = self.is_near(name)
        tail = _UP.sub("", posixpath.normpath(name))
        for folder in upwards(beside):
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
        """Whether a name is looked for beside the importer alone."""
        return self.near.match(name) is not None

    def _plain(self, module: str) -> str:
        """A name as a path without its ending."""
        if self.is_dotted and not (self.ending and module.endswith(self.ending)):
            return module.removeprefix("./").replace(".", "/")
        return module.removesuffix(self.ending)
