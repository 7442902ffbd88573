"""Conversion of PDF files to text for indexing.

The text is plain except for headings, which are Markdown. Lines and bytes of chunks refer to this text; `pages` has the
line on which each page starts. A parsing worker converts each file with a timeout and a memory limit, so that a hostile
file does not affect others.

pypdf reads no other files and runs no scripts. Headings come from the outline or, without one, from lines in a larger
font. Running titles, page numbers and other repeated lines in the margins are removed.
"""

import logging
import math
import re
import resource
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from docindex_dagster.documents.model import MAX_TITLE, Converted

if TYPE_CHECKING:
    from pypdf import PdfReader
    from pypdf.generic import Destination

_MAX_PAGES = 3_000
_MAX_CHARACTERS = 8 << 20
_MAX_ENTRIES = 5_000  # per outline
_MAX_STREAM_BYTES = 32 << 20  # per stream, decompressed
_GAP = 1.45  # multiple of the usual line distance that ends a paragraph
_MAX_FONT_SIZE = 1000.0  # font size, in points
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\ufeff\ufffe\uffff\ud800-\udfff]+")
_SPACE = re.compile(r"[ \t\xa0]+")
_HYPHEN = re.compile(r"[^\W\d_]-$")
_MARKUP = re.compile(r"(?=#{1,6}(?:\s|$)|```|~~~)")
_MARGIN = 2  # lines at the top and at the bottom of each page
_NUMBER = re.compile(r"\d+|(?<![^\W\d_])[ivxlc]+(?![^\W\d_])")
_LETTER = re.compile(r"[^\W\d_]")
_MIN_REPEATS, _MIN_NUMBER_REPEATS = 3, 2  # minimum number of pages that repeat a line
_MAX_PAGES_PER_REPEAT = 4  # without a number, at least one page in this many must repeat the line
_HEADING_FACTOR = 1.12  # multiple of the body font size
_MAX_LEVELS = 4  # heading levels distinguished by font size
_MAX_HEADING_LINES = 3  # per heading
_MAX_LARGE_SHARE = 0.3  # of all letters; if more are large, font size is not conclusive
_MIN_LETTERS = 2
_MIN_TITLE_LETTERS = 2  # letters of a title compared to a line that differs by a number
_MAX_MEMORY = 1 << 30  # bytes that converting a file may use in addition to current usage
_STATUS = Path("/proc/self/status")
_USED = re.compile(r"^VmData:\s*(\d+) kB$", re.MULTILINE)
_MAX_PROBLEM = 200


def convert(data: bytes, language: str) -> Converted:
    """Return the text of a file. Unreadable parts are left out, and `problem` says why."""
    try:
        with _limited_memory(_MAX_MEMORY):
            found = _read_pdf(data)
    except Exception as error:  # noqa: BLE001 third-party parsers may fail in any way on hostile files
        found = Converted("", problem=f"{type(error).__name__}: {error}".rstrip(": "))
    return replace(found, problem=found.problem and f"{language}: {found.problem}"[:_MAX_PROBLEM])


@contextmanager
def _limited_memory(max_bytes: int) -> Iterator[None]:
    """Limit the memory that this process may use in addition to its current usage; exceeding it is a MemoryError.

    Nothing is limited if the system does not report current usage, as on macOS, which would not enforce the limit.
    """
    if not _STATUS.exists():
        yield
        return
    used = _USED.search(_STATUS.read_text(encoding="ascii", errors="replace"))
    former, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = (int(used[1]) << 10 if used else 0) + max_bytes
    limits = [limit, *(each for each in (former, hard) if each != resource.RLIM_INFINITY)]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (former, hard))


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a page with its font size and its height above the bottom, both in points."""

    text: str
    size: float
    height: float
    level: int = 0  # of a heading, starting at 1


@dataclass(frozen=True, slots=True)
class _Page:
    """A page of a document; a page without text has no lines."""

    lines: tuple[_Line, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    """An outline entry with its target and depth."""

    title: str
    page: int  # 0-based
    level: int  # 1-based
    top: float | None = None  # height of the target on the page, in points


def _with_headings(pages: Sequence[_Page], entries: Sequence[_Entry]) -> list[_Page]:
    """Mark the headings of pages; a heading that only the outline contains is inserted at its target."""
    return _by_outline(pages, entries) if entries else _by_size(pages)


def _by_outline(pages: Sequence[_Page], entries: Sequence[_Entry]) -> list[_Page]:
    by_page: dict[int, list[_Entry]] = {}
    for entry in entries:
        by_page.setdefault(entry.page, []).append(entry)
    return [_mark_headings(page, by_page.get(number, ())) for number, page in enumerate(pages)]


def _mark_headings(page: _Page, entries: Sequence[_Entry]) -> _Page:
    lines = list(page.lines)
    start = 0
    for entry in entries:
        heading = _Line(entry.title[:MAX_TITLE], 0.0, entry.top or 0.0, entry.level)
        first, last = _find_title(lines, entry, start)
        if first < last:
            heading = replace(heading, height=lines[first].height)
        lines[first:last] = [heading]
        start = first + 1
    return _Page(tuple(lines))


def _find_title(lines: Sequence[_Line], entry: _Entry, start: int) -> tuple[int, int]:
    """Return the range of lines that show the title of an entry; if there are none, an empty range at its target."""
    title = _letters(entry.title)
    for first in range(start, len(lines)):
        shown = ""
        for last in range(first, min(first + _MAX_HEADING_LINES, len(lines))):
            shown += _letters(lines[last].text)
            if _is_same(shown, title):
                return first, last + 1
            if not title.startswith(shown) or lines[last].level:
                break
    below = (at for at in range(start, len(lines)) if entry.top is not None and lines[at].height < entry.top)
    at = next(below, start)
    return at, at


def _is_same(shown: str, title: str) -> bool:
    """Return whether a line shows a title, with or without its number."""
    if shown == title:
        return True
    longer, shorter = (shown, title) if len(shown) > len(title) else (title, shown)
    return len(shorter) >= _MIN_TITLE_LETTERS and longer.endswith(shorter) and longer.removesuffix(shorter).isdigit()


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def _by_size(pages: Sequence[_Page]) -> list[_Page]:
    letters: Counter[float] = Counter()
    for page in pages:
        for line in page.lines:
            letters[line.size] += len(line.text)
    if not letters:
        return [*pages]
    body = max(letters, key=lambda size: (letters[size], size))
    large = sorted((size for size in letters if size > body * _HEADING_FACTOR), reverse=True)
    if sum(letters[size] for size in large) > _MAX_LARGE_SHARE * letters.total():
        return [*pages]
    levels = {size: min(level, _MAX_LEVELS) for level, size in enumerate(large, start=1)}
    return [_Page(tuple(_with_levels(page.lines, levels))) for page in pages]


def _with_levels(lines: Sequence[_Line], levels: dict[float, int]) -> list[_Line]:
    """Set the heading levels of lines, and join a heading that spans several lines."""
    found: list[_Line] = []
    since = 0  # lines in the last heading
    for line in lines:
        level = levels.get(line.size, 0) if _can_be_title(line.text) else 0
        before = found[-1] if found else None
        if level and before is not None and before.level == level and since < _MAX_HEADING_LINES:
            found[-1] = replace(before, text=f"{before.text} {line.text}"[:MAX_TITLE])
            since += 1
            continue
        found.append(replace(line, level=level))
        since = 1
    return found


def _can_be_title(text: str) -> bool:
    return len(text) <= MAX_TITLE and sum(char.isalpha() for char in text) >= _MIN_LETTERS


def _read_pdf(data: bytes) -> Converted:
    """Return the text of a PDF.

    Raises:
        PyPdfError: The file is damaged or encrypted.
        Exception: pypdf may raise any other error for a damaged file.
    """
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # pypdf warns about every minor damage
    limits = {
        f"{name}_maximum_output_length": _MAX_STREAM_BYTES
        for name in ("array_based_stream", "lzw", "run_length", "zlib", "brotli")
    }
    with pypdf.apply_configuration(None, **limits, jbig2dec_binary=None):
        reader = pypdf.PdfReader(BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise pypdf.errors.FileNotDecryptedError("the file is encrypted with a password")
        pages, problem = _pages(reader)
        entries = _outline(reader)
    pages = _with_headings(_without_margins(pages), entries)
    if not any(page.lines for page in pages):
        return Converted("", problem=problem or "no text found; the pages contain only images")
    return _to_text(pages, problem)


def _pages(reader: "PdfReader") -> tuple[list[_Page], str | None]:
    """Return the pages, with unreadable ones empty, and a description of what could not be read."""
    pages: list[_Page] = []
    failures: list[str] = []
    length, count = 0, len(reader.pages)
    for index in range(min(count, _MAX_PAGES)):
        try:
            lines = _lines(reader.pages[index])
        except Exception as error:  # noqa: BLE001 a damaged page must not affect the other pages
            failures.append(f"page {index + 1}: {type(error).__name__}: {error}")
            lines = ()
        length += sum(len(line.text) for line in lines)
        pages.append(_Page(lines))
        if length > _MAX_CHARACTERS:
            break
    if failures:
        return pages, f"cannot read {len(failures)} of {count} pages; {failures[0]}"[:200]
    problem = f"too-large: only the first {len(pages):,} of {count:,} pages are read" if len(pages) < count else None
    return pages, problem


def _lines(page: Any) -> tuple[_Line, ...]:
    """Return the lines of a page, in drawing order."""
    fragments: list[tuple[str, float, float]] = []

    def visit(text: str, matrix: Sequence[float], text_matrix: Sequence[float], _font: object, size: float) -> None:
        fragments.append((text, *_measure(matrix, text_matrix, size)))

    page.extract_text(visitor_text=visit)
    return tuple(_join_fragments(fragments))


def _measure(matrix: Sequence[float], text_matrix: Sequence[float], size: float) -> tuple[float, float]:
    """Return the font size and the height on the page, in points."""
    a, b, c, d = (float(value) for value in matrix[:4])
    scale = (a * d - b * c) * float(text_matrix[0] * text_matrix[3] - text_matrix[1] * text_matrix[2])
    height = float(text_matrix[4]) * b + float(text_matrix[5]) * d + float(matrix[5])
    letters = abs(float(size)) * math.sqrt(abs(scale)) if math.isfinite(scale) else 0.0
    return (
        round(min(letters, _MAX_FONT_SIZE), 1) if math.isfinite(letters) else 0.0,
        height if math.isfinite(height) else 0.0,
    )


def _join_fragments(fragments: Sequence[tuple[str, float, float]]) -> Iterator[_Line]:
    """Join the fragments of a page into lines. The size of a line is that of most of its letters."""
    parts: list[tuple[str, float, float]] = []
    for text, size, height in (*fragments, ("\n", 0.0, 0.0)):
        first, *others = text.split("\n")
        parts.append((first, size, height))
        for other in others:
            line = _SPACE.sub(
                " ", _INVISIBLE.sub("", "".join(part for part, _, _ in parts).translate(_LIGATURES))
            ).strip()
            if line:
                seen = [part for part in parts if part[0].strip()] or parts
                weights: dict[float, int] = {}
                for part, of_part, _ in seen:
                    weights[of_part] = weights.get(of_part, 0) + len(part.strip())
                yield _Line(line, max(weights, key=weights.__getitem__), seen[0][2])
            parts = [(other, size, height)]


def _outline(reader: "PdfReader") -> list[_Entry]:
    """Return the outline entries that point to a page; none if the outline is damaged."""
    found: list[_Entry] = []

    def walk(entries: "Sequence[Destination | list[Any]]", level: int) -> None:
        for entry in entries:
            if len(found) >= _MAX_ENTRIES:
                return
            if isinstance(entry, list):
                walk(entry, level + 1)
            elif (page := reader.get_destination_page_number(entry)) is not None and page >= 0:
                title = " ".join(_INVISIBLE.sub("", str(entry.title or "")).translate(_LIGATURES).split())
                found.append(_Entry(title, page, level, float(entry.top) if entry.top is not None else None))

    try:
        walk(reader.outline, 1)
    except Exception:  # noqa: BLE001 without a usable outline, font sizes determine the headings
        return []
    return [entry for entry in found if entry.title]


def _without_margins(pages: Sequence[_Page]) -> list[_Page]:
    """Remove lines that pages repeat at the same edge, ignoring differing numbers."""
    counts = Counter(key for page in pages for key in {_key(*found) for found in _margins(page)})
    running = {key for key, count in counts.items() if _is_running(key[1], count, len(pages))}
    return [_remove_running(page, running) for page in pages]


def _margins(page: _Page) -> Iterator[tuple[int, _Line]]:
    """Yield the outer lines of a page with their positions: from 0 at the top, negative at the bottom."""
    lines = page.lines
    yield from enumerate(lines[:_MARGIN])
    yield from ((at - _MARGIN, line) for at, line in enumerate(lines[-_MARGIN:], start=max(0, _MARGIN - len(lines))))


def _key(place: int, line: _Line) -> tuple[bool, str]:
    return place < 0, _NUMBER.sub("#", line.text)


def _is_running(text: str, count: int, pages: int) -> bool:
    if not _LETTER.search(text.replace("page", "").replace("Page", "").replace("of", "")):
        return "#" in text and count >= _MIN_NUMBER_REPEATS
    return count >= _MIN_REPEATS and ("#" in text or count * _MAX_PAGES_PER_REPEAT >= pages)


def _remove_running(page: _Page, running: set[tuple[bool, str]]) -> _Page:
    """Remove running lines from both edges of a page, up to the first line of the body."""
    lines = list(page.lines)
    for at_bottom in (False, True):
        for _ in range(_MARGIN):
            if lines and _key(-1 if at_bottom else 0, lines[-1 if at_bottom else 0]) in running:
                lines.pop(-1 if at_bottom else 0)
    return _Page(tuple(lines))


def _to_text(pages: Sequence[_Page], problem: str | None) -> Converted:
    """Return the text of all pages. A blank line ends a paragraph; hyphenated words are joined."""
    written: list[str] = []
    starts: list[int] = []
    for page in pages:
        starts.append(len(written) + 1)
        written += _page_text(page)
    while written and not written[-1]:
        written.pop()
    last = max(len(written), 1)
    return Converted("\n".join(written) + "\n", tuple(min(start, last) for start in starts), problem)


def _page_text(page: _Page) -> list[str]:
    """Return the lines of a page as text, followed by a blank line."""
    distances = [
        above.height - below.height
        for above, below in zip(page.lines, page.lines[1:], strict=False)
        if above.height > below.height
    ]
    usual = median(distances) if distances else 0.0
    written: list[str] = []
    last: _Line | None = None
    for line in page.lines:
        starts_paragraph = last is not None and (
            bool(line.level) or bool(last.level) or last.height - line.height > usual * _GAP
        )
        if starts_paragraph:
            written.append("")
        if line.level:
            written.append(f"{'#' * min(line.level, 6)} {line.text}")
        elif written and not starts_paragraph and _HYPHEN.search(written[-1]) and line.text[:1].islower():
            rest, _, others = line.text.partition(" ")
            written[-1] = written[-1][:-1] + rest
            written += [others] if others else []
        else:
            written.append(_MARKUP.sub(r"\\", line.text, count=1) if _MARKUP.match(line.text) else line.text)
        last = line
    return [*written, ""] if written else []
