"""The languages whose calls are followed: how each is read, and what it means by a name.

A language has a module with its syntax and rules, and a query; where its imports lead is a `Search` among the rules, or
a module of its own where that does not suffice.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from docindex_dagster.callgraph.extract.expressions import Syntax
from docindex_dagster.callgraph.extract.file import definitions_of, read_file
from docindex_dagster.callgraph.extract.places import Language
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
from docindex_dagster.code.parse import grammar_of
from docindex_dagster.code.symbols import Symbol

if TYPE_CHECKING:
    from tree_sitter import Tree

SYNTAX: Mapping[str, Syntax] = {
    "bash": bash.SYNTAX,
    "c": c.C_SYNTAX,
    "cpp": c.CPP_SYNTAX,
    "csharp": csharp.SYNTAX,
    "elixir": elixir.SYNTAX,
    "go": go.SYNTAX,
    "haskell": haskell.SYNTAX,
    "java": java.SYNTAX,
    "javascript": ecmascript.JAVASCRIPT_SYNTAX,
    "kotlin": kotlin.SYNTAX,
    "lua": lua.SYNTAX,
    "php": php.SYNTAX,
    "python": python.SYNTAX,
    "ruby": ruby.SYNTAX,
    "rust": rust.SYNTAX,
    "scala": scala.SYNTAX,
    "swift": swift.SYNTAX,
    "tsx": ecmascript.TSX_SYNTAX,
    "typescript": ecmascript.TYPESCRIPT_SYNTAX,
    "zig": zig.SYNTAX,
}
RULES: Mapping[str, Rules] = {
    "bash": bash.RULES,
    "c": c.C_RULES,
    "cpp": c.CPP_RULES,
    "csharp": csharp.RULES,
    "elixir": elixir.RULES,
    "go": go.RULES,
    "haskell": haskell.RULES,
    "java": java.RULES,
    "javascript": ecmascript.JAVASCRIPT_RULES,
    "kotlin": kotlin.RULES,
    "lua": lua.RULES,
    "php": php.RULES,
    "python": python.RULES,
    "ruby": ruby.RULES,
    "rust": rust.RULES,
    "scala": scala.RULES,
    "swift": swift.RULES,
    "tsx": ecmascript.TYPESCRIPT_RULES,
    "typescript": ecmascript.TYPESCRIPT_RULES,
    "zig": zig.RULES,
}


def read_configurations(modules: Modules) -> frozenset[str]:
    """Read what says where imports lead; return which files do so that their names do not give away."""
    modules.derived(go.declared_modules)
    modules.derived(rust.declared_crates)
    return modules.derived(ecmascript_configs.read_configurations).extended


def rules_of(language: str) -> Rules:
    """The rules of a language or of the code in its files; where no names are followed, those of a file of its own."""
    return RULES.get(HOSTS.get(language, language)) or Rules(language)


def has_calls(language: str) -> bool:
    """Whether calls are followed in a language."""
    return language in SYNTAX


def extract(tree: "Tree", language: str, symbols: Sequence[Symbol]) -> FileIR:
    """What a parsed file with these symbols says; of a language whose calls are not followed, what it defines."""
    if has_calls(language):
        return read_file(tree, _language(language), symbols)
    return FileIR(definitions=definitions_of(symbols))


@cache
def _language(name: str) -> Language:
    import tree_sitter

    folder = files("docindex_dagster.callgraph.languages")
    patterns = "\n".join((folder / f"{query}.scm").read_text("utf-8") for query in SYNTAX[name].queries)
    return Language(name, SYNTAX[name], tree_sitter.Query(grammar_of(name), patterns))
