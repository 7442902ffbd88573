"""To which file of the source a path of Rust leads: a crate, or a module above or below a file."""

import posixpath
import tomllib
from collections.abc import Iterator, Mapping

from docindex_dagster.callgraph.modules import Modules

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
    elif module in modules.derived(declared_crates):
        yield modules.derived(declared_crates)[module]


def declared_crates(modules: Modules) -> Mapping[str, str]:
    """The names of the libraries that the Cargo.toml files declare, and their first files."""
    found = {}
    for path in modules.called("Cargo.toml"):
        values = modules.configuration(path, tomllib.loads)
        package, library = (part if isinstance(part := values.get(name), dict) else {} for name in ("package", "lib"))
        name = library.get("name") or package.get("name")
        file = posixpath.join(posixpath.dirname(path), str(library.get("path", "src/lib.rs")))
        if isinstance(name, str) and file in modules.paths:
            found[name.replace("-", "_")] = file
    return found


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
