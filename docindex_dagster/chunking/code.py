"""Chunking of source code along its syntax tree and its symbols.

Nodes that fit the budget stay intact, larger nodes are split into their children, and small neighbors are combined. A
symbol that does not fit never shares a chunk with the code before or after it; a class is also split between its head
and its first method. Each span then gets its symbols and calls.

Documents contain code, too: scripts of an HTML page become chunks if they define anything, and the cells of a notebook
list their definitions.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from docindex_dagster.chunking.chunker import Draft, FileDrafts
from docindex_dagster.chunking.packing import Cut, MeasuredText, Rank, measure, pack
from docindex_dagster.chunking.references import parse_code
from docindex_dagster.code.embedded_code import read_code, script_spans
from docindex_dagster.code.extraction import TYPE_KINDS, Call, Outline
from docindex_dagster.code.parsers import parse
from docindex_dagster.code.symbols import Symbol

if TYPE_CHECKING:
    from tree_sitter import Node

DEFAULT_BUDGET = 1500

_MEMBER_KINDS = TYPE_KINDS | {"function", "method"}
_MINIMUM_FRACTION = 10  # code smaller than a tenth of the budget shares a chunk if possible
_Item = TypeVar("_Item", Symbol, Call)

_CHUNK_TYPES = {
    "class": "class",
    "enum": "enum",
    "function": "function",
    "impl": "class",
    "interface": "interface",
    "macro": "function",
    "method": "method",
    "property": "method",
    "struct": "struct",
    "trait": "interface",
    "union": "struct",
}
"""Chunk types by kind of symbol; other kinds, and code outside symbols, are `module`."""


def chunk_code(text: str, language: str, budget: int = DEFAULT_BUDGET) -> FileDrafts:
    """Split a source file into chunks of at most `budget` non-whitespace characters.

    The concatenated chunks equal the text; blank text yields no chunks. A language without a query yields chunks
    without symbols.

    Raises:
        ParseError: The language has no grammar; `chunk_lines` accepts any text.
    """
    measured = measure(text)
    tree = parse(measured.data, language)
    code = read_code(measured.data, language, tree)
    outline = code.outline_of_file if code else Outline()
    inside = code.tree.root_node.children if code and code.tree is not tree else ()
    spans = _spans(tree.root_node, inside, measured, outline.symbols, budget)
    drafts = tuple(_to_drafts(measured, spans, outline))
    return FileDrafts(drafts, outline.imports, outline.exports, parsed=code)


def _spans(
    root: "Node", inside: "Sequence[Node]", text: MeasuredText, symbols: tuple[Symbol, ...], budget: int
) -> list[tuple[int, int]]:
    """Return the byte spans of the chunks of a file; `inside` are the statements of embedded code."""
    if text.total <= budget:
        return list(pack(text, {}, (), budget))
    ranks = _ranks(root, inside, text, symbols, budget)
    return list(pack(text, ranks, _boundaries(text, symbols, ranks, budget), budget))


def _ranks(
    root: "Node", inside: "Sequence[Node]", text: MeasuredText, symbols: tuple[Symbol, ...], budget: int
) -> dict[int, Rank]:
    """Return the start positions of pieces: the largest nodes and definitions that fit, and tokens between them."""
    weights = text.weights
    intact: dict[int, int] = {}  # start of a definition that fits, including its attachments -> its end
    for symbol in symbols:
        if _size(text, symbol) <= budget:
            intact.setdefault(symbol.start_byte, symbol.end_byte)
    symbol_positions = {weights[symbol.start_byte] for symbol in symbols}
    ranks: dict[int, Rank] = {}
    covered = 0
    comment_end = -1  # the position after a comment that starts its line
    stack = [(root, text.total, 0)]
    while stack:
        node, opened_size, depth = stack.pop()
        start, end = node.start_byte, node.end_byte
        if end <= covered:
            continue
        position = weights[start]
        size = weights[end] - position
        if start >= covered:
            begins_line = position in text.line_places
            if position not in ranks:
                cut = _cut_kind(
                    node,
                    begins_line=begins_line,
                    begins_symbol=position in symbol_positions,
                    follows_comment=position == comment_end,
                )
                ranks[position] = (cut, depth)
            definition_end = intact.get(start, 0)
            # Also open a body that makes up nearly all of a node that does not fit; otherwise its head would be
            # isolated.
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
    """Return the children of a node and the remaining embedded statements; a script's children are such statements."""
    children = node.children
    if children or not inside:
        return children, inside
    begin, end = (bisect_left(inside, at, key=attrgetter("start_byte")) for at in (node.start_byte, node.end_byte))
    return inside[begin:end], inside[end:]


def _cut_kind(node: "Node", *, begins_line: bool, begins_symbol: bool, follows_comment: bool) -> Cut:
    if not (begins_line and node.is_named):
        return Cut.INLINE
    if follows_comment:
        return Cut.COMMENTED
    return Cut.SYMBOL if begins_symbol else Cut.NODE


def _size(text: MeasuredText, symbol: Symbol) -> int:
    return text.weights[symbol.end_byte] - text.weights[symbol.start_byte]


def _boundaries(text: MeasuredText, symbols: tuple[Symbol, ...], ranks: Mapping[int, Rank], budget: int) -> set[int]:
    """Return positions that chunks never span: around symbols that do not fit, and after the head of a class."""
    weights = text.weights
    large = [symbol for symbol in symbols if _size(text, symbol) > budget]
    fitting = {weights[symbol.start_byte] for symbol in symbols} - {weights[symbol.start_byte] for symbol in large}
    boundaries = {weights[at] for symbol in large for at in (symbol.start_byte, symbol.end_byte)}
    boundaries.update(weights[member.start_byte] for member in _first_members(symbols, large))
    for begin, end in pairwise(sorted(boundaries | {0, text.total})):
        if end - begin >= budget // _MINIMUM_FRACTION:
            continue
        if ranks.get(begin, (Cut.INLINE,))[0] is Cut.INLINE:  # closing brackets stay with what they close
            boundaries.discard(begin)
        elif begin not in fitting:  # a head of a line or two, or a few statements, stay with the code after them
            boundaries.discard(end)
    return boundaries


def _first_members(symbols: tuple[Symbol, ...], large: list[Symbol]) -> Iterator[Symbol]:
    """Yield the first method or nested type of each large type."""
    owners = {id(symbol) for symbol in large if symbol.kind in TYPE_KINDS}
    open_symbols: list[Symbol] = []
    for symbol in symbols:
        while open_symbols and open_symbols[-1].end_byte <= symbol.start_byte:
            open_symbols.pop()
        if open_symbols and symbol.kind in _MEMBER_KINDS and id(open_symbols[-1]) in owners:
            owners.discard(id(open_symbols[-1]))
            yield symbol
        open_symbols.append(symbol)


@dataclass(frozen=True, slots=True)
class _Open:
    """A symbol that continues after the chunk in which it starts."""

    symbol: Symbol
    draft: int


def _to_drafts(text: MeasuredText, spans: Sequence[tuple[int, int]], outline: Outline) -> Iterator[Draft]:
    """Create a draft for each span. Symbols are in file order, outer before inner."""
    open_symbols: list[_Open] = []
    parts: Counter[tuple[int, int]] = Counter()
    for index, (start, end) in enumerate(spans):
        while open_symbols and text.weights[open_symbols[-1].symbol.end_byte] <= text.weights[start]:
            open_symbols.pop()
        enclosing = open_symbols[-1] if open_symbols else None
        starting = _starting(outline.symbols, start, end)
        dominant = _dominant_symbol(text, starting, enclosing.symbol if enclosing else None, start, end)
        part = None
        if dominant and not _contains(text, start, end, dominant):
            identity = (dominant.start_byte, dominant.end_byte)
            parts[identity] += 1
            part = parts[identity]
        yield Draft(
            text=text.data[start:end].decode("utf-8"),
            chunk_type=_CHUNK_TYPES.get(dominant.kind, "module") if dominant else "module",
            start_line=text.line_at(start),
            end_line=text.line_at(end - 1),
            start_byte=start,
            end_byte=end,
            symbol=dominant,
            symbols=tuple(starting),
            has_code=True,
            calls=tuple(dict.fromkeys(call.name for call in _starting(outline.calls, start, end))),
            part_number=part,
            parent_index=enclosing.draft if enclosing else None,
        )
        open_symbols += [_Open(symbol, index) for symbol in starting if symbol.end_byte > end]


def _starting(items: Sequence[_Item], start: int, end: int) -> Sequence[_Item]:
    """Return the symbols or calls that start in a span, given all of them in file order."""
    key = attrgetter("start_byte")
    return items[bisect_left(items, start, key=key) : bisect_left(items, end, key=key)]


def _dominant_symbol(
    text: MeasuredText, starting: Sequence[Symbol], enclosing: Symbol | None, start: int, end: int
) -> Symbol | None:
    """Return the dominant symbol of a chunk.

    This is the largest symbol that starts in the chunk, with two exceptions: a module that contains little more than
    another symbol, and a small symbol in the middle of a larger one. "Small" means less than a quarter of the chunk.
    """

    def share(symbol: Symbol) -> float:
        inside = text.weights[min(symbol.end_byte, end)] - text.weights[symbol.start_byte]
        return inside / (text.weights[end] - text.weights[start])

    largest = max(_outermost(starting), key=share, default=None)
    while largest and largest.kind == "module":
        inner = max(_outermost(_inside(starting, largest)), key=share, default=None)
        if inner is None or share(inner) < 1 / 2:
            break
        largest = inner
    return enclosing if largest is None or (enclosing and share(largest) < 1 / 4) else largest


def _outermost(symbols: Sequence[Symbol]) -> list[Symbol]:
    found: list[Symbol] = []
    for symbol in symbols:
        if not found or symbol.start_byte >= found[-1].end_byte:
            found.append(symbol)
    return found


def _inside(symbols: Sequence[Symbol], outer: Symbol) -> Sequence[Symbol]:
    return [
        symbol
        for symbol in symbols
        if symbol is not outer and outer.start_byte <= symbol.start_byte and symbol.end_byte <= outer.end_byte
    ]


def _contains(text: MeasuredText, start: int, end: int, symbol: Symbol) -> bool:
    return start <= symbol.start_byte and text.weights[symbol.end_byte] <= text.weights[end]


def with_scripts(page: FileDrafts, text: str, budget: int) -> FileDrafts:
    """Return the chunks of an HTML page, followed by those of each script that defines something.

    Args:
        page: The chunks of the page as a document.
        text: The page.
        budget: The maximum chunk size of code, as for `chunk_code`.

    Raises:
        ParseError: The language of the scripts has no grammar.
    """
    drafts = list(page.drafts)
    data = text.encode()
    language, spans = script_spans(data)
    for opening, end in spans:
        start = end - len(data[opening:end].lstrip(b"\r\n"))
        found = chunk_code(data[start:end].rstrip().decode(), language, budget).drafts
        if any(draft.symbols for draft in found):
            drafts += _shift(found, data.count(b"\n", 0, start), start, len(drafts))
    return replace(page, drafts=tuple(drafts))


def _shift(drafts: Sequence[Draft], lines: int, offset: int, index: int) -> Iterator[Draft]:
    """Yield drafts of part of a file, shifted by the lines, bytes and drafts that precede the part."""

    def shift_symbol(symbol: Symbol) -> Symbol:
        return replace(
            symbol,
            start_line=symbol.start_line + lines,
            end_line=symbol.end_line + lines,
            start_byte=symbol.start_byte + offset,
            end_byte=symbol.end_byte + offset,
        )

    for draft in drafts:
        yield replace(
            draft,
            start_line=draft.start_line + lines,
            end_line=draft.end_line + lines,
            start_byte=None if draft.start_byte is None else draft.start_byte + offset,
            end_byte=None if draft.end_byte is None else draft.end_byte + offset,
            symbol=shift_symbol(draft.symbol) if draft.symbol else None,
            symbols=tuple(map(shift_symbol, draft.symbols)),
            parent_index=None if draft.parent_index is None else draft.parent_index + index,
        )


def with_cells(notebook: FileDrafts, text: str) -> FileDrafts:
    """Return the chunks of a notebook, each with the definitions in its code."""
    code = parse_code(text, "jupyter")
    if code is None or code.lines is None:
        return notebook
    starts = [draft.start_line for draft in notebook.drafts]
    defined: dict[int, list[Symbol]] = {}
    for symbol in code.symbols:
        first, last = code.lines[symbol.start_line - 1], code.lines[symbol.end_line - 1]
        defined.setdefault(max(0, bisect_right(starts, first) - 1), []).append(
            replace(symbol, start_line=first, end_line=last)
        )
    return replace(
        notebook,
        drafts=tuple(_with_symbols(draft, defined.get(index, ())) for index, draft in enumerate(notebook.drafts)),
    )


def _with_symbols(draft: Draft, symbols: Sequence[Symbol]) -> Draft:
    largest = max(symbols, key=lambda symbol: symbol.end_byte - symbol.start_byte, default=None)
    return replace(draft, symbol=largest, symbols=tuple(symbols)) if largest else draft
