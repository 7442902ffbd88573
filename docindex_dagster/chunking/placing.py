"""Giving the spans of a code file the symbols and calls that they hold."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeVar

from docindex_dagster.chunking.draft import Draft
from docindex_dagster.chunking.packing import MeasuredText
from docindex_dagster.code.extract import Call, Outline
from docindex_dagster.code.symbols import Symbol

_Place = TypeVar("_Place", Symbol, Call)

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
"""Of kinds of symbol; the others, and code outside any symbol, are `module`."""


@dataclass(frozen=True, slots=True)
class _Open:
    """A symbol that goes on behind the chunk in which it begins."""

    symbol: Symbol
    draft: int


def place_outline(text: MeasuredText, spans: Sequence[tuple[int, int]], outline: Outline) -> Iterator[Draft]:
    """Make a draft of each span. Symbols are in file order, outer before inner."""
    open_symbols: list[_Open] = []
    parts: Counter[tuple[int, int]] = Counter()
    for index, (start, end) in enumerate(spans):
        while open_symbols and text.weights[open_symbols[-1].symbol.end_byte] <= text.weights[start]:
            open_symbols.pop()
        enclosing = open_symbols[-1] if open_symbols else None
        starting = _starting(outline.symbols, start, end)
        dominant = _dominant(text, starting, enclosing.symbol if enclosing else None, start, end)
        part = None
        if dominant and not _holds(text, start, end, dominant):
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


def _starting(places: Sequence[_Place], start: int, end: int) -> Sequence[_Place]:
    """Of symbols or calls in file order, those that begin in a span."""
    key = attrgetter("start_byte")
    return places[bisect_left(places, start, key=key) : bisect_left(places, end, key=key)]


def _dominant(
    text: MeasuredText, starting: Sequence[Symbol], enclosing: Symbol | None, start: int, end: int
) -> Symbol | None:
    """The symbol that a chunk is about.

    The largest that begins in it; but not a module that holds little else than another symbol, and not one that is
    less than a quarter of a chunk from the middle of a larger symbol.
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


def _holds(text: MeasuredText, start: int, end: int, symbol: Symbol) -> bool:
    return start <= symbol.start_byte and text.weights[symbol.end_byte] <= text.weights[end]
