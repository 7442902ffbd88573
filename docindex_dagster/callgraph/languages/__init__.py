"""The languages whose calls are followed: how each is read, from the names that `code.languages` has for them."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from docindex_dagster.callgraph.extract.places import Language
from docindex_dagster.callgraph.extract.syntax import Syntax
from docindex_dagster.callgraph.languages import c, csharp, ecmascript, go, java, kotlin, php, python, ruby, rust
from docindex_dagster.code.parse import grammar_of

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


@cache
def language_of(name: str) -> Language:
    """How to read a language that has calls.

    Raises:
        ParseError: there is no grammar for the language.
    """
    import tree_sitter

    folder = files("docindex_dagster.callgraph.languages") / "queries"
    patterns = "\n".join((folder / f"{query}.scm").read_text("utf-8") for query in SYNTAX[name].queries)
    return Language(name, SYNTAX[name], tree_sitter.Query(grammar_of(name), patterns))
