"""Tree-sitter parsers and queries, each created once per process."""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, cast

from docindex_dagster.code.languages import LANGUAGES
from docindex_dagster.code.source_rewrites import INITIAL_REWRITES, REWRITES
from docindex_dagster.core.errors import DocindexError

if TYPE_CHECKING:
    import tree_sitter


_TOLERANCE = 500  # if at most one byte in this many is broken, another parse is not worthwhile


class ParseError(DocindexError):
    """A file cannot be parsed; it can still be chunked as text."""


def parse(source: bytes, language: str) -> "tree_sitter.Tree":
    """Parse UTF-8 source. Broken code yields a tree with error nodes.

    If the grammar cannot parse the source as written, the tree of a rewritten source is returned when it has fewer
    broken bytes.

    Raises:
        ParseError: there is no grammar for the language.
    """
    parser = _parser(language)
    source = INITIAL_REWRITES.get(language, bytes)(source)
    tree = parser.parse(source)
    broken = broken_spans(tree)
    for rewrite in REWRITES.get(language, ()):
        if _broken_size(broken) * _TOLERANCE <= len(source):
            break
        rewritten = rewrite(source, broken)
        other = parser.parse(rewritten) if rewritten != source else tree
        still_broken = broken_spans(other)
        if _broken_size(still_broken) < _broken_size(broken):
            tree, source, broken = other, rewritten, still_broken
    return tree


def broken_spans(tree: "tree_sitter.Tree") -> list[tuple[int, int]]:
    """Return the byte spans of the outermost error nodes, in file order; a missing node has an empty span."""
    found = []
    stack = [tree.root_node]
    while stack:
        node = stack.pop()
        if node.is_error or node.is_missing:
            found.append((node.start_byte, node.end_byte))
        elif node.has_error:
            stack.extend(reversed(node.children))
    return found


def _broken_size(broken: list[tuple[int, int]]) -> int:
    return sum(end - start + 1 for start, end in broken)


@cache
def query_for(language: str) -> "tree_sitter.Query":
    """Return the query for symbols and imports of a language; empty for a language without query files.

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
    """Return the grammar of a language.

    Raises:
        ParseError: there is no grammar for the language.
    """
    import tree_sitter
    import tree_sitter_language_pack

    if language not in LANGUAGES:
        raise ParseError(f"{language}: no grammar found for this language")
    grammar = cast("tree_sitter_language_pack.SupportedLanguage", LANGUAGES[language].grammar)
    return tree_sitter.Language(tree_sitter_language_pack.get_binding(grammar))
