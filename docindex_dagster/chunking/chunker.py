"""What a chunker is, ours or another package's: all that a user who writes one needs is here.

A package offers its own under the entry-point group `docindex.chunkers`, and `[chunking.chunkers]` says which files it
cuts; see docs/chunkers.md.
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
    """One contiguous span of one file.

    Lines are 1-based and inclusive. Bytes are offsets into the decoded text re-encoded as UTF-8, `end_byte` exclusive,
    and None where the document was transformed and the text is not a span of the file.
    """

    text: str
    chunk_type: str
    start_line: int
    end_line: int
    start_byte: int | None
    end_byte: int | None
    symbol: Symbol | None = None  # the dominant one
    symbols: tuple[Symbol, ...] = ()  # all whose definition begins in this chunk
    heading_path: tuple[str, ...] = ()
    section: str | None = None
    subsection: str | None = None
    has_code: bool = False
    calls: tuple[str, ...] = ()  # distinct names, in order
    pointers: str | None = None  # links and anchors of a document, as `documents/model.py` writes them
    part_number: int | None = None  # 1, 2, … when one symbol or block had to be split
    parent_index: int | None = None  # index, among the drafts of the file, of the head or first part it continues


@dataclass(frozen=True, slots=True)
class FileDrafts:
    """All chunks of one file, in order, and what holds for the file as a whole."""

    drafts: tuple[Draft, ...]
    imports: tuple[str, ...] | None = None  # None: the language does not say
    exports: tuple[str, ...] | None = None
    fallback: str | None = None  # why a code file was cut as text
    parsed: "Code | None" = field(default=None, compare=False, repr=False)  # kept to avoid parsing it again


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large a chunk should be, in tokens."""

    target: int = 512
    overlap: int = 50
    maximum: int = 2048
    minimum: int = 128

    def __post_init__(self) -> None:
        if not 0 <= self.overlap < self.target <= self.maximum or not 0 <= self.minimum <= self.target:
            raise ValueError(f"sizes must keep overlap < target <= maximum and minimum <= target: {self}")


@dataclass(frozen=True, slots=True)
class ChunkOptions:
    """The settings that decide how a file is cut."""

    sizes: Sizes  # of documents, in tokens
    code_chars: int  # of code, in characters that are not white space


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to cut: its path relative to the source, its decoded text, its language where that is known."""

    path: str
    text: str
    language: str | None = None
    pages: tuple[int, ...] = ()  # of a PDF, whose text is converted: the line on which each page begins


class Chunker(Protocol):
    """Cuts one file into chunks."""

    def __call__(self, file: SourceFile, options: ChunkOptions, /) -> FileDrafts:
        """The chunks in the order of the file; at least one, unless the file is blank.

        It runs in a worker process and is bound by `parse_timeout_s`. A file that it raises an error for, or whose
        drafts do not fit the file, is cut by lines, and the chunks say why.
        """


def cut_at(text: str, offsets: Iterable[int], chunk_type: str = "text") -> tuple[Draft, ...]:
    """Cut a text before each of the given characters. The drafts put end to end are the text; a blank text has none.

    What would be white space alone stays with the text before it, or, at the begin, with what follows.
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
    """The offsets, in order, with something to read before and after each; and the begin of the text."""
    yield 0
    last, end = 0, len(text.rstrip())
    for offset in sorted(offsets):
        if last < offset < end and not text[last:offset].isspace():
            yield offset
            last = offset
