"""The chunker interface, with everything that the author of a chunker needs.

A package provides chunkers under the entry-point group `docindex.chunkers`, and `[chunking.chunkers]` selects the files
that they chunk; see docs/how-to/write-a-chunker.md.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from docindex_dagster.code.symbols import Symbol
from docindex_dagster.documents.model import Mark, tile

if TYPE_CHECKING:
    from docindex_dagster.code.embedded_code import Code

__all__ = ["ChunkOptions", "Chunker", "Draft", "FileDrafts", "Sizes", "SourceFile", "Symbol", "cut_at"]


@dataclass(frozen=True, slots=True)
class Draft:
    """A contiguous span of one file.

    Lines are 1-based and inclusive. Bytes are offsets into the decoded text encoded as UTF-8, `end_byte` exclusive.
    They are None if the document was transformed, so that the text is not a span of the file.
    """

    text: str
    chunk_type: str
    start_line: int
    end_line: int
    start_byte: int | None
    end_byte: int | None
    symbol: Symbol | None = None  # the dominant symbol
    symbols: tuple[Symbol, ...] = ()  # all symbols whose definitions start in this chunk
    heading_path: tuple[str, ...] = ()
    section: str | None = None
    subsection: str | None = None
    has_code: bool = False
    calls: tuple[str, ...] = ()  # distinct names, in order
    pointers: str | None = None  # links and anchors of a document, in the format of `documents/model.py`
    part_number: int | None = None  # 1, 2, … if a symbol or block had to be split
    parent_index: int | None = None  # index, in the drafts of the file, of the head or first part that it continues


@dataclass(frozen=True, slots=True)
class FileDrafts:
    """All chunks of a file, in order, and properties of the entire file."""

    drafts: tuple[Draft, ...]
    imports: tuple[str, ...] | None = None  # None: not available for the language
    exports: tuple[str, ...] | None = None
    fallback: str | None = None  # why a file was cut as text
    parsed: "Code | None" = field(default=None, compare=False, repr=False)  # kept to avoid parsing it again


@dataclass(frozen=True, slots=True)
class Sizes:
    """Chunk sizes, in tokens."""

    target: int = 512
    overlap: int = 50
    maximum: int = 2048
    minimum: int = 128

    def __post_init__(self) -> None:
        if not 0 <= self.overlap < self.target <= self.maximum or not 0 <= self.minimum <= self.target:
            raise ValueError(f"invalid sizes: expected overlap < target <= maximum and minimum <= target, got {self}")


@dataclass(frozen=True, slots=True)
class ChunkOptions:
    """The settings that decide how a file is split."""

    sizes: Sizes  # for documents, in tokens
    code_chars: int  # for code, in non-whitespace characters


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to chunk: its path relative to the source, its decoded text, and its language if known."""

    path: str
    text: str
    language: str | None = None
    pages: tuple[int, ...] = ()  # for converted PDFs: the line on which each page starts


class Chunker(Protocol):
    """A callable that splits one file into chunks."""

    def __call__(self, file: SourceFile, options: ChunkOptions, /) -> FileDrafts:
        """Return the chunks in file order: at least one unless the file is blank.

        The chunker runs in a worker process with the time limit `parse_timeout_s`. If it raises an error or returns
        drafts that do not fit the file, the file is cut by lines, and its chunks record the reason.
        """


def cut_at(text: str, offsets: Iterable[int], chunk_type: str = "text") -> tuple[Draft, ...]:
    """Split a text before each of the given character offsets.

    The concatenated drafts equal the text; a blank text has none. Whitespace that would form a draft of its own stays
    with the text before it or, at the start, with the text after it.
    """
    return tuple(
        Draft(
            text=block.text,
            chunk_type=chunk_type,
            start_line=block.start_line,
            end_line=block.end_line,
            start_byte=block.start_byte,
            end_byte=block.end_byte,
        )
        for block in tile(text, [Mark(offset, "prose") for offset in _between_words(text, offsets)])
        if text.strip()
    )


def _between_words(text: str, offsets: Iterable[int]) -> Iterator[int]:
    """Yield the start of the text and the offsets, in order, that have non-whitespace text before and after them."""
    yield 0
    last, end = 0, len(text.rstrip())
    for offset in sorted(offsets):
        if last < offset < end and not text[last:offset].isspace():
            yield offset
            last = offset
