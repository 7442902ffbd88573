"""Which lines of pages are headings: those that the outline names, else those in larger letters than the text."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from docindex_dagster.documents.model import MAX_TITLE

_LARGER = 1.12  # times the letters of the text
_DEEPEST = 4  # levels that sizes of letters tell apart
_MOST_LINES = 3  # of one heading
_MOST_SHARE = 0.3  # of all letters: where more are large, size says nothing
_LEAST_LETTERS = 2
_SHORTEST_PART = 2  # letters of a title that has no number, where the line has one


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a page: the size of its letters and how high it stands, both in points."""

    text: str
    size: float
    height: float
    level: int = 0  # of a heading: 1 and deeper


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a document; one without text has no lines."""

    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of an outline: where it leads, and how deep it stands."""

    title: str
    page: int  # from 0
    level: int  # from 1
    top: float | None = None  # how high on the page, in points


def with_headings(pages: Sequence[Page], entries: Sequence[Entry]) -> list[Page]:
    """The pages with headings marked; one that the outline names and no line shows is put in where it leads."""
    return _by_outline(pages, entries) if entries else _by_size(pages)


def _by_outline(pages: Sequence[Page], entries: Sequence[Entry]) -> list[Page]:
    by_page: dict[int, list[Entry]] = {}
    for entry in entries:
        by_page.setdefault(entry.page, []).append(entry)
    return [_marked(page, by_page.get(number, ())) for number, page in enumerate(pages)]


def _marked(page: Page, entries: Sequence[Entry]) -> Page:
    lines = list(page.lines)
    begin = 0
    for entry in entries:
        heading = Line(entry.title[:MAX_TITLE], 0.0, entry.top or 0.0, entry.level)
        first, last = _place(lines, entry, begin)
        if first < last:
            heading = replace(heading, height=lines[first].height)
        lines[first:last] = [heading]
        begin = first + 1
    return Page(tuple(lines))


def _place(lines: Sequence[Line], entry: Entry, begin: int) -> tuple[int, int]:
    """The lines that show the title of an entry; none of them, at the place where it leads, where there are none."""
    title = _letters(entry.title)
    for first in range(begin, len(lines)):
        shown = ""
        for last in range(first, min(first + _MOST_LINES, len(lines))):
            shown += _letters(lines[last].text)
            if _is_same(shown, title):
                return first, last + 1
            if not title.startswith(shown) or lines[last].level:
                break
    below = (at for at in range(begin, len(lines)) if entry.top is not None and lines[at].height < entry.top)
    at = next(below, begin)
    return at, at


def _is_same(shown: str, title: str) -> bool:
    """Whether a line shows a title, with or without its number."""
    if shown == title:
        return True
    longer, shorter = (shown, title) if len(shown) > len(title) else (title, shown)
    return len(shorter) >= _SHORTEST_PART and longer.endswith(shorter) and longer.removesuffix(shorter).isdigit()


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def _by_size(pages: Sequence[Page]) -> list[Page]:
    letters: Counter[float] = Counter()
    for page in pages:
        for line in page.lines:
            letters[line.size] += len(line.text)
    if not letters:
        return [*pages]
    body = max(letters, key=lambda size: (letters[size], size))
    large = sorted((size for size in letters if size > body * _LARGER), reverse=True)
    if sum(letters[size] for size in large) > _MOST_SHARE * letters.total():
        return [*pages]
    levels = {size: min(level, _DEEPEST) for level, size in enumerate(large, start=1)}
    return [Page(tuple(_joined(page.lines, levels))) for page in pages]


def _joined(lines: Sequence[Line], levels: dict[float, int]) -> list[Line]:
    """The lines with their levels, a heading over several lines made one."""
    found: list[Line] = []
    since = 0  # lines in the last heading
    for line in lines:
        level = levels.get(line.size, 0) if _may_be_title(line.text) else 0
        before = found[-1] if found else None
        if level and before is not None and before.level == level and since < _MOST_LINES:
            found[-1] = replace(before, text=f"{before.text} {line.text}"[:MAX_TITLE])
            since += 1
            continue
        found.append(replace(line, level=level))
        since = 1
    return found


def _may_be_title(text: str) -> bool:
    return len(text) <= MAX_TITLE and sum(char.isalpha() for char in text) >= _LEAST_LETTERS
