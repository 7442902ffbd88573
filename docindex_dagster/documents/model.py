"""What every loader returns: a document as sections of blocks, in the order of the file."""

from dataclasses import dataclass
from typing import Literal

BlockKind = Literal["front_matter", "heading", "term", "prose", "item", "code", "table"]
PointerKind = Literal["link", "ref", "anchor", "label"]

# Titles are repeated on every chunk under them, so that one absurd heading must not multiply the index.
MAX_TITLE = 200


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
