"""Conversion of PDF files to the text that is indexed in their place.

The text is plain but for headings, which are Markdown. The lines and bytes of chunks refer to it, and `pages` has the
line on which each page begins. A parsing worker converts a file, with a time-out and a memory limit, so that a hostile
file affects no other one.

pypdf reads no other file and runs no script in a PDF. Headings come from the outline; without one, lines in larger
letters are headings. Running titles, page numbers and other repeated lines in the margins are left out.
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

_MOST_PAGES = 3_000
_MOST_CHARACTERS = 8 << 20
_MOST_ENTRIES = 5_000  # of an outline
_MOST_BYTES = 32 << 20  # of one stream, decompressed
_GAP = 1.45  # so much of the usual distance between lines ends a paragraph
_LARGEST = 1000.0  # of letters, in points
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\ufeff\ufffe\uffff\ud800-\udfff]+")
_SPACE = re.compile(r"[ \t\xa0]+")
_HYPHEN = re.compile(r"[^\W\d_]-$")
_MARKUP = re.compile(r"(?=#{1,6}(?:\s|$)|```|~~~)")
_MARGIN = 2  # lines of each page, at the top and at the bottom
_NUMBER = re.compile(r"\d+|(?<![^\W\d_])[ivxlc]+(?![^\W\d_])")
_LETTER = re.compile(r"[^\W\d_]")
_REPEATS, _REPEATS_OF_NUMBERS = 3, 2  # pages that have to have a line
_SHARE = 4  # one page in so many has to have it, where it has no number
_LARGER = 1.12  # times the letters of the text
_DEEPEST = 4  # levels that sizes of letters tell apart
_MOST_LINES = 3  # of one heading
_MOST_SHARE = 0.3  # of all letters: where more are large, size says nothing
_LEAST_LETTERS = 2
_SHORTEST_PART = 2  # letters of a title that has no number, where the line has one
_MOST_MEMORY = 1 << 30  # bytes that a file may take besides what the process has
_STATUS = Path("/proc/self/status")
_USED = re.compile(r"^VmData:\s*(\d+) kB$", re.MULTILINE)
_LONGEST_PROBLEM = 200


def convert(data: bytes, language: str) -> Converted:
    """The text of a file. What cannot be read of it is left out, and `problem` says why."""
    try:
        with _limited_memory(_MOST_MEMORY):
            found = _read_pdf(data)
    except Exception as error:  # noqa: BLE001 the parsers are not ours, and a hostile file may break them in any way
        found = Converted("", problem=f"{type(error).__name__}: {error}".rstrip(": "))
    return replace(found, problem=found.problem and f"{language}: {found.problem}"[:_LONGEST_PROBLEM])


@contextmanager
def _limited_memory(most: int) -> Iterator[None]:
    """Let this process take no more than so many bytes besides what it has; what would is a MemoryError.

    Where the system does not say what it has (macOS, which enforces no such limit either), nothing is limited.
    """
    if not _STATUS.exists():
        yield
        return
    used = _USED.search(_STATUS.read_text(encoding="ascii", errors="replace"))
    former, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = (int(used[1]) << 10 if used else 0) + most
    limits = [limit, *(each for each in (former, hard) if each != resource.RLIM_INFINITY)]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (former, hard))


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a page: the size of its letters and how high it stands, both in points."""

    text: str
    size: float
    height: float
    level: int = 0  # of a heading: 1 and deeper


@dataclass(frozen=True, slots=True)
class _Page:
    """A page of a document; one without text has no lines."""

    lines: tuple[_Line, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of an outline: where it leads, and how deep it stands."""

    title: str
    page: int  # from 0
    level: int  # from 1
    top: float | None = None  # how high on the page, in points


def _with_headings(pages: Sequence[_Page], entries: Sequence[_Entry]) -> list[_Page]:
    """The pages with headings marked; one that the outline names and no line shows is put in where it leads."""
    return _by_outline(pages, entries) if entries else _by_size(pages)


def _by_outline(pages: Sequence[_Page], entries: Sequence[_Entry]) -> list[_Page]:
    by_page: dict[int, list[_Entry]] = {}
    for entry in entries:
        by_page.setdefault(entry.page, []).append(entry)
    return [_marked(page, by_page.get(number, ())) for number, page in enumerate(pages)]


def _marked(page: _Page, entries: Sequence[_Entry]) -> _Page:
    lines = list(page.lines)
    begin = 0
    for entry in entries:
        heading = _Line(entry.title[:MAX_TITLE], 0.0, entry.top or 0.0, entry.level)
        first, last = _place(lines, entry, begin)
        if first < last:
            heading = replace(heading, height=lines[first].height)
        lines[first:last] = [heading]
        begin = first + 1
    return _Page(tuple(lines))


def _place(lines: Sequence[_Line], entry: _Entry, begin: int) -> tuple[int, int]:
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


def _by_size(pages: Sequence[_Page]) -> list[_Page]:
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
    return [_Page(tuple(_with_levels(page.lines, levels))) for page in pages]


def _with_levels(lines: Sequence[_Line], levels: dict[float, int]) -> list[_Line]:
    """The lines with their levels, a heading over several lines made one."""
    found: list[_Line] = []
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


def _read_pdf(data: bytes) -> Converted:
    """The text of a PDF.

    Raises:
        PyPdfError: it is damaged, or encrypted.
        Exception: what else damage makes pypdf raise.
    """
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it warns of each small damage
    limits = {
        f"{name}_maximum_output_length": _MOST_BYTES
        for name in ("array_based_stream", "lzw", "run_length", "zlib", "brotli")
    }
    with pypdf.apply_configuration(None, **limits, jbig2dec_binary=None):
        reader = pypdf.PdfReader(BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise pypdf.errors.FileNotDecryptedError("it is encrypted with a password")
        pages, problem = _pages(reader)
        entries = _outline(reader)
    pages = _with_headings(_without_margins(pages), entries)
    if not any(page.lines for page in pages):
        return Converted("", problem=problem or "its pages hold no text, only pictures")
    return _converted(pages, problem)


def _pages(reader: "PdfReader") -> tuple[list[_Page], str | None]:
    """The pages that can be read, those that cannot being empty; and what could not."""
    pages: list[_Page] = []
    failures: list[str] = []
    length, count = 0, len(reader.pages)
    for index in range(min(count, _MOST_PAGES)):
        try:
            lines = _lines(reader.pages[index])
        except Exception as error:  # noqa: BLE001 a page that is damaged in any way costs itself alone
            failures.append(f"page {index + 1}: {type(error).__name__}: {error}")
            lines = ()
        length += sum(len(line.text) for line in lines)
        pages.append(_Page(lines))
        if length > _MOST_CHARACTERS:
            break
    if failures:
        return pages, f"{len(failures)} of {count} pages cannot be read; {failures[0]}"[:200]
    return pages, f"too-large: the first {len(pages):,} of {count:,} pages are read" if len(pages) < count else None


def _lines(page: Any) -> tuple[_Line, ...]:
    """The lines of a page, in the order in which they are drawn."""
    fragments: list[tuple[str, float, float]] = []

    def visit(text: str, matrix: Sequence[float], of_text: Sequence[float], _font: object, size: float) -> None:
        fragments.append((text, *_measured(matrix, of_text, size)))

    page.extract_text(visitor_text=visit)
    return tuple(_joined(fragments))


def _measured(matrix: Sequence[float], of_text: Sequence[float], size: float) -> tuple[float, float]:
    """How large letters are, and how high on the page they stand, in points."""
    a, b, c, d = (float(value) for value in matrix[:4])
    scale = (a * d - b * c) * float(of_text[0] * of_text[3] - of_text[1] * of_text[2])
    height = float(of_text[4]) * b + float(of_text[5]) * d + float(matrix[5])
    letters = abs(float(size)) * math.sqrt(abs(scale)) if math.isfinite(scale) else 0.0
    return (
        round(min(letters, _LARGEST), 1) if math.isfinite(letters) else 0.0,
        height if math.isfinite(height) else 0.0,
    )


def _joined(fragments: Sequence[tuple[str, float, float]]) -> Iterator[_Line]:
    """Lines of the fragments of a page. Their size is that of most of their letters."""
    parts: list[tuple[str, float, float]] = []
    for text, size, height in (*fragments, ("\n", 0.0, 0.0)):
        first, *others = text.split("\n")
        parts.append((first, size, height))
        for other in others:
            line = _SPACE.sub(" ", _UNSEEN.sub("", "".join(part for part, _, _ in parts).translate(_LIGATURES))).strip()
            if line:
                seen = [part for part in parts if part[0].strip()] or parts
                weights: dict[float, int] = {}
                for part, of_part, _ in seen:
                    weights[of_part] = weights.get(of_part, 0) + len(part.strip())
                yield _Line(line, max(weights, key=weights.__getitem__), seen[0][2])
            parts = [(other, size, height)]


def _outline(reader: "PdfReader") -> list[_Entry]:
    """The entries of the outline that lead to a page; none where it is damaged."""
    found: list[_Entry] = []

    def walk(entries: "Sequence[Destination | list[Any]]", level: int) -> None:
        for entry in entries:
            if len(found) >= _MOST_ENTRIES:
                return
            if isinstance(entry, list):
                walk(entry, level + 1)
            elif (page := reader.get_destination_page_number(entry)) is not None and page >= 0:
                title = " ".join(_UNSEEN.sub("", str(entry.title or "")).translate(_LIGATURES).split())
                found.append(_Entry(title, page, level, float(entry.top) if entry.top is not None else None))

    try:
        walk(reader.outline, 1)
    except Exception:  # noqa: BLE001 a damaged outline leaves the sizes of letters to say what is a heading
        return []
    return [entry for entry in found if entry.title]


def _without_margins(pages: Sequence[_Page]) -> list[_Page]:
    """The pages without the lines that they repeat, but for their numbers, at the same end."""
    counts = Counter(key for page in pages for key in {_key(*found) for found in _margins(page)})
    running = {key for key, count in counts.items() if _is_running(key[1], count, len(pages))}
    return [_cleared(page, running) for page in pages]


def _margins(page: _Page) -> Iterator[tuple[int, _Line]]:
    """The outer lines of a page, each with where it stands from the top, or less than 0 from the bottom."""
    lines = page.lines
    yield from enumerate(lines[:_MARGIN])
    yield from ((at - _MARGIN, line) for at, line in enumerate(lines[-_MARGIN:], start=max(0, _MARGIN - len(lines))))


def _key(place: int, line: _Line) -> tuple[bool, str]:
    return place < 0, _NUMBER.sub("#", line.text)


def _is_running(text: str, count: int, pages: int) -> bool:
    if not _LETTER.search(text.replace("page", "").replace("Page", "").replace("of", "")):
        return "#" in text and count >= _REPEATS_OF_NUMBERS
    return count >= _REPEATS and ("#" in text or count * _SHARE >= pages)


def _cleared(page: _Page, running: set[tuple[bool, str]]) -> _Page:
    """A page without such lines, from its ends up to the first line that is none."""
    lines = list(page.lines)
    for at_bottom in (False, True):
        for _ in range(_MARGIN):
            if lines and _key(-1 if at_bottom else 0, lines[-1 if at_bottom else 0]) in running:
                lines.pop(-1 if at_bottom else 0)
    return _Page(tuple(lines))


def _converted(pages: Sequence[_Page], problem: str | None) -> Converted:
    """The text of all pages. A blank line ends a paragraph; a word that a line cuts is put together."""
    written: list[str] = []
    starts: list[int] = []
    for page in pages:
        starts.append(len(written) + 1)
        written += _written(page)
    while written and not written[-1]:
        written.pop()
    last = max(len(written), 1)
    return Converted("\n".join(written) + "\n", tuple(min(start, last) for start in starts), problem)


def _written(page: _Page) -> list[str]:
    """The lines of a page as text, with a blank one at the end."""
    distances = [
        above.height - below.height
        for above, below in zip(page.lines, page.lines[1:], strict=False)
        if above.height > below.height
    ]
    usual = median(distances) if distances else 0.0
    written: list[str] = []
    last: _Line | None = None
    for line in page.lines:
        is_apart = last is not None and (
            bool(line.level) or bool(last.level) or last.height - line.height > usual * _GAP
        )
        if is_apart:
            written.append("")
        if line.level:
            written.append(f"{'#' * min(line.level, 6)} {line.text}")
        elif written and not is_apart and _HYPHEN.search(written[-1]) and line.text[:1].islower():
            rest, _, others = line.text.partition(" ")
            written[-1] = written[-1][:-1] + rest
            written += [others] if others else []
        else:
            written.append(_MARKUP.sub(r"\\", line.text, count=1) if _MARKUP.match(line.text) else line.text)
        last = line
    return [*written, ""] if written else []
