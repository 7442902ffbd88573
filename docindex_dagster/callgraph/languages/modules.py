"""To which file or folder of the source an import leads, by the rules of its language."""

import posixpath
from collections.abc import Callable, Iterable, Mapping

from docindex_dagster.callgraph.languages import (
    bash_modules,
    c_modules,
    ecmascript_modules,
    go_modules,
    haskell_modules,
    lua_modules,
    python_modules,
    ruby_modules,
    rules_of,
    rust_modules,
    zig_modules,
)
from docindex_dagster.callgraph.modules import Modules

_CONFIGURATIONS = ecmascript_modules.CONFIGURATIONS | {"go.mod", "Cargo.toml"}


def is_configuration(path: str) -> bool:
    """Whether a file says where imports lead."""
    return posixpath.basename(path) in _CONFIGURATIONS


def make_modules(paths: Iterable[str], configurations: Mapping[str, str]) -> Modules:
    """The modules of a source with these files; `configurations` are the texts of tsconfig.json and the like."""
    known = frozenset(paths)
    aliases, packages = ecmascript_modules.configured(configurations)
    return Modules(
        known,
        _folders(known),
        python_modules.dotted_names(known),
        aliases,
        packages,
        c_modules.headers(known),
        go_modules.declared(configurations),
        rust_modules.crates(configurations, known),
        haskell_modules.named(known),
    )


def find_module(modules: Modules, importer: str, language: str, module: str) -> tuple[str, ...]:
    """The files, or folders with a slash behind them, that a module may be; none of another source."""
    finder = _FINDERS.get(rules_of(language).family)
    return tuple(finder(modules, importer, module)) if finder else ()


def _folders(paths: Iterable[str]) -> frozenset[str]:
    """The folders of some files, with those around them."""
    found: set[str] = set()
    for path in paths:
        folder = path
        while folder and (folder := posixpath.dirname(folder)) not in found:
            found.add(folder)
    return frozenset(found)


_FINDERS: Mapping[str, Callable[[Modules, str, str], Iterable[str]]] = {
    "python": python_modules.find,
    "ecmascript": ecmascript_modules.find,
    "ruby": ruby_modules.find,
    "go": go_modules.find,
    "rust": rust_modules.find,
    "c": c_modules.find,
    "haskell": haskell_modules.find,
    "lua": lua_modules.find,
    "bash": bash_modules.find,
    "zig": zig_modules.find,
}
