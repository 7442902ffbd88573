"""To which file of the source a path of Rust leads: a crate, or a module above or below a file."""

import posixpath
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from docindex_dagster.callgraph.modules import Modules, upwards

_ROOTS = ("lib.rs", "main.rs")
_TARGETS = frozenset({"bin", "tests", "examples", "benches"})  # folders in which each file is a crate


def find(modules: Modules, importer: str, module: str) -> Iterator[str]:
    """The files of `crate`, `super`, `self.name` (a module below a file) or the name of a crate."""
    paths = modules.paths
    if module == "crate":
        yield from _roots(paths, importer)
    elif module == "super":
        yield from _parents(paths, importer)
    elif module.startswith("self."):
        folder, file = posixpath.split(importer)
        has_modules_beside = file == "mod.rs" or _is_root(paths, importer)
        stem = folder if has_modules_beside else posixpath.join(folder, file.removesuffix(".rs"))
        stem = posixpath.join(stem, module.removeprefix("self.").replace(".", "/"))
        yield from _known(paths, importer, f"{stem}.rs", f"{stem}/mod.rs")
    elif module.endswith(".rs"):  # as an attribute has it
        yield from _known(paths, importer, posixpath.normpath(posixpath.join(posixpath.dirname(importer), module)))
    else:
        crates = modules.derived(declared_crates)
        renamed = (crates.renamed.get(folder, {}).get(module) for folder in upwards(posixpath.dirname(importer)))
        package = next(filter(None, renamed), None)
        if library := crates.packages.get(package or "") or crates.libraries.get(module):
            yield library


class Crates(NamedTuple):
    """What the Cargo.toml files declare.

    Attributes:
        libraries: the first files of libraries, by the names that code has for them.
        packages: the same, by the names of packages.
        renamed: by folder, the packages that its code has under other names.
    """

    libraries: Mapping[str, str]
    packages: Mapping[str, str]
    renamed: Mapping[str, Mapping[str, str]]


def declared_crates(modules: Modules) -> Crates:
    """Read the Cargo.toml files."""
    libraries: dict[str, str] = {}
    packages: dict[str, str] = {}
    renamed: dict[str, Mapping[str, str]] = {}
    for path in modules.called("Cargo.toml"):
        values, folder = modules.configuration(path, tomllib.loads), posixpath.dirname(path)
        package, library = _table(values, "package"), _table(values, "lib")
        file = posixpath.join(folder, str(library.get("path", "src/lib.rs")))
        name = package.get("name")
        called = library.get("name") or name
        if file in modules.paths and isinstance(called, str):
            libraries[called.replace("-", "_")] = file
        if file in modules.paths and isinstance(name, str):
            packages[name] = file
        renamed[folder] = dict(_renamed(values))
    return Crates(libraries, packages, renamed)


def _renamed(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The names under which code has packages, and theirs."""
    targets = [one for one in _table(values, "target").values() if isinstance(one, dict)]
    for table in (values, _table(values, "workspace"), *targets):
        for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
            for name, about in _table(table, kind).items():
                if isinstance(about, dict) and isinstance(package := about.get("package"), str):
                    yield name.replace("-", "_"), package


def _table(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = values.get(name)
    return found if isinstance(found, dict) else {}


def _known(paths: frozenset[str], path: str, *candidates: str) -> list[str]:
    """Those of some files that are known, but for one itself."""
    return [candidate for candidate in candidates if candidate in paths and candidate != path]


def _is_root(paths: frozenset[str], path: str) -> bool:
    folder, file = posixpath.split(path)
    is_target = posixpath.basename(folder) in _TARGETS and file != "mod.rs" and f"{folder}.rs" not in paths
    return file in _ROOTS or file == "build.rs" or is_target


def _parents(paths: frozenset[str], path: str) -> list[str]:
    """The file of the module around that of a file; the first files of a crate that may have it."""
    if _is_root(paths, path):
        return []
    folder, file = posixpath.split(path)
    folder = posixpath.dirname(folder) if file == "mod.rs" else folder
    if found := _known(paths, path, f"{folder}/mod.rs".lstrip("/"), f"{folder}.rs"):
        return found[:1]
    roots = [posixpath.join(folder, root) for root in _ROOTS]
    if posixpath.basename(folder) in _TARGETS:
        roots += sorted(other for other in paths if posixpath.dirname(other) == folder and _is_root(paths, other))
    return _known(paths, path, *roots)


def _roots(paths: frozenset[str], path: str) -> list[str]:
    current = [path]
    for _ in path.split("/"):
        above = _parents(paths, current[0])
        if not above:
            return current
        current = above
    return current
