"""To which file of the source a path of Rust leads: a crate, or a module above or below a file."""

import posixpath
import tomllib
from collections.abc import Iterator, Mapping

from docindex_dagster.callgraph.modules import Modules

_ROOTS = ("lib.rs", "main.rs")
_TARGETS = frozenset({"bin", "tests", "examples", "benches"})  # folders in which each file is a crate


def crates(texts: Mapping[str, str], paths: frozenset[str]) -> dict[str, str]:
    """The names of the libraries that the Cargo.toml files declare, and their first files."""
    found = {}
    for path, text in texts.items():
        if posixpath.basename(path) != "Cargo.toml":
            continue
        try:
            values = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
        package, library = values.get("package"), values.get("lib")
        library = library if isinstance(library, dict) else {}
        name = library.get("name") or (package.get("name") if isinstance(package, dict) else None)
        file = posixpath.join(posixpath.dirname(path), str(library.get("path", "src/lib.rs")))
        if isinstance(name, str) and file in paths:
            found[name.replace("-", "_")] = file
    return found


def find(modules: Modules, importer: str, module: str) -> Iterator[str]:
    """The files of `crate`, `super`, `self.name` (a module below a file) or the name of a crate."""
    paths = modules.paths
    if module == "crate":
        yield from _roots(paths, importer)
    elif module == "super":
        yield from _parents(paths, importer)
    elif module.startswith("self."):
        folder = _folder_below(paths, importer)
        stem = posixpath.join(folder, module.removeprefix("self.").replace(".", "/"))
        yield from [path for path in (f"{stem}.rs", f"{stem}/mod.rs") if path in paths and path != importer]
    elif module in modules.crates:
        yield modules.crates[module]


def _is_root(paths: frozenset[str], path: str) -> bool:
    folder, file = posixpath.split(path)
    if file in _ROOTS or file == "build.rs":
        return True
    return posixpath.basename(folder) in _TARGETS and file != "mod.rs" and f"{folder}.rs" not in paths


def _folder_below(paths: frozenset[str], path: str) -> str:
    """The folder of the modules below a file."""
    folder, file = posixpath.split(path)
    return folder if file == "mod.rs" or _is_root(paths, path) else posixpath.join(folder, file.removesuffix(".rs"))


def _parents(paths: frozenset[str], path: str) -> list[str]:
    if _is_root(paths, path):
        return []
    folder, file = posixpath.split(path)
    if file == "mod.rs":
        folder = posixpath.dirname(folder)
    candidates = (f"{folder}/mod.rs".lstrip("/"), f"{folder}.rs")
    found = [candidate for candidate in candidates if candidate in paths and candidate != path]
    if found:
        return found[:1]
    roots = [posixpath.join(folder, root) for root in _ROOTS]
    if posixpath.basename(folder) in _TARGETS:
        roots += sorted(other for other in paths if posixpath.dirname(other) == folder and _is_root(paths, other))
    return [root for root in roots if root in paths and root != path]


def _roots(paths: frozenset[str], path: str) -> list[str]:
    current = [path]
    for _ in path.split("/"):
        above = _parents(paths, current[0])
        if not above:
            return current
        current = above
    return current
