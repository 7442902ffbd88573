"""Import settings from JavaScript and TypeScript configuration files: tsconfig, jsconfig and package.json."""

import json
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from docindex_dagster.callgraph.modules import Modules, upwards

_STRING = r'("(?:\\.|[^"\\])*"?)'
_COMMENT = re.compile(rf"{_STRING}|//[^\r\n]*|/\*(?:.*?\*/|.*)", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)
_LEAF = "${configDir}"  # the folder of the outermost extending configuration
_MAX_DEPTH = 50  # of configurations that extend each other
_SHOWN = 100  # characters of a path in a problem
_ENTRIES = ("source", "types", "typings", "module", "main")
_DEPENDENCIES = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
_RENAMED = re.compile(r"workspace:(@?[^@]+)@")


class Alias(NamedTuple):
    """Pattern of module names, with at most one `*`, and the path or module it maps to."""

    pattern: str
    target: str
    is_module: bool = False

    def expand(self, module: str) -> str | None:
        """Return what a module maps to; None if the pattern does not match."""
        before, star, after = self.pattern.partition("*")
        if not star:
            return self.target if module == self.pattern else None
        if len(module) < len(before) + len(after) or not (module.startswith(before) and module.endswith(after)):
            return None
        return self.target.replace("*", module[len(before) : len(module) - len(after)])


class Package(NamedTuple):
    """A package of the source: its folder and its entry points."""

    folder: str
    entries: Sequence[Alias]


class Configurations(NamedTuple):
    """All configurations of a source.

    Attributes:
        aliases: by the folder or file that they apply to; the most specific first.
        packages: by name, then by the path of the package.json.
        extended: paths that other configurations extend or reference, including missing ones.
    """

    aliases: Mapping[str, Sequence[Alias]]
    packages: Mapping[str, Mapping[str, Package]]
    extended: frozenset[str]


def read_configurations(modules: Modules) -> Configurations:
    """Read the configurations of a source."""
    reader = _Reader(modules)
    aliases: dict[str, dict[Alias, None]] = defaultdict(dict)
    packages: dict[str, dict[str, Package]] = defaultdict(dict)
    for path in modules.called("package.json"):
        folder, values = posixpath.dirname(path), reader.values(path)
        aliases[folder].update(dict.fromkeys(_own_names(values, folder)))
        if isinstance(name := values.get("name"), str):
            packages[name][path] = Package(folder, [*_entries(values, name, folder)])
    reader.packages = packages
    for path in reader.projects():
        options = reader.options(path)
        of_project = dict.fromkeys(_of_options(options, posixpath.dirname(path)))
        for scope in _scopes(options, posixpath.dirname(path)) if of_project else ():
            aliases[scope].update(of_project)
    return Configurations({scope: [*found] for scope, found in aliases.items()}, packages, frozenset(reader.extended))


def entry_paths(packages: Mapping[str, Package], path: str, module: str) -> Iterator[str]:
    """Yield the paths, ignoring extensions, that a package may have for a module; sources come after built files."""
    package = packages[path]
    for alias in package.entries:
        if (target := alias.expand(module)) is not None:
            yield target
            yield from _sources(package.folder, target)


_Placed = tuple[str, Any]  # the folder of the configuration, and a value from it


class _Reader:
    """Reader of compiler configurations and the ones they extend."""

    def __init__(self, modules: Modules) -> None:
        self.modules = modules
        self.packages: Mapping[str, Mapping[str, Package]] = {}
        self.extended: set[str] = set()
        self._values: dict[str, Mapping[str, Any]] = {}
        self._options: dict[str, dict[str, _Placed]] = {}

    def values(self, path: str) -> Mapping[str, Any]:
        """Return the contents of a file; empty if it cannot be read."""
        if path not in self._values:
            self._values[path] = self.modules.configuration(path, _parse)
        return self._values[path]

    def projects(self) -> Iterator[str]:
        """Yield the configurations found by name, and those they reference."""
        named = [*self.modules.named.get("tsconfig", ()), *self.modules.named.get("jsconfig", ())]
        found = dict.fromkeys(
            sorted((path for path in named if path.endswith(".json")), key=lambda path: (not _is_main(path), path))
        )
        waiting = [*found]
        while waiting:
            path = waiting.pop()
            yield path
            for reference in _list(self.values(path).get("references")):
                written = _mapping(reference).get("path")
                target = self._file(posixpath.join(posixpath.dirname(path), written)) if _is_path(written) else None
                if target is not None and target not in found:
                    found[target] = None
                    waiting.append(target)

    def options(self, path: str, depth: int = 0) -> Mapping[str, _Placed]:
        """Return the options of a configuration, including inherited ones; extending itself adds nothing."""
        if path in self._options:
            return self._options[path]
        found = self._options[path] = {}
        values, folder = self.values(path), posixpath.dirname(path)
        extended = values.get("extends")
        for written in (extended if isinstance(extended, list) else [extended]) if depth < _MAX_DEPTH else ():
            if _is_path(written) and (base := self._base(path, written)):
                found |= self.options(base, depth + 1)
        options = _mapping(values.get("compilerOptions"))
        own = {"include": values.get("include"), "baseUrl": options.get("baseUrl"), "paths": options.get("paths")}
        found |= {name: (folder, value) for name, value in own.items() if value is not None}
        return found

    def _base(self, path: str, written: str) -> str | None:
        """Return the file that a configuration extends; None if the source does not contain it."""
        folder = posixpath.dirname(path)
        if not written.startswith("."):
            return next(filter(None, map(self._file, self._packaged(folder, written))), None)
        found = self._file(posixpath.join(folder, written))
        if found is None and "node_modules" not in written:
            self.modules.unreadable[path] = f"extends {written[:_SHOWN]}, which is not in the index"
        return found

    def _packaged(self, folder: str, written: str) -> Iterator[str]:
        """Yield the possible paths of a configuration in a package: in `node_modules` or in the source."""
        yield from (posixpath.join(around, "node_modules", written) for around in upwards(folder))
        name, rest = split_name(written)
        for path, package in self.packages.get(name, {}).items():
            yield from entry_paths(self.packages[name], path, written)
            yield posixpath.join(package.folder, rest)

    def _file(self, written: str) -> str | None:
        stem = posixpath.normpath(written)
        candidates = (stem, f"{stem}.json", posixpath.normpath(posixpath.join(stem, "tsconfig.json")))
        self.extended.update(candidates)
        return next((path for path in candidates if path in self.modules.paths), None)


def split_name(module: str) -> tuple[str, str]:
    """Split a module into the name of its package and the path in it."""
    parts = module.split("/")
    length = 2 if module.startswith("@") else 1
    return "/".join(parts[:length]), "/".join(parts[length:])


def _parse(text: str) -> object:
    """Parse JSON with comments and trailing commas."""
    plain = _COMMENT.sub(lambda match: match[1] or " ", text)
    return json.loads(_LAST_COMMA.sub(lambda match: match[1] or "", plain))


def _is_main(path: str) -> bool:
    return posixpath.basename(path) == "tsconfig.json"


def _is_path(written: object) -> TypeGuard[str]:
    return isinstance(written, str) and bool(written) and "\0" not in written


def _of_options(options: Mapping[str, _Placed], leaf: str) -> list[Alias]:
    """Return the aliases from `paths`, most specific first, then the one from `baseUrl`."""
    base = options.get("baseUrl")
    root = _placed(*base, leaf) if base and _is_path(base[1]) else None
    folder, paths = options.get("paths", (leaf, {}))
    found = [
        Alias(pattern, _placed(folder if root is None else root, target, leaf))
        for pattern, targets in _mapping(paths).items()
        for target in _list(targets)
        if _is_path(target)
    ]
    return [*sorted(found, key=_generality), *([] if root is None else [Alias("*", posixpath.join(root, "*"))])]


def _scopes(options: Mapping[str, _Placed], leaf: str) -> dict[str, None]:
    """Return the folders and files that a configuration applies to: its own folder and the included ones."""
    folder, included = options.get("include", (leaf, []))
    fixed = [_placed(folder, re.split(r"[*?]", one)[0], leaf) for one in _list(included) if _is_path(one)]
    return dict.fromkeys("" if scope == "." else scope for scope in map(posixpath.normpath, (*fixed, leaf)))


def _placed(folder: str, written: str, leaf: str) -> str:
    """Return a path relative to the root of the source."""
    if written.startswith(_LEAF):
        folder, written = leaf, written.removeprefix(_LEAF).lstrip("/")
    return posixpath.normpath(posixpath.join(folder, written))


def _own_names(values: Mapping[str, Any], folder: str) -> Iterator[Alias]:
    """Yield the aliases private to a package: `#name` imports, and renamed dependencies on packages of the source."""
    own = _mapping(values.get("imports"))
    imports = [alias for key, target in own.items() for alias in _named(key, target, folder)]
    yield from sorted((alias for alias in imports if alias.pattern.startswith("#")), key=_generality)
    for kind in _DEPENDENCIES:
        for name, version in _mapping(values.get(kind)).items():
            if isinstance(version, str) and (renamed := _RENAMED.match(version)):
                yield Alias(name, renamed[1], is_module=True)
                yield Alias(f"{name}/*", f"{renamed[1]}/*", is_module=True)


def _entries(values: Mapping[str, Any], name: str, folder: str) -> Iterator[Alias]:
    """Yield the entry points of a package."""
    exports = values.get("exports")
    by_path = exports if isinstance(exports, dict) and any(key.startswith(".") for key in exports) else {".": exports}
    found = [
        alias
        for key, target in by_path.items()
        if key.startswith(".")
        for alias in _named(f"{name}{key[1:]}", target, folder)
    ]
    yield from (alias for alias in sorted(found, key=_generality) if not alias.is_module)
    for entry in _ENTRIES:
        if _is_path(target := values.get(entry)):
            yield Alias(name, posixpath.normpath(posixpath.join(folder, target)))


def _named(pattern: str, target: object, folder: str) -> Iterator[Alias]:
    """Yield the aliases of an entry, whose targets may depend on conditions."""
    waiting = [target]
    while waiting:
        target = waiting.pop()
        if isinstance(target, str) and target.startswith("./"):
            yield Alias(pattern, posixpath.normpath(posixpath.join(folder, target)))
        elif isinstance(target, str):
            yield Alias(pattern, target, is_module=True)
        elif isinstance(target, dict | list):
            waiting += reversed([*(target.values() if isinstance(target, dict) else target)])


def _generality(alias: Alias) -> tuple[bool, int]:
    before, star, _ = alias.pattern.partition("*")
    return bool(star), -len(before)


_BUILT = frozenset({"build", "cjs", "dist", "es", "esm", "lib", "out", "types"})


def _sources(folder: str, target: str) -> Iterator[str]:
    """Yield the likely source files of a built file, following common package layouts."""
    inside = target.removeprefix(folder).strip("/").split("/")
    built = 0
    while built < len(inside) - 1 and inside[built] in _BUILT:
        built += 1
    if built:
        yield posixpath.join(folder, "src", *inside[built:])
        yield posixpath.join(folder, *inside[built:])


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> Iterable[Any]:
    return value if isinstance(value, list) else ()
