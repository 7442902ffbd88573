"""What pages repeat at their top and bottom: running titles, and the numbers of pages."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from docindex_dagster.documents.pages import Line, Page

_DEEP = 2  # lines of each page, at the top and at the bottom
_NUMBER = re.compile(r"\d+|(?<![^\W\d_])[ivxlc]+(?![^\W\d_])")
_LETTER = re.compile(r"[^\W\d_]")
_PAGES, _PAGES_OF_NUMBERS = 3, 2  # that have to repeat a line
_SHARE = 4  # one page in so many has to, where the line has no number


def without_margins(pages: Sequence[Page]) -> list[Page]:
    """The pages without the lines that they repeat, but for their numbers, at the same end."""
    counts = Counter(key for page in pages for key in {_key(*found) for found in _margins(page)})
    running = {key for key, count in counts.items() if _is_running(key[1], count, len(pages))}
    return [_cleared(page, running) for page in pages]


def _margins(page: Page) -> Iterator[tuple[int, Line]]:
    """The outer lines of a page, each with where it stands from the top, or less than 0 from the bottom."""
    lines = page.lines
    yield from enumerate(lines[:_DEEP])
    yield from ((at - _DEEP, line) for at, line in enumerate(lines[-_DEEP:], start=max(0, _DEEP - len(lines))))


def _key(place: int, line: Line) -> tuple[bool, str]:
    return place < 0, _NUMBER.sub("#", line.text)


def _is_running(text: str, count: int, pages: int) -> bool:
    if not _LETTER.search(text.replace("page", "").replace("Page", "").replace("of", "")):
        return "#" in text and count >= _PAGES_OF_NUMBERS
    return count >= _PAGES and ("#" in text or count * _SHARE >= pages)


def _cleared(page: Page, running: set[tuple[bool, str]]) -> Page:
    """A page without such lines, from its ends up to the first line that is none."""
    lines = list(page.lines)
    for at_bottom in (False, True):
        for _ in range(_DEEP):
            if lines and _key(-1 if at_bottom else 0, lines[-1 if at_bottom else 0]) in running:
                lines.pop(-1 if at_bottom else 0)
    return Page(tuple(lines))
