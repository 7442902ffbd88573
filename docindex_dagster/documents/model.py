"""What every loader returns, and how it is made: a document as sections of blocks, in the order of the file.

Tables store its links and anchors as text, one a line: the line of the file, the kind, the titles above and the name,
separated by tabs. Pages are anchors, as viewers and links address them: `manual.pdf#page=12`.

The blocks of a document that is transformed are written anew, as plain Markdown, and located in the file.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

from docindex_dagster.core.safe_text import fence_around

BlockKind = Literal["front_matter", "heading", "term", "prose", "item", "code", "table"]
PointerKind = Literal["link", "ref", "anchor", "label"]

# Titles are repeated on every chunk under them, so that one absurd heading must not multiply the index.
MAX_TITLE = 200
_PDF = "pdf"
_PAGE = "page="
_BREAKS = re.compile(r"[\t\n\r]+")
_NEAR = 20_000  # characters


@dataclass(frozen=True, slots=True)
class Pointer:
    """What a transformed text no longer shows: where it leads, or by which name others lead to it.

    A `link` has an address, a `ref` the label of a place in any file. An `anchor` is a name of a place in its file, a
    `label` one that all files share.
    """

    kind: PointerKind
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Block:
    """The smallest unit of a document: a heading, a paragraph, a list item, a fenced block, a table.

    A term names what follows it: the word that is defined, the function that is described.

    `text` ends with the white space that separates it from the next block, so that the texts of consecutive blocks,
    put end to end, are readable as they stand. Lines are 1-based and inclusive. Bytes are offsets into the text of the
    file as UTF-8, and None where the document was transformed.
    """

    kind: BlockKind
    text: str
    start_line: int
    end_line: int
    start_byte: int | None = None
    end_byte: int | None = None
    level: int = 0  # of a heading: 1 and deeper
    title: str = ""  # of a heading: its text without markup
    pointers: tuple[Pointer, ...] = ()  # empty where the text shows them


@dataclass(frozen=True, slots=True)
class Section:
    """What lies between two headings. Its first block is its heading, except before the first heading."""

    heading_path: tuple[str, ...]  # the titles of all open headings, outermost first
    level: int  # of its own heading; 0 before the first
    section: str | None  # the open heading of level 1
    subsection: str | None  # the deepest open heading of level 2 or 3
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Converted:
    """The text of a file that is none itself."""

    text: str
    pages: tuple[int, ...] = ()  # the line on which each page begins; empty where there are no pages
    problem: str | None = None  # what could not be read, and why


@dataclass(frozen=True, slots=True)
class Document:
    """One file, loaded.

    Where `transformed` is false, the texts of all blocks put end to end are the file.
    """

    title: str | None  # what its metadata calls it, else its first heading of level 1
    sections: tuple[Section, ...]
    front_matter: str | None = None  # as it stands between its fences
    transformed: bool = False
    structured: bool = True  # false for plain text, which has no headings to speak of
    fallback: str | None = None  # why the file was read as plain text
    pages: tuple[int, ...] = ()  # the line on which each page begins; empty where there are no pages


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a block begins, in characters, and what it is. It ends where the next one begins."""

    offset: int
    kind: BlockKind
    level: int = 0
    title: str = ""


def tile(text: str, marks: Sequence[Mark]) -> list[Block]:
    """Cut `text` at the marks, which are in ascending order. What stands before the first mark belongs to it."""
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
    """The line of the last character of a text that begins on `first_line`; a line end belongs to its line."""
    return first_line + text.count("\n", 0, max(len(text) - 1, 0))


def utf8_length(text: str) -> int:
    """How many bytes a text takes as UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def build_sections(blocks: Iterable[Block]) -> tuple[Section, ...]:
    """Cut a document's blocks before each heading."""
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
    """Whether files of a language are no text themselves."""
    return language == _PDF


class PlacedPointer(NamedTuple):
    """A link or an anchor of a document, in the section with these titles."""

    line: int
    kind: str  # as `model.Pointer` has it
    titles: str
    name: str


def write_pointers(pointers: Iterable[PlacedPointer]) -> str | None:
    """The text of some pointers; None for none."""
    return "\n".join([_line(*pointer) for pointer in pointers]) or None


def read_pointers(text: str | None) -> Iterator[PlacedPointer]:
    """The pointers of a text."""
    for line in text.split("\n") if text else ():
        number, kind, titles, name = line.split("\t")
        yield PlacedPointer(int(number), kind, titles, name)


def page_anchor(page: int) -> str:
    """The anchor of a page, from 1."""
    return f"{_PAGE}{page}"


def page_at(row: Mapping[str, Any], line: int) -> int | None:
    """The page on which a line of a chunk is; None where the document has no pages."""
    found = read_pointers(row["pointers"]) if is_converted(row["language"]) else ()
    named = (one.name.removeprefix(_PAGE) for one in found if one.line <= line and one.name.startswith(_PAGE))
    return max((int(page) for page in named if page.isdecimal()), default=None)


def page_range(row: Mapping[str, Any]) -> str:
    """The pages on which a chunk is, in words; nothing where the document has no pages."""
    first, last = page_at(row, row["start_line"]), page_at(row, row["end_line"])
    return "" if first is None else f"page {first}" if first == last else f"pages {first} to {last}"


def _line(line: int, *fields: str) -> str:
    return "\t".join([str(line), *(_BREAKS.sub(" ", field) for field in fields)])


def words(text: str) -> frozenset[str]:
    """The words of a text that are separated by white space."""
    return frozenset(text.split())


def heading_block(title: str, level: int, start_line: int, end_line: int) -> Block:
    """A heading, written with number signs however it was marked in the file."""
    title = " ".join(title.split())
    text = f"{'#' * min(level, 6)} {title}"
    return Block("heading", text, start_line, end_line, level=level, title=title[:MAX_TITLE])


def code_block(code: str, language: str, start_line: int, end_line: int) -> Block:
    """Code between fences longer than any run of backticks inside it."""
    fence = fence_around(code)
    return Block("code", f"{fence}{language}\n{code}\n{fence}", start_line, end_line)


def table_block(rows: Sequence[Sequence[str]], start_line: int, end_line: int) -> Block:
    """A table, one line a row."""
    lines = ("| " + " | ".join(" ".join(cell.split()) for cell in row) + " |" for row in rows)
    return Block("table", "\n".join(lines), start_line, end_line)


def separated(blocks: Sequence[Block]) -> list[Block]:
    """Put a blank line after every block, and a line end between the items of a list."""
    return [
        replace(block, text=block.text + ("\n" if block.kind == "item" and after == "item" else "\n\n"))
        for block, after in zip_longest(blocks, (block.kind for block in blocks[1:]))
    ]


class SourceLines:
    """A forward search for text in a file.

    Parsers of HTML and JSON keep no positions. So each text is searched from where the one before it was found; one
    that is not found is taken to stand on the last line that was.
    """

    def __init__(self, source: str, start: int = 0) -> None:
        self._source = source
        self._position = max(start, 0)
        self._line = 1 + source.count("\n", 0, self._position)

    @property
    def position(self) -> int:
        """Where the last text was found."""
        return self._position

    def line_behind(self, position: int, text: str) -> int | None:
        """The line of a text that stands not far behind a former position; the search goes on from where it was."""
        found = self._source.find(text, position, position + _NEAR)
        if found < self._position:
            return None if found == -1 else self._line - self._source.count("\n", found, self._position)
        return self._line + self._source.count("\n", self._position, found)

    def line_of(self, text: str) -> int:
        """The line, 1-based, on which `text` stands next; `text` has no line ends."""
        found = self._source.find(text, self._position) if text else -1
        if found != -1:
            self._line += self._source.count("\n", self._position, found)
            self._position = found
        return self._line
