"""Choosing where to cut a text so that no chunk exceeds the budget.

Sizes are counted in non-white characters, so that indentation costs nothing. A place in the text is named by how many
of them stand before it: white space between two pieces thereby belongs to neither, and is given out only when a place
is turned into bytes.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import pairwise

from docindex_dagster.chunking.chunker import Draft

_WHITE = frozenset(b"\t\n\v\f\r \x1c\x1d\x1e\x1f")
_CONTINUATION = range(0x80, 0xC0)  # the bytes of a UTF-8 character after its first
_WEIGHT_OF_BYTE = bytes(byte not in _WHITE and byte not in _CONTINUATION for byte in range(256))
_LONGEST_WORD = 100  # characters on average, in what people can read


class Cut(IntEnum):
    """What begins at a place, from the best to cut at to the worst."""

    SYMBOL = 0
    NODE = 1
    COMMENTED = 2  # what a comment stands above
    LINE = 3
    INLINE = 4  # a token, or anything that does not begin its line


Rank = tuple[Cut, int]
"""How good a place is to cut at; of equal cuts, that of the lower number (the depth in the tree) is better."""


@dataclass(frozen=True, slots=True)
class MeasuredText:
    """A text as UTF-8 with the sums and line starts that make every look-up cheap."""

    data: bytes
    weights: "memoryview[int]"  # how many non-white characters stand before each byte and before the end
    line_starts: list[int]  # in bytes
    line_places: dict[int, int]  # place -> start of the line that it is the first of

    @property
    def total(self) -> int:
        """The non-white characters of the whole text."""
        return self.weights[-1]

    def byte_at(self, place: int) -> int:
        """The byte at which to cut at a place: a line start where only white space stands before it."""
        if place <= 0:
            return 0
        if place >= self.total:
            return len(self.data)
        line_start = self.line_places.get(place)
        return bisect_right(self.weights, place) - 1 if line_start is None else line_start

    def line_at(self, byte: int) -> int:
        """The 1-based line of a byte; a line end belongs to the line that it ends."""
        return bisect_right(self.line_starts, byte)


def measure(text: str) -> MeasuredText:
    """Measure a text."""
    import numpy as np

    data = text.encode("utf-8")
    line_starts = np.append(0, np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n")) + 1)
    sums = np.zeros(len(data) + 1, dtype=np.uint32)
    np.cumsum(np.frombuffer(data.translate(_WEIGHT_OF_BYTE), dtype=np.uint8), out=sums[1:])
    weights = sums.data  # a view whose items are plain integers, quicker to read than those of the array
    starts, places = line_starts.tolist(), sums[line_starts].tolist()
    return MeasuredText(data, weights, starts, dict(zip(places, starts, strict=True)))


def pack(
    text: MeasuredText, ranks: Mapping[int, Rank], boundaries: Iterable[int], budget: int
) -> Iterator[tuple[int, int]]:
    """Cut a text into spans of bytes that put end to end are the text, each of at most `budget` non-white characters.

    `ranks` says where to cut and how good that is; what lies between two such places and exceeds the budget is cut at
    line ends, or else inside its line. `boundaries` are the places that every cut set has. Between two of them the
    spans are made about equally large. White space alone gives no span.
    """
    ranks = _with_lines(text, ranks, budget)
    places = sorted(ranks)
    bounds = sorted({0, text.total, *boundaries})
    starts = [at for begin, end in pairwise(bounds) for at in _cuts(places, ranks, begin, end, budget)]
    return pairwise(text.byte_at(place) for place in [*starts, text.total] if starts)


def _cuts(places: list[int], ranks: Mapping[int, Rank], begin: int, end: int, budget: int) -> Iterator[int]:
    """The starts of the spans between two boundaries."""
    yield begin
    while end - begin > budget:
        fair = -(-(end - begin) // -(-(end - begin) // budget))  # an equal share for the fewest spans
        first = bisect_left(places, begin + max(1, fair // 2))
        last = bisect_right(places, begin + budget)
        candidates = places[first:last] or [places[last - 1]]
        aim = begin + fair
        begin = min(candidates, key=lambda place: (ranks[place], abs(place - aim)))
        yield begin


def _with_lines(text: MeasuredText, ranks: Mapping[int, Rank], budget: int) -> dict[int, Rank]:
    """Add line starts, then places inside lines, wherever two places are further apart than the budget."""
    refined = {0: (Cut.SYMBOL, 0), **ranks}
    lines = sorted(text.line_places)
    for begin, end in pairwise(sorted({*refined, text.total})):
        if end - begin > budget:
            inner = lines[bisect_right(lines, begin) : bisect_left(lines, end)]
            refined.update(dict.fromkeys(inner, (Cut.LINE, 0)))
            for line_begin, line_end in pairwise([begin, *inner, end]):
                inside = range(line_begin + budget, line_end, budget)
                refined.update(dict.fromkeys(inside, (Cut.INLINE, 0)))
    return refined


def chunk_lines(text: str, budget: int) -> tuple[Draft, ...]:
    """Cut a text at line ends into chunks of at most `budget` non-white characters.

    A longer line is cut inside, between characters. The chunks put end to end are the text; a text of white space
    alone has none.
    """
    measured = measure(text)
    ranks = dict.fromkeys(measured.line_places, (Cut.LINE, 0))
    return tuple(
        Draft(
            text=measured.data[start:end].decode("utf-8"),
            chunk_type="text",
            start_line=measured.line_at(start),
            end_line=measured.line_at(end - 1),
            start_byte=start,
            end_byte=end,
        )
        for start, end in pack(measured, ranks, boundaries=(), budget=budget)
    )


def without_long_ends(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """Leave out how lines go on that are too long for a chunk and hold next to no white space, such as data in base64.

    The first part of each line stays, and so does a part that other lines follow or that defines a symbol.
    """
    kept: list[Draft] = []
    places: list[int] = []  # of each draft, or of the one before it that stays
    is_inside = False  # the draft begins inside of a line
    for draft in drafts:
        if not (is_inside and _is_unreadable(draft)):
            parent = draft.parent_index
            kept.append(draft if parent is None else replace(draft, parent_index=places[parent]))
        places.append(len(kept) - 1)
        is_inside = not draft.text.endswith("\n")
    return tuple(kept)


def _is_unreadable(draft: Draft) -> bool:
    text = draft.text.strip()
    is_of_one_line = "\n" not in text and not draft.symbols
    return is_of_one_line and len(text.split()) * _LONGEST_WORD < len(text) and text.isascii()
