"""Parsers and queries of tree-sitter, each made once a process."""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, cast

from docindex_dagster.code.languages import LANGUAGES
from docindex_dagster.code.source_rewrites import FIRST_READINGS, READINGS
from docindex_dagster.core.errors import DocindexError

if TYPE_CHECKING:
    import tree_sitter


_BEARABLE = 500  # what breaks less than one of so many bytes is not worth another parse


class ParseError(DocindexError):
    """A text cannot be parsed; it can still be cut as text."""


def parse(source: bytes, language: str) -> "tree_sitter.Tree":
    """Parse UTF-8 source. Broken code gives a tree with error nodes.

    Of code that the grammar cannot parse as it stands, the tree is that of another reading where this breaks less.

    Raises:
        ParseError: there is no grammar for the language.
    """
    parser = _parser(language)
    source = FIRST_READINGS.get(language, bytes)(source)
    tree = parser.parse(source)
    broken = broken_spans(tree)
    for read in READINGS.get(language, ()):
        if _weight(broken) * _BEARABLE <= len(source):
            break
        reading = read(source, broken)
        other = parser.parse(reading) if reading != source else tree
        left = broken_spans(other)
        if _weight(left) < _weight(broken):
            tree, source, broken = other, reading, left
    return tree


def broken_spans(tree: "tree_sitter.Tree") -> list[tuple[int, int]]:
    """The bytes of the outermost error nodes, in file order; what is missing has none, and a span all the same."""
    found = []
    stack = [tree.root_node]
    while stack:
        node = stack.pop()
        if node.is_error or node.is_missing:
            found.append((node.start_byte, node.end_byte))
        elif node.has_error:
            stack.extend(reversed(node.children))
    return found


def _weight(broken: list[tuple[int, int]]) -> int:
    return sum(end - start + 1 for start, end in broken)


@cache
def query_for(language: str) -> "tree_sitter.Query":
    """The query that finds the symbols and imports of a language; empty for a language without any.

    Raises:
        ParseError: there is no grammar for the language.
    """
    import tree_sitter

    folder = files("docindex_dagster.code") / "queries"
    patterns = "\n".join((folder / f"{name}.scm").read_text("utf-8") for name in LANGUAGES[language].queries)
    return tree_sitter.Query(grammar_of(language), patterns)


@cache
def _parser(language: str) -> "tree_sitter.Parser":
    import tree_sitter

    return tree_sitter.Parser(grammar_of(language))


@cache
def grammar_of(language: str) -> "tree_sitter.Language":
    """The grammar of a language.

    Raises:
        ParseError: there is none.
    """
    import tree_sitter
    import tree_sitter_language_pack

    if language not in LANGUAGES:
        raise ParseError(f"{language}: no grammar is known for this language")
    grammar = cast("tree_sitter_language_pack.SupportedLanguage", LANGUAGES[language].grammar)
    return tree_sitter.Language(tree_sitter_language_pack.get_binding(grammar))
