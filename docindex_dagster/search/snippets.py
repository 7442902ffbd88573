"""Snippets: the lines of a chunk that show why it was found, with the positions of the matches."""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence

from docindex_dagster.search.model import Snippet
from docindex_dagster.search.text_scan import Pattern
from docindex_dagster.stores.analysis import located, stems_of

_LINES = 4
_MAX_LINE = 240  # characters; longer lines are cut to the text around their first match
_BEFORE = 60  # characters shown before the match
_ELLIPSIS = "…"
_BRACES = re.compile(r"\{[^{}]*\}")

# Start and end of a match in its line, and the parts of the query that it matches.
Match = tuple[int, int, frozenset[str]]
Finder = Callable[[list[str]], list[list[Match]]]


def of_words(stems: frozenset[str]) -> Finder:
    """Return a finder for words with one of these stems."""
    # Few lines contain the start of a stem, so the words of all other lines need no stemming.
    prefixes = sorted({stem[: max(2, len(stem) - 1)] for stem in stems})  # `happi` is the stem of `happy`

    def find(lines: list[str]) -> list[list[Match]]:
        text = "\n".join(lines).lower()
        present = [prefix for prefix in prefixes if prefix in text]
        lowered = text.split("\n")
        likely = {at for prefix in present for at, line in enumerate(lowered) if prefix in line}
        return [_in_line(line, stems) if at in likely or not line.isascii() else [] for at, line in enumerate(lines)]

    return find


def _in_line(line: str, stems: frozenset[str]) -> list[Match]:
    """Return the matches in a line; overlapping matches, such as character bigrams, are merged."""
    merged: list[Match] = []
    for start, end, terms in sorted(located(line)):
        if of := stems & stems_of(terms):
            first, last, others = merged.pop() if merged and start < merged[-1][1] else (start, end, of)
            merged.append((min(first, start), max(last, end), others | of))
    return merged


def of_pattern(pattern: Pattern) -> Finder:
    """Return a finder for the first match of a pattern in each line."""

    def find(lines: list[str]) -> list[list[Match]]:
        query = frozenset({pattern.text})
        spans = pattern.spans(lines)
        return [[(*span, query)] if span and span[0] < span[1] else [] for span in spans]

    return find


def snippet(text: str, find: Finder, hidden: str | None = None) -> Snippet:
    """Return the consecutive lines that match the most of the query.

    Ties go to the window whose first line matches most, then to the first window. `hidden` is the same text with
    spaces in place of the parts that are neither searched nor shown, in braces.
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
        cut, spans = _shorten(*_remove_hidden(line, original, of_line))
        highlights += [(start + length, end + length) for start, end in spans]
        shown.append(cut)
        length += len(cut) + 1
    best = _best_line(matches, first)
    column = matches[best][0][0] + 1 if matches[best] else 1
    return Snippet("\n".join(shown), first, tuple(highlights), best, column)


def _remove_hidden(line: str, original: str, matches: Sequence[Match]) -> tuple[str, Sequence[Match]]:
    """Return a line without its hidden parts, with the matches moved accordingly."""
    if line == original:
        return line, matches
    lists = [range(*found.span()) for found in _BRACES.finditer(original) if line[found.start()] != "{"]
    kept = [at for at in range(len(line)) if not any(at in places for places in lists)]
    shown = "".join(original[at] for at in kept).rstrip()
    return shown, [(bisect_left(kept, start), bisect_left(kept, end), of) for start, end, of in matches]


def _best_start(lines: Sequence[str], matches: Sequence[Sequence[Match]]) -> int:
    matched = {
        at: frozenset[str]().union(*(of for _, _, of in of_line)) for at, of_line in enumerate(matches) if of_line
    }
    if not matched:
        return next((at for at, line in enumerate(lines) if line.strip()), 0)

    def quality(start: int) -> tuple[int, int, int]:
        window = matched[start].union(*(matched[at] for at in range(start + 1, start + _LINES) if at in matched))
        return len(window), len(matched[start]), -start

    return max(matched, key=quality)


def _best_line(matches: Sequence[Sequence[Match]], first: int) -> int:
    """Return the shown line that matches the most of the query; ties go to the first."""

    def count_matched(at: int) -> int:
        return len(frozenset[str]().union(*(of for _, _, of in matches[at])))

    return max(range(first, min(first + _LINES, len(matches))), key=count_matched)


def _shorten(line: str, matches: Sequence[Match]) -> tuple[str, list[tuple[int, int]]]:
    """Return a line cut to the maximum length, and the positions of its matches."""
    if len(line) <= _MAX_LINE:
        return line, [(start, end) for start, end, _ in matches]
    start = max(0, min(matches[0][0] - _BEFORE if matches else 0, len(line) - _MAX_LINE))
    end = start + _MAX_LINE
    before, after = (_ELLIPSIS if start else ""), (_ELLIPSIS if end < len(line) else "")
    moved = [(max(a, start) - start + len(before), min(b, end) - start + len(before)) for a, b, _ in matches]
    return f"{before}{line[start:end]}{after}", [(a, b) for a, b in moved if a < b]
