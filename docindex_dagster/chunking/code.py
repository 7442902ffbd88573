"""Cutting source code into chunks along its syntax tree and its symbols.

What fits into the budget stays whole; what does not is split into its children; small neighbours are put together.
A symbol that does not fit is walled off from what stands before and after it, and a class also between its head and its
first method.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING

from docindex_dagster.chunking.draft import FileDrafts
from docindex_dagster.chunking.packing import Cut, MeasuredText, Rank, measure, pack
from docindex_dagster.chunking.placing import place_outline
from docindex_dagster.code.embedded import read_code
from docindex_dagster.code.extract import TYPE_KINDS, Outline
from docindex_dagster.code.parse import parse
from docindex_dagster.code.symbols import Symbol

if TYPE_CHECKING:
    from tree_sitter import Node

DEFAULT_BUDGET = 1500

_MEMBER_KINDS = TYPE_KINDS | {"function", "method"}
_MINIMUM_FRACTION = 10  # what is smaller than a tenth of the budget shares a chunk where it can


def chunk_code(text: str, language: str, budget: int = DEFAULT_BUDGET) -> FileDrafts:
    """Cut a source file into chunks of at most `budget` non-white characters.

    The chunks put end to end are the text; a text of white space alone has none. A language without a query gets
    chunks without symbols.

    Raises:
        ParseError: there is no grammar for the language; `chunk_lines` cuts any text.
    """
    measured = measure(text)
    tree = parse(measured.data, language)
    code = read_code(measured.data, language, tree)
    outline = code.outline_of_file if code else Outline()
    inside = code.tree.root_node.children if code and code.tree is not tree else ()
    spans = _spans(tree.root_node, inside, measured, outline.symbols, budget)
    drafts = tuple(place_outline(measured, spans, outline))
    return FileDrafts(drafts, outline.imports, outline.exports, parsed=code)


def _spans(
    root: "Node", inside: "Sequence[Node]", text: MeasuredText, symbols: tuple[Symbol, ...], budget: int
) -> list[tuple[int, int]]:
    """The spans of bytes of the chunks of a file; `inside` are the statements of the code in it."""
    if text.total <= budget:
        return list(pack(text, {}, (), budget))
    ranks = _ranks(root, inside, text, symbols, budget)
    return list(pack(text, ranks, _boundaries(text, symbols, ranks, budget), budget))


def _ranks(
    root: "Node", inside: "Sequence[Node]", text: MeasuredText, symbols: tuple[Symbol, ...], budget: int
) -> dict[int, Rank]:
    """Where the pieces of a file begin: the largest nodes and definitions that fit, and the tokens between them."""
    weights = text.weights
    whole: dict[int, int] = {}  # start of a definition that fits, with all that belongs to it -> its end
    for symbol in symbols:
        if _size(text, symbol) <= budget:
            whole.setdefault(symbol.start_byte, symbol.end_byte)
    symbol_places = {weights[symbol.start_byte] for symbol in symbols}
    ranks: dict[int, Rank] = {}
    covered = 0
    comment_end = -1  # the place behind a comment that begins its line
    stack = [(root, text.total, 0)]
    while stack:
        node, opened_size, depth = stack.pop()
        start, end = node.start_byte, node.end_byte
        if end <= covered:
            continue
        place = weights[start]
        size = weights[end] - place
        if start >= covered:
            begins_line = place in text.line_places
            if place not in ranks:
                cut = _cut(
                    node,
                    begins_line=begins_line,
                    begins_symbol=place in symbol_places,
                    follows_comment=place == comment_end,
                )
                ranks[place] = (cut, depth)
            definition_end = whole.get(start, 0)
            # A body that is nearly all of what did not fit is opened too, lest its head stands alone.
            if definition_end < end and size <= budget and opened_size - size >= budget // _MINIMUM_FRACTION:
                covered = end
                comment_end = weights[end] if node.is_extra and begins_line else -1
                continue
            if definition_end:
                covered = definition_end
        if end > covered:
            opened_size = size if size > budget else opened_size
            children, inside = _children(node, inside)
            stack.extend((child, opened_size, depth + 1) for child in reversed(children))
    return ranks


def _children(node: "Node", inside: "Sequence[Node]") -> "tuple[Sequence[Node], Sequence[Node]]":
    """What a node consists of, and which statements of the code in a page are left: a script consists of some."""
    children = node.children
    if children or not inside:
        return children, inside
    begin, end = (bisect_left(inside, at, key=attrgetter("start_byte")) for at in (node.start_byte, node.end_byte))
    return inside[begin:end], inside[end:]


def _cut(node: "Node", *, begins_line: bool, begins_symbol: bool, follows_comment: bool) -> Cut:
    if not (begins_line and node.is_named):
        return Cut.INLINE
    if follows_comment:
        return Cut.COMMENTED
    return Cut.SYMBOL if begins_symbol else Cut.NODE


def _size(text: MeasuredText, symbol: Symbol) -> int:
    return text.weights[symbol.end_byte] - text.weights[symbol.start_byte]


def _boundaries(text: MeasuredText, symbols: tuple[Symbol, ...], ranks: Mapping[int, Rank], budget: int) -> set[int]:
    """The places that chunks never span: around each symbol that does not fit, and behind the head of a class."""
    weights = text.weights
    large = [symbol for symbol in symbols if _size(text, symbol) > budget]
    fitting = {weights[symbol.start_byte] for symbol in symbols} - {weights[symbol.start_byte] for symbol in large}
    boundaries = {weights[at] for symbol in large for at in (symbol.start_byte, symbol.end_byte)}
    boundaries.update(weights[member.start_byte] for member in _first_members(symbols, large))
    for begin, end in pairwise(sorted(boundaries | {0, text.total})):
        if end - begin >= budget // _MINIMUM_FRACTION:
            continue
        if ranks.get(begin, (Cut.INLINE,))[0] is Cut.INLINE:  # closing brackets go with what they close
            boundaries.discard(begin)
        elif begin not in fitting:  # a head of a line or two, or a few statements, with what follows them
            boundaries.discard(end)
    return boundaries


def _first_members(symbols: tuple[Symbol, ...], large: list[Symbol]) -> Iterator[Symbol]:
    """The first method or nested type of each large type."""
    owners = {id(symbol) for symbol in large if symbol.kind in TYPE_KINDS}
    open_symbols: list[Symbol] = []
    for symbol in symbols:
        while open_symbols and open_symbols[-1].end_byte <= symbol.start_byte:
            open_symbols.pop()
        if open_symbols and symbol.kind in _MEMBER_KINDS and id(open_symbols[-1]) in owners:
            owners.discard(id(open_symbols[-1]))
            yield symbol
        open_symbols.append(symbol)
