"""The languages whose calls are followed: how each is read, from the names that `code.languages` has for them."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from docindex_dagster.callgraph.extract.file import definitions_of, read_file
from docindex_dagster.callgraph.extract.places import Language
from docindex_dagster.callgraph.extract.syntax import Syntax
from docindex_dagster.callgraph.ir import FileIR
from docindex_dagster.callgraph.languages import c, csharp, ecmascript, go, java, kotlin, php, python, ruby, rust
from docindex_dagster.code.parse import grammar_of
from docindex_dagster.code.symbols import Symbol

if TYPE_CHECKING:
    from tree_sitter import Tree

SYNTAX: Mapping[str, Syntax] = {
    "c": c.C,
    "cpp": c.CPP,
    "csharp": csharp.SYNTAX,
    "go": go.SYNTAX,
    "java": java.SYNTAX,
    "javascript": ecmascript.JAVASCRIPT,
    "kotlin": kotlin.SYNTAX,
    "php": php.SYNTAX,
    "python": python.SYNTAX,
    "ruby": ruby.SYNTAX,
    "rust": rust.SYNTAX,
    "tsx": ecmascript.TYPESCRIPT,
    "typescript": ecmascript.TYPESCRIPT,
}


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
