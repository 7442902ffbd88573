"""Languages supported by the call graph, each with its syntax and name resolution rules.

A language has a module with its syntax and rules, and a query. The rules contain the import search (a `Search` or a
function) and hooks: functions for language-specific semantics, called by the resolver.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from docindex_dagster.callgraph.extract.captured_statements import Language
from docindex_dagster.callgraph.extract.expressions import Syntax
from docindex_dagster.callgraph.extract.file import definitions_of, read_file
from docindex_dagster.callgraph.ir import FileIR
from docindex_dagster.callgraph.languages import (
    bash,
    c,
    csharp,
    ecmascript,
    ecmascript_configs,
    elixir,
    go,
    haskell,
    java,
    kotlin,
    lua,
    php,
    python,
    ruby,
    rust,
    scala,
    swift,
    zig,
)
from docindex_dagster.callgraph.modules import Modules
from docindex_dagster.callgraph.rules import Rules
from docindex_dagster.code.languages import HOSTS
from docindex_dagster.code.parsers import grammar_of
from docindex_dagster.code.symbols import Symbol

if TYPE_CHECKING:
    from tree_sitter import Tree

_LANGUAGES: Mapping[str, tuple[Syntax, Rules]] = {
    "bash": (bash.SYNTAX, bash.RULES),
    "c": (c.C_SYNTAX, c.C_RULES),
    "cpp": (c.CPP_SYNTAX, c.CPP_RULES),
    "csharp": (csharp.SYNTAX, csharp.RULES),
    "elixir": (elixir.SYNTAX, elixir.RULES),
    "go": (go.SYNTAX, go.RULES),
    "haskell": (haskell.SYNTAX, haskell.RULES),
    "java": (java.SYNTAX, java.RULES),
    "javascript": (ecmascript.JAVASCRIPT_SYNTAX, ecmascript.JAVASCRIPT_RULES),
    "kotlin": (kotlin.SYNTAX, kotlin.RULES),
    "lua": (lua.SYNTAX, lua.RULES),
    "php": (php.SYNTAX, php.RULES),
    "python": (python.SYNTAX, python.RULES),
    "ruby": (ruby.SYNTAX, ruby.RULES),
    "rust": (rust.SYNTAX, rust.RULES),
    "scala": (scala.SYNTAX, scala.RULES),
    "swift": (swift.SYNTAX, swift.RULES),
    "tsx": (ecmascript.TSX_SYNTAX, ecmascript.TYPESCRIPT_RULES),
    "typescript": (ecmascript.TYPESCRIPT_SYNTAX, ecmascript.TYPESCRIPT_RULES),
    "zig": (zig.SYNTAX, zig.RULES),
}
SYNTAX = {name: syntax for name, (syntax, _) in _LANGUAGES.items()}
RULES = {name: rules for name, (_, rules) in _LANGUAGES.items()}


def read_configurations(modules: Modules) -> frozenset[str]:
    """Read the files that configure imports; return those that are not recognizable by their names."""
    modules.derived(go.declared_modules)
    modules.derived(rust.declared_crates)
    return modules.derived(ecmascript_configs.read_configurations).extended


def rules_of(language: str) -> Rules:
    """Return the rules of a language or of the code embedded in its files; default rules if it is not supported."""
    return RULES.get(HOSTS.get(language, language)) or Rules(language)


def has_calls(language: str) -> bool:
    """Return whether calls are resolved in a language."""
    return language in SYNTAX


def extract(tree: "Tree", language: str, symbols: Sequence[Symbol]) -> FileIR:
    """Return the IR of a parsed file with these symbols; only definitions if the language is not supported."""
    if has_calls(language):
        return read_file(tree, _language(language), symbols)
    return FileIR(definitions=definitions_of(symbols))


@cache
def _language(name: str) -> Language:
    import tree_sitter

    folder = files("docindex_dagster.callgraph.languages")
    patterns = "\n".join((folder / f"{query}.scm").read_text("utf-8") for query in SYNTAX[name].queries)
    return Language(name, SYNTAX[name], tree_sitter.Query(grammar_of(name), patterns))
