"""The lines of a chunk that show why it was found, and where in them the words are."""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence

from docindex_dagster.search.model import Snippet
from docindex_dagster.search.text_scan import Pattern
from docindex_dagster.stores.analysis import located, stems_of

_LINES = 4
_LONGEST_LINE = 240  # characters; of a longer one, what is around its first match
_BEFORE = 60  # characters shown before that match
_ELLIPSIS = "…"
_BRACES = re.compile(r"\{[^{}]*\}")

# Where a match begins and ends in its line, and what of the query it is a match of.
Match = tuple[int, int, frozenset[str]]
Finder = Callable[[list[str]], list[list[Match]]]


def of_words(stems: frozenset[str]) -> Finder:
    """Finds words that have one of these stems."""
    # Few lines hold the beginning of one: the words of the others need not be cut to stems.
    beginnings = sorted({stem[: max(2, len(stem) - 1)] for stem in stems})  # `happi` is the stem of `happy`

    def find(lines: list[str]) -> list[list[Match]]:
        text = "\n".join(lines).lower()
        held = [beginning for beginning in beginnings if beginning in text]
        in_lower_case = text.split("\n")
        likely = {at for beginning in held for at, line in enumerate(in_lower_case) if beginning in line}
        return [_in_line(line, stems) if at in likely or not line.isascii() else [] for at, line in enumerate(lines)]

    return find


def _in_line(line: str, stems: frozenset[str]) -> list[Match]:
    """The matches in a line; what overlaps, as pairs of characters do, is one."""
    found: list[Match] = []
    for start, end, terms in sorted(located(line)):
        if of := stems & stems_of(terms):
            first, last, others = found.pop() if found and start < found[-1][1] else (start, end, of)
            found.append((min(first, start), max(last, end), others | of))
    return found


def of_pattern(pattern: Pattern) -> Finder:
    """Finds the first place of each line that a pattern fits."""

    def find(lines: list[str]) -> list[list[Match]]:
        whole = frozenset({pattern.text})
        spans = pattern.spans(lines)
        return [[(*span, whole)] if span and span[0] < span[1] else [] for span in spans]

    return find


def snippet(text: str, find: Finder, hidden: str | None = None) -> Snippet:
    """The lines in a row that hold the most of the query; of equals those that begin with it, then the first.

    `hidden` is the same text with spaces for what is neither looked at nor shown: what stands in braces.
    """
    lines = (text if hidden is None else hidden).split("\n")
    matches = find(lines)
    first = _best_start(lines, matches)
    shown: list[str] = []
    highlights: list[tuple[int, int]] = []
    length = 0
    originals = text.split("\n")[first : first + _LINES]
    window = slice(first, first + _LINES)
    for line, original, of_line in zip(lines[window], originals, matches[window], strict=True):
        cut, spans = _shortened(*_closed_up(line, original, of_line))
        highlights += [(start + length, end + length) for start, end in spans]
        shown.append(cut)
        length += len(cut) + 1
    best = _best_line(matches, first)
    column = matches[best][0][0] + 1 if matches[best] else 1
    return Snippet("\n".join(shown), first, tuple(highlights), best, column)


def _closed_up(line: str, original: str, matches: Sequence[Match]) -> tuple[str, Sequence[Match]]:
    """A line without what is hidden in it, and its matches."""
    if line == original:
        return line, matches
    lists = [range(*found.span()) for found in _BRACES.finditer(original) if line[found.start()] != "{"]
    kept = [at for at in range(len(line)) if not any(at in places for places in lists)]
    shown = "".join(original[at] for at in kept).rstrip()
    return shown, [(bisect_left(kept, start), bisect_left(kept, end), of) for start, end, of in matches]


def _best_start(lines: Sequence[str], matches: Sequence[Sequence[Match]]) -> int:
    held = {at: frozenset[str]().union(*(of for _, _, of in of_line)) for at, of_line in enumerate(matches) if of_line}
    if not held:
        return next((at for at, line in enumerate(lines) if line.strip()), 0)

    def worth(start: int) -> tuple[int, int, int]:
        window = held[start].union(*(held[at] for at in range(start + 1, start + _LINES) if at in held))
        return len(window), len(held[start]), -start

    return max(held, key=worth)


def _best_line(matches: Sequence[Sequence[Match]], first: int) -> int:
    """Of the lines that are shown, the one that holds most of the query; of equals the first."""

    def held(at: int) -> int:
        return len(frozenset[str]().union(*(of for _, _, of in matches[at])))

    return max(range(first, min(first + _LINES, len(matches))), key=held)


def _shortened(line: str, matches: Sequence[Match]) -> tuple[str, list[tuple[int, int]]]:
    """A line of bearable length, and where its matches are in it."""
    if len(line) <= _LONGEST_LINE:
        return line, [(start, end) for start, end, _ in matches]
    start = max(0, min(matches[0][0] - _BEFORE if matches else 0, len(line) - _LONGEST_LINE))
    end = start + _LONGEST_LINE
    before, after = (_ELLIPSIS if start else ""), (_ELLIPSIS if end < len(line) else "")
    moved = [(max(a, start) - start + len(before), min(b, end) - start + len(before)) for a, b, _ in matches]
    return f"{before}{line[start:end]}{after}", [(a, b) for a, b in moved if a < b]
