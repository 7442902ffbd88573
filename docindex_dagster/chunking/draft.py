"""What a chunker returns: the chunks of one file, before they know the source that they belong to."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from docindex_dagster.code.symbols import Symbol

if TYPE_CHECKING:
    from docindex_dagster.code.embedded import Code


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
    pointers: str | None = None  # links and anchors of a document, as `documents/pointers.py` writes them
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
