"""To which file or folder of the source an import leads, by the rules of its language."""

import posixpath
from collections.abc import Callable, Iterable, Mapping

from docindex_dagster.callgraph.languages import (
    bash_modules,
    c,
    ecmascript_modules,
    go_modules,
    haskell,
    lua,
    python_modules,
    ruby,
    rules_of,
    rust_modules,
    zig,
)
from docindex_dagster.callgraph.modules import Modules

_CONFIGURATIONS = ecmascript_modules.CONFIGURATIONS | {"go.mod", "Cargo.toml"}
_FINDERS: Mapping[str, Callable[[Modules, str, str], Iterable[str]]] = {
    "bash": bash_modules.find,
    "c": c.MODULES.find,
    "ecmascript": ecmascript_modules.find,
    "go": go_modules.find,
    "haskell": haskell.MODULES.find,
    "lua": lua.MODULES.find,
    "python": python_modules.find,
    "ruby": ruby.MODULES.find,
    "rust": rust_modules.find,
    "zig": zig.MODULES.find,
}


def is_configuration(path: str) -> bool:
    """Whether a file says where imports lead."""
    return posixpath.basename(path) in _CONFIGURATIONS


def find_module(modules: Modules, importer: str, language: str, module: str) -> tuple[str, ...]:
    """The files, or folders with a slash behind them, that a module may be; none of another source."""
    finder = _FINDERS.get(rules_of(language).family)
    return tuple(finder(modules, importer, module)) if finder else ()
