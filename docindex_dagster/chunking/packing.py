"""Selection of cut positions so that no chunk exceeds the budget.

Sizes are counted in non-whitespace characters, so that indentation costs nothing. A position is the number of such
characters before it. Whitespace between two pieces therefore belongs to neither, and is assigned only when a position
is converted to a byte offset.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import pairwise

from docindex_dagster.chunking.chunker import Draft

_WHITE = frozenset(b"\t\n\v\f\r \x1c\x1d\x1e\x1f")
_CONTINUATION = range(0x80, 0xC0)  # bytes of a UTF-8 character after its first byte
_BYTE_WEIGHTS = bytes(byte not in _WHITE and byte not in _CONTINUATION for byte in range(256))
_MAX_WORD_LENGTH = 100  # average number of characters per word in human-readable text


class Cut(IntEnum):
    """The kind of text that starts at a position, from the best cut to the worst."""

    SYMBOL = 0
    NODE = 1
    COMMENTED = 2  # code below a comment
    LINE = 3
    INLINE = 4  # a token, or anything else that does not start a line


Rank = tuple[Cut, int]
"""The quality of a position as a cut; for equal cuts, the lower number (the depth in the tree) is better."""


@dataclass(frozen=True, slots=True)
class MeasuredText:
    """A text as UTF-8 with the prefix sums and line starts that make every lookup cheap."""

    data: bytes
    weights: "memoryview[int]"  # number of non-whitespace characters before each byte and before the end
    line_starts: list[int]  # in bytes
    line_places: dict[int, int]  # position -> byte offset of the line that it starts

    @property
    def total(self) -> int:
        """Number of non-whitespace characters in the text."""
        return self.weights[-1]

    def byte_at(self, position: int) -> int:
        """Return the byte offset for a cut at a position: the line start if only whitespace precedes the position."""
        if position <= 0:
            return 0
        if position >= self.total:
            return len(self.data)
        line_start = self.line_places.get(position)
        return bisect_right(self.weights, position) - 1 if line_start is None else line_start

    def line_at(self, byte: int) -> int:
        """Return the 1-based line of a byte; a newline belongs to the line that it ends."""
        return bisect_right(self.line_starts, byte)


def measure(text: str) -> MeasuredText:
    """Compute the sums and line starts of a text."""
    import numpy as np

    data = text.encode("utf-8")
    line_starts = np.append(0, np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n")) + 1)
    sums = np.zeros(len(data) + 1, dtype=np.uint32)
    np.cumsum(np.frombuffer(data.translate(_BYTE_WEIGHTS), dtype=np.uint8), out=sums[1:])
    weights = sums.data  # a view with plain integer items, which are faster to read than array items
    starts, positions = line_starts.tolist(), sums[line_starts].tolist()
    return MeasuredText(data, weights, starts, dict(zip(positions, starts, strict=True)))


def pack(
    text: MeasuredText, ranks: Mapping[int, Rank], boundaries: Iterable[int], budget: int
) -> Iterator[tuple[int, int]]:
    """Split a text into consecutive byte spans of at most `budget` non-whitespace characters each.

    `ranks` contains the possible cuts and their quality. Text between two of them that exceeds the budget is cut at
    line ends, or else inside lines. `boundaries` are positions that are always cut; between two of them, the spans have
    about equal sizes. Whitespace alone yields no span.
    """
    ranks = _with_lines(text, ranks, budget)
    positions = sorted(ranks)
    bounds = sorted({0, text.total, *boundaries})
    starts = [at for start, end in pairwise(bounds) for at in _span_starts(positions, ranks, start, end, budget)]
    return pairwise(text.byte_at(position) for position in [*starts, text.total] if starts)


def _span_starts(positions: list[int], ranks: Mapping[int, Rank], start: int, end: int, budget: int) -> Iterator[int]:
    """Yield the starts of the spans between two boundaries."""
    yield start
    while end - start > budget:
        fair = -(-(end - start) // -(-(end - start) // budget))  # an equal share with the fewest spans
        first = bisect_left(positions, start + max(1, fair // 2))
        last = bisect_right(positions, start + budget)
        candidates = positions[first:last] or [positions[last - 1]]
        aim = start + fair
        start = min(candidates, key=lambda position: (ranks[position], abs(position - aim)))
        yield start


def _with_lines(text: MeasuredText, ranks: Mapping[int, Rank], budget: int) -> dict[int, Rank]:
    """Add line starts, then positions inside lines, where two positions are further apart than the budget."""
    refined = {0: (Cut.SYMBOL, 0), **ranks}
    lines = sorted(text.line_places)
    for start, end in pairwise(sorted({*refined, text.total})):
        if end - start > budget:
            inner = lines[bisect_right(lines, start) : bisect_left(lines, end)]
            refined.update(dict.fromkeys(inner, (Cut.LINE, 0)))
            for line_start, line_end in pairwise([start, *inner, end]):
                inside = range(line_start + budget, line_end, budget)
                refined.update(dict.fromkeys(inside, (Cut.INLINE, 0)))
    return refined


def chunk_lines(text: str, budget: int) -> tuple[Draft, ...]:
    """Split a text at line ends into chunks of at most `budget` non-whitespace characters.

    A longer line is split between characters. The concatenated chunks equal the text; blank text yields no chunks.
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


def drop_long_continuations(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """Drop the continuations of lines that are too long for a chunk and almost without whitespace, such as base64 data.

    The first part of each line is kept, and so is a part that other lines follow or that defines a symbol.
    """
    kept: list[Draft] = []
    positions: list[int] = []  # of each draft, or of the kept draft before it
    is_inside = False  # whether the draft starts inside a line
    for draft in drafts:
        if not (is_inside and _is_unreadable(draft)):
            parent = draft.parent_index
            kept.append(draft if parent is None else replace(draft, parent_index=positions[parent]))
        positions.append(len(kept) - 1)
        is_inside = not draft.text.endswith("\n")
    return tuple(kept)


def _is_unreadable(draft: Draft) -> bool:
    text = draft.text.strip()
    is_of_one_line = "\n" not in text and not draft.symbols
    return is_of_one_line and len(text.split()) * _MAX_WORD_LENGTH < len(text) and text.isascii()
