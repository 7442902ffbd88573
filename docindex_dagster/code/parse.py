"""Parsers and queries of tree-sitter, each made once a process."""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, cast

from docindex_dagster.code.languages import LANGUAGES
from docindex_dagster.errors import DocindexError

if TYPE_CHECKING:
    import tree_sitter


class ParseError(DocindexError):
    """A text cannot be parsed; it can still be cut as text."""


def parse(source: bytes, language: str) -> "tree_sitter.Tree":
    """Parse UTF-8 source. Broken code gives a tree with error nodes.

    Raises:
        ParseError: there is no grammar for the language.
    """
    return _parser(language).parse(source)


@cache
def query_for(language: str) -> "tree_sitter.Query":
    """The query that finds the symbols and imports of a language; empty for a language without any."""
    import tree_sitter

    folder = files("docindex_dagster.code") / "queries"
    patterns = "\n".join((folder / f"{name}.scm").read_text("utf-8") for name in LANGUAGES[language].queries)
    return tree_sitter.Query(_grammar(language), patterns)


@cache
def _parser(language: str) -> "tree_sitter.Parser":
    import tree_sitter

    return tree_sitter.Parser(_grammar(language))


@cache
def _grammar(language: str) -> "tree_sitter.Language":
    import tree_sitter
    import tree_sitter_language_pack

    if language not in LANGUAGES:
        raise ParseError(f"{language}: no grammar is known for this language")
    grammar = cast("tree_sitter_language_pack.SupportedLanguage", LANGUAGES[language].grammar)
    return tree_sitter.Language(tree_sitter_language_pack.get_binding(grammar))
