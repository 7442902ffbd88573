"""The document model that every loader returns: sections of blocks in file order, and helpers to build it.

Tables store the links and anchors of a document as text, one per line: line in the file, kind, enclosing titles and
name, with_separators by tabs. Pages are anchors in the form that viewers and links use: `manual.pdf#page=12`.

The blocks of a transformed document are rewritten as plain Markdown and carry their positions in the original file.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

from docindex_dagster.core.safe_text import fence_around

BlockKind = Literal["front_matter", "heading", "term", "prose", "item", "code", "table"]
PointerKind = Literal["link", "ref", "anchor", "label"]

# Titles are repeated in every chunk below them; the limit keeps one absurd heading from inflating the index.
MAX_TITLE = 200
_PDF = "pdf"
_PAGE = "page="
_BREAKS = re.compile(r"[\t\n\r]+")
_NEAR = 20_000  # characters


@dataclass(frozen=True, slots=True)
class Pointer:
    """A link or anchor that a transformed text no longer shows.

    A `link` has an address; a `ref` has the label of a location in any file. An `anchor` names a location in its own
    file; a `label` names one for all files.
    """

    kind: PointerKind
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Block:
    """The smallest unit of a document: a heading, a paragraph, a list item, a fenced block, a table.

    A term names what follows it, for example the defined word or the documented function.

    `text` ends with the whitespace that separates it from the next block, so the concatenated texts of consecutive
    blocks are readable. Lines are 1-based and inclusive. Byte offsets refer to the text of the file as UTF-8; they are
    None if the document was transformed.
    """

    kind: BlockKind
    text: str
    start_line: int
    end_line: int
    start_byte: int | None = None
    end_byte: int | None = None
    level: int = 0  # of a heading, starting at 1
    title: str = ""  # of a heading: its text without markup
    pointers: tuple[Pointer, ...] = ()  # empty if the text shows them


@dataclass(frozen=True, slots=True)
class Section:
    """The blocks between two headings. The first block is the heading, except before the first heading."""

    heading_path: tuple[str, ...]  # the titles of all open headings, outermost first
    level: int  # of its own heading; 0 before the first heading
    section: str | None  # the open heading of level 1
    subsection: str | None  # the deepest open heading of level 2 or 3
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Converted:
    """The text of a binary file."""

    text: str
    pages: tuple[int, ...] = ()  # the line on which each page starts; empty if there are no pages
    problem: str | None = None  # what could not be read and why


@dataclass(frozen=True, slots=True)
class Document:
    """A loaded file.

    If `transformed` is false, the concatenated texts of all blocks equal the text of the file.
    """

    title: str | None  # from its metadata, otherwise its first heading of level 1
    sections: tuple[Section, ...]
    front_matter: str | None = None  # as written between its fences
    transformed: bool = False
    structured: bool = True  # false for plain text, which has no headings
    fallback: str | None = None  # why the file was read as plain text
    pages: tuple[int, ...] = ()  # the line on which each page starts; empty if there are no pages


@dataclass(frozen=True, slots=True)
class Mark:
    """The start offset of a block in characters, and its kind. The block ends where the next one starts."""

    offset: int
    kind: BlockKind
    level: int = 0
    title: str = ""


def tile(text: str, marks: Sequence[Mark]) -> list[Block]:
    """Split `text` at the marks, which are in ascending order. Text before the first mark belongs to that mark."""
    if not text:
        return []
    kept: list[Mark] = []
    for mark in marks:
        if not kept or mark.offset > kept[-1].offset:
            kept.append(mark)
    kept = kept or [Mark(0, "prose")]
    starts = [0, *(mark.offset for mark in kept[1:]), len(text)]
    blocks = []
    line, byte = 1, 0
    for index, mark in enumerate(kept):
        part = text[starts[index] : starts[index + 1]]
        block = Block(
            kind=mark.kind,
            text=part,
            start_line=line,
            end_line=last_line(part, line),
            start_byte=byte,
            end_byte=byte + utf8_length(part),
            level=mark.level,
            title=mark.title,
        )
        blocks.append(block)
        line += part.count("\n")
        byte += utf8_length(part)
    return blocks


def last_line(text: str, first_line: int) -> int:
    """Return the line of the last character of a text that starts on `first_line`; a newline belongs to its line."""
    return first_line + text.count("\n", 0, max(len(text) - 1, 0))


def utf8_length(text: str) -> int:
    """Return the number of bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def build_sections(blocks: Iterable[Block]) -> tuple[Section, ...]:
    """Split the blocks of a document before each heading."""
    sections: list[Section] = []
    open_headings: list[Block] = []
    current: list[Block] = []
    for block in blocks:
        if block.kind == "heading":
            if current:
                sections.append(_section(open_headings, current))
            while open_headings and open_headings[-1].level >= block.level:
                open_headings.pop()
            open_headings.append(block)
            current = []
        current.append(block)
    if current:
        sections.append(_section(open_headings, current))
    return tuple(sections)


def _section(open_headings: list[Block], blocks: list[Block]) -> Section:
    named = [heading for heading in open_headings if heading.title]
    return Section(
        heading_path=tuple(heading.title for heading in named),
        level=open_headings[-1].level if open_headings else 0,
        section=next((heading.title for heading in named if heading.level == 1), None),
        subsection=next((heading.title for heading in reversed(named) if heading.level in {2, 3}), None),
        blocks=tuple(blocks),
    )


def is_converted(language: str | None) -> bool:
    """Return whether files of a language are binary files that are converted to text."""
    return language == _PDF


class PlacedPointer(NamedTuple):
    """A link or an anchor of a document, with the titles of its section."""

    line: int
    kind: str  # as in `model.Pointer`
    titles: str
    name: str


def write_pointers(pointers: Iterable[PlacedPointer]) -> str | None:
    """Serialize pointers; return None for no pointers."""
    return "\n".join([_line(*pointer) for pointer in pointers]) or None


def read_pointers(text: str | None) -> Iterator[PlacedPointer]:
    """Parse serialized pointers."""
    for line in text.split("\n") if text else ():
        number, kind, titles, name = line.split("\t")
        yield PlacedPointer(int(number), kind, titles, name)


def page_anchor(page: int) -> str:
    """Return the anchor of a page, counted from 1."""
    return f"{_PAGE}{page}"


def page_at(row: Mapping[str, Any], line: int) -> int | None:
    """Return the page of a line in a chunk; None if the document has no pages."""
    found = read_pointers(row["pointers"]) if is_converted(row["language"]) else ()
    anchors = [pointer.name for pointer in found if pointer.line <= line and pointer.name.startswith(_PAGE)]
    pages = (anchor.removeprefix(_PAGE) for anchor in anchors)
    return max((int(page) for page in pages if page.isdecimal()), default=None)


def page_range(row: Mapping[str, Any]) -> str:
    """Describe the pages of a chunk in words; return "" if the document has no pages."""
    first, last = page_at(row, row["start_line"]), page_at(row, row["end_line"])
    return "" if first is None else f"page {first}" if first == last else f"pages {first} to {last}"


def _line(line: int, *fields: str) -> str:
    return "\t".join([str(line), *(_BREAKS.sub(" ", field) for field in fields)])


def words(text: str) -> frozenset[str]:
    """Return the whitespace-separated words of a text."""
    return frozenset(text.split())


def heading_block(title: str, level: int, start_line: int, end_line: int) -> Block:
    """Return a heading written with number signs, regardless of its markup in the file."""
    title = " ".join(title.split())
    text = f"{'#' * min(level, 6)} {title}"
    return Block("heading", text, start_line, end_line, level=level, title=title[:MAX_TITLE])


def code_block(code: str, language: str, start_line: int, end_line: int) -> Block:
    """Return code between fences that are longer than any run of backticks inside it."""
    fence = fence_around(code)
    return Block("code", f"{fence}{language}\n{code}\n{fence}", start_line, end_line)


def table_block(rows: Sequence[Sequence[str]], start_line: int, end_line: int) -> Block:
    """Return a table with one line per row."""
    lines = ("| " + " | ".join(" ".join(cell.split()) for cell in row) + " |" for row in rows)
    return Block("table", "\n".join(lines), start_line, end_line)


def with_separators(blocks: Sequence[Block]) -> list[Block]:
    """Append a blank line to every block, but only a newline between the items of a list."""
    return [
        replace(block, text=block.text + ("\n" if block.kind == "item" and after == "item" else "\n\n"))
        for block, after in zip_longest(blocks, (block.kind for block in blocks[1:]))
    ]


class SourceLines:
    """A forward search for text in a file.

    HTML and JSON parsers do not report positions. The search for each text starts where the previous text was found. A
    text that is not found gets the line of the last one found.
    """

    def __init__(self, source: str, start: int = 0) -> None:
        self._source = source
        self._position = max(start, 0)
        self._line = 1 + source.count("\n", 0, self._position)

    @property
    def position(self) -> int:
        """The position of the last text found."""
        return self._position

    def line_behind(self, position: int, text: str) -> int | None:
        """Return the line of a text shortly after an earlier position, without moving the current position."""
        found = self._source.find(text, position, position + _NEAR)
        if found < self._position:
            return None if found == -1 else self._line - self._source.count("\n", found, self._position)
        return self._line + self._source.count("\n", self._position, found)

    def line_of(self, text: str) -> int:
        """Return the 1-based line of the next occurrence of `text`, which contains no newlines."""
        found = self._source.find(text, self._position) if text else -1
        if found != -1:
            self._line += self._source.count("\n", self._position, found)
            self._position = found
        return self._line
