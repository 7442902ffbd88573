"""To which file or folder of the source an import leads, by the rules of its language."""

import json
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from docindex_dagster.callgraph import modules_c
from docindex_dagster.callgraph.modules_bash import bash_files
from docindex_dagster.callgraph.modules_go import go_folder, go_modules
from docindex_dagster.callgraph.modules_lua import lua_files
from docindex_dagster.callgraph.modules_ruby import ruby_files
from docindex_dagster.callgraph.modules_rust import rust_crates, rust_files
from docindex_dagster.callgraph.modules_zig import zig_files
from docindex_dagster.callgraph.rules import rules_of

_JS_ENDINGS = ("", ".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".json", ".mts", ".cts")
_JS_INDEX = ("/index.ts", "/index.tsx", "/index.js", "/index.jsx", "/index.mjs", "/index.d.ts")
_JS_WRITTEN = re.compile(r"\.(?:m|c)?jsx?$")
_OPENING = ("__init__.py", "__init__.pyi")
_COMMENTS = re.compile(r"//[^\n\"]*$|/\*.*?\*/|,(?=\s*[}\]])", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, eq=False)
class Modules:
    """The files of a source by the names under which others import them."""

    paths: frozenset[str]
    folders: frozenset[str]
    dotted: Mapping[str, Sequence[str]]  # Python: files by the last parts of their dotted names
    aliases: Sequence[tuple[str, str, str]]  # ECMAScript: in a folder, a pattern and what it stands for
    packages: Mapping[str, str]  # ECMAScript: names of packages of the source, and their folders
    headers: Mapping[str, Sequence[str]]  # C: files that may be included, by their names
    go: Sequence[tuple[str, str]] = ()  # names of the modules of Go, and their folders
    crates: Mapping[str, str] = field(default_factory=dict)  # libraries of Rust, and their first files
    _known: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def folders_named(self) -> Mapping[str, Sequence[str]]:
        """The folders by their last names."""
        found: dict[str, list[str]] = defaultdict(list)
        for folder in sorted(self.folders):
            found[posixpath.basename(folder)].append(folder)
        return found

    def find(self, importer: str, language: str, module: str) -> tuple[str, ...]:
        """The files, or folders with a slash behind them, that a module may be; none of another source."""
        key = (importer, module)
        if key not in self._known:
            finder = _FINDERS.get(rules_of(language).family)
            self._known[key] = tuple(finder(self, importer, module)) if finder else ()
        return self._known[key]


_CONFIGURATIONS = frozenset({"tsconfig.json", "jsconfig.json", "package.json", "go.mod", "Cargo.toml"})


def is_configuration(path: str) -> bool:
    """Whether a file says where imports lead."""
    return posixpath.basename(path) in _CONFIGURATIONS


def make_modules(paths: Iterable[str], configurations: Mapping[str, str]) -> Modules:
    """The modules of a source with these files; `configurations` are the texts of tsconfig.json and the like."""
    known = frozenset(paths)
    folders = {parent for path in known for parent in _parents(path)}
    inside = {posixpath.dirname(path) for path in known if path.endswith(_OPENING)}
    dotted: dict[str, list[str]] = defaultdict(list)
    for path in sorted(known):
        if path.endswith((".py", ".pyi")):
            parts = path.rpartition(".")[0].removesuffix("/__init__").split("/")
            for start in range(len(parts)):
                if "/".join(parts[:start]) in inside:  # what is below a package, too: empty files are not known
                    break
                dotted[".".join(parts[start:])].append(path)
    aliases, packages = _configured(configurations)
    return Modules(
        known,
        frozenset(folders),
        dotted,
        aliases,
        packages,
        modules_c.headers(known),
        go_modules(configurations),
        rust_crates(configurations, known),
    )


def _parents(path: str) -> Iterator[str]:
    while path:
        path = posixpath.dirname(path)
        yield path


def _configured(texts: Mapping[str, str]) -> tuple[list[tuple[str, str, str]], dict[str, str]]:
    aliases: list[tuple[str, str, str]] = []
    packages: dict[str, str] = {}
    for path, text in texts.items():
        folder = posixpath.dirname(path)
        try:
            values = json.loads(_COMMENTS.sub("", text))
        except ValueError:
            continue
        if not isinstance(values, dict):
            continue
        if posixpath.basename(path) == "package.json":
            if isinstance(name := values.get("name"), str):
                packages[name] = folder
            aliases += _of_package(values, folder)
            continue
        options = values.get("compilerOptions")
        options = options if isinstance(options, dict) else {}
        base = options.get("baseUrl") if isinstance(options.get("baseUrl"), str) else "."
        root = posixpath.normpath(posixpath.join(folder, str(base)))
        root = "" if root == "." else root
        patterns = options.get("paths")
        for pattern, targets in patterns.items() if isinstance(patterns, dict) else ():
            aliases += [(folder, pattern, posixpath.join(root, str(target))) for target in targets or ()]
        if "baseUrl" in options:
            aliases.append((folder, "*", posixpath.join(root, "*")))
    return aliases, packages


def _of_package(values: Mapping[str, object], folder: str) -> Iterator[tuple[str, str, str]]:
    """What a package names inside, as `#name`, and what others find in it, as `package/name`."""
    name = values.get("name")
    for field_name, within, before in (("imports", folder, ""), ("exports", "", name)):
        named = values.get(field_name)
        named = {".": named} if isinstance(named, str) else named
        for key, target in named.items() if isinstance(named, dict) and isinstance(before, str) else ():
            pattern = f"{before}{key.removeprefix('.')}" if key.startswith((".", "#")) else ""
            if pattern:
                aliases = [path for path in _targets(target) if path.startswith("./")]
                yield from ((within, pattern, posixpath.normpath(posixpath.join(folder, path))) for path in aliases)


def _targets(target: object) -> Iterator[str]:
    """The files of an entry, which may differ from case to case."""
    if isinstance(target, str):
        yield target
    for inner in target.values() if isinstance(target, dict) else target if isinstance(target, list) else ():
        yield from _targets(inner)


def _python(modules: Modules, importer: str, module: str) -> Iterator[str]:
    dots = len(module) - len(module.lstrip("."))
    name = module[dots:]
    if dots:
        folder = posixpath.dirname(importer)
        for _ in range(dots - 1):
            folder = posixpath.dirname(folder)
        yield from _python_file(modules, posixpath.join(folder, name.replace(".", "/")) if name else folder)
        return
    found = modules.dotted.get(name, ())
    if found:
        yield _likeliest(importer, name, found)
        return
    tail = name.replace(".", "/")
    folders = [
        folder
        for folder in modules.folders_named.get(posixpath.basename(tail), ())
        if (folder == tail or folder.endswith(f"/{tail}"))
        and not _is_package(modules, folder.removesuffix(tail).rstrip("/"))
    ]
    if folders:
        yield f"{_nearest(importer, folders)}/"


def _is_package(modules: Modules, folder: str) -> bool:
    return any(f"{folder}/{name}".lstrip("/") in modules.paths for name in _OPENING)


def _python_file(modules: Modules, stem: str) -> Iterator[str]:
    for path in (f"{stem}.py", f"{stem}/__init__.py".lstrip("/"), f"{stem}.pyi", f"{stem}/__init__.pyi".lstrip("/")):
        if path in modules.paths:
            yield path
            return
    if stem in modules.folders:
        yield f"{stem}/"


def _likeliest(importer: str, name: str, paths: Sequence[str]) -> str:
    """The nearest of the files of a dotted name; one that lies beside the importer or above, as in `src`, if any does.

    Others are found only where their folder is added to those that are searched.
    """
    around = importer.split("/")[:-1]

    def is_searched(path: str) -> bool:
        parts = path.rpartition(".")[0].removesuffix("/__init__").split("/")
        root = parts[: -name.count(".") - 1]
        return len(root) <= len(posixpath.commonprefix([around, root])) + 1

    return _nearest(importer, [path for path in paths if is_searched(path)] or paths)


def _nearest(importer: str, paths: Sequence[str]) -> str:
    """The path that shares most folders with the importer; the shortest of them."""

    def shared(path: str) -> int:
        return len(posixpath.commonprefix([importer.split("/")[:-1], path.split("/")[:-1]]))

    return min(paths, key=lambda path: (-shared(path), path.count("/"), path))


def _ecmascript(modules: Modules, importer: str, module: str) -> Iterator[str]:
    if module.startswith("."):
        yield from _ecmascript_file(modules, posixpath.normpath(posixpath.join(posixpath.dirname(importer), module)))
        return
    for folder, pattern, target in modules.aliases:
        if folder and not importer.startswith(f"{folder}/"):
            continue
        before, star, after = pattern.partition("*")
        if module == pattern or (star and module.startswith(before) and module.endswith(after)):
            middle = module[len(before) : len(module) - len(after)] if star else ""
            found = [*_ecmascript_file(modules, posixpath.normpath(target.replace("*", middle)))]
            if found:
                yield from found
                return
    parts = module.split("/")
    for length in (2, 1):
        name = "/".join(parts[:length])
        if name in modules.packages:
            rest = "/".join(parts[length:])
            folder = modules.packages[name]
            for inside in [rest, f"src/{rest}"] if rest else ["src/index", "index", "src/main", "lib/index"]:
                if found := [*_ecmascript_file(modules, posixpath.join(folder, inside))]:
                    yield from found
                    return


def _ecmascript_file(modules: Modules, stem: str) -> Iterator[str]:
    stems = [stem, _JS_WRITTEN.sub("", stem)] if _JS_WRITTEN.search(stem) else [stem]
    for name in stems:
        for ending in (*_JS_ENDINGS, *_JS_INDEX):
            path = name + ending if name not in {".", ""} else ending.lstrip("/")
            if path in modules.paths:
                yield path
                return


def _go(modules: Modules, _: str, module: str) -> Iterable[str]:
    return go_folder(modules.go, modules.folders, module)


def _rust(modules: Modules, importer: str, module: str) -> Iterable[str]:
    return rust_files(modules.crates, modules.paths, importer, module)


def _c(modules: Modules, importer: str, module: str) -> Iterator[str]:
    return modules_c.find(modules.paths, modules.headers, importer, module)


_FINDERS: Mapping[str, Callable[[Modules, str, str], Iterable[str]]] = {
    "python": _python,
    "ecmascript": _ecmascript,
    "ruby": lambda modules, importer, module: ruby_files(modules.paths, importer, module),
    "go": _go,
    "zig": lambda modules, importer, module: zig_files(modules.paths, importer, module),
    "bash": lambda modules, importer, module: bash_files(modules.paths, importer, module),
    "lua": lambda modules, importer, module: lua_files(modules.paths, importer, module),
    "rust": _rust,
    "c": _c,
}
