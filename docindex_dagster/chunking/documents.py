"""The chunks of a document: its sections, split or joined to a good size, each with its headings.

The chunks of Markdown and plain text are spans of the file which, without their overlap, make up the file. Token
counts are summed over blocks, so that `count_tokens` must not add tokens of its own to each text.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from docindex_dagster.chunking.chunker import ChunkOptions, Draft, FileDrafts, SourceFile
from docindex_dagster.chunking.split import (
    SENTENCE_END,
    Part,
    Piece,
    Sizes,
    build_parts,
    common_path,
    overlaps,
    pieces_of,
    titled_sections,
)
from docindex_dagster.core.tokenizer import TokenCounter, count_tokens
from docindex_dagster.documents.load import load_document
from docindex_dagster.documents.model import (
    Block,
    Document,
    Mark,
    PlacedPointer,
    build_sections,
    page_anchor,
    tile,
    write_pointers,
)

_INTRO = "intro"
_LONGEST = 1000  # of an address: longer ones are pictures and programs
# Smaller than those of documents: a message says one thing, in a few sentences.
SIZES = Sizes(target=256, overlap=32, maximum=256, minimum=0)


def chunk_document(
    text: str, *, path: str, loader: str, sizes: Sizes, count_tokens: TokenCounter, pages: Sequence[int] = ()
) -> FileDrafts:
    """Cut one document.

    Args:
        text: the decoded file.
        path: its path; the file's name stands for a missing title.
        loader: how to read it; see `documents.load`.
        sizes: in tokens; no chunk has more than the maximum, runs of white space left out.
        count_tokens: the tokens of each text; that of a text is at most the sum of its parts'.
        pages: the line on which each page of it begins, if it has pages.

    Returns:
        The chunks in the order of the file; none if the file is blank. `fallback` says why a document with structure
        was read as plain text.
    """
    document = replace(load_document(text, path, loader), pages=tuple(pages))
    return cut_document(document, path, sizes, count_tokens)


def cut_document(document: Document, path: str, sizes: Sizes, count_tokens: TokenCounter) -> FileDrafts:
    """Cut a document that was read from the file at `path`, as `chunk_document` does."""
    if not any(block.text.strip() for section in document.sections for block in section.blocks):
        return FileDrafts((), fallback=document.fallback)
    blocks = [(index, block) for index, section in enumerate(document.sections) for block in section.blocks]
    parts = build_parts(document.sections, pieces_of(blocks, sizes, count_tokens), sizes)
    repeated = overlaps(parts, sizes, count_tokens)
    drafts: list[Draft] = []
    first_index: int | None = None
    for index, (part, overlap) in enumerate(zip(parts, repeated, strict=True)):
        first_index = index if part.number == 1 else first_index
        parent = first_index if part.number and part.number > 1 else None
        drafts.append(_draft(document, PurePosixPath(path).name, part, overlap, parent))
    return FileDrafts(tuple(drafts), fallback=document.fallback)


def _draft(document: Document, file_name: str, part: Part, overlap: Block | None, parent: int | None) -> Draft:
    blocks = [piece.block for piece in part.pieces]
    spanned = [overlap, *blocks] if overlap else blocks
    text = "".join(block.text for block in spanned)
    first = titled_sections(document.sections, part)[0]
    return Draft(
        text=text.strip("\n") if document.transformed else text,
        chunk_type="section" if document.structured else "text",
        start_line=spanned[0].start_line,
        end_line=max(block.end_line for block in spanned),
        start_byte=spanned[0].start_byte,
        end_byte=spanned[-1].end_byte,
        heading_path=common_path(document.sections, part),
        section=first.section or file_name,
        subsection=(first.subsection or _INTRO) if document.structured else None,
        has_code=any(block.kind == "code" for block in blocks),
        pointers=write_pointers(
            [
                *(pointer for piece in part.pieces for pointer in _pointers(document, piece)),
                *_pages(document, part, spanned[0].start_line, spanned[-1].end_line),
            ]
        ),
        part_number=part.number,
        parent_index=parent,
    )


def _pages(document: Document, part: Part, first: int, last: int) -> Iterator[PlacedPointer]:
    """The pages that a part is on, from its first line to its last, each as an anchor of the section that is there."""
    if not document.pages:
        return
    for page in range(bisect_right(document.pages, first), bisect_right(document.pages, last) + 1):
        line = max(first, document.pages[page - 1])
        piece = next((piece for piece in part.pieces if piece.block.end_line >= line), part.pieces[-1])
        yield PlacedPointer(line, "anchor", _titles(document, piece), page_anchor(page))


def _titles(document: Document, piece: Piece) -> str:
    return " > ".join(document.sections[piece.section].heading_path)


def _pointers(document: Document, piece: Piece) -> Iterator[PlacedPointer]:
    """The links and anchors that the text of a piece does not show, of its section."""
    titles = _titles(document, piece)
    for pointer in piece.block.pointers:
        if len(pointer.name) <= _LONGEST:
            yield PlacedPointer(pointer.line, pointer.kind, titles, pointer.name)


def chunk_messages(file: SourceFile, _options: ChunkOptions, /) -> FileDrafts:
    """Cut a file of messages at the ends of sentences; a sentence that is too long, at lines, then at characters."""
    marks = [Mark(0, "prose"), *(Mark(end.end(), "prose") for end in SENTENCE_END.finditer(file.text))]
    sentences = tile(file.text, [mark for mark in marks if mark.offset < len(file.text)])
    document = Document(title=None, sections=build_sections(sentences), structured=False)
    found = cut_document(document, file.path, SIZES, count_tokens)
    return replace(found, drafts=tuple(replace(draft, chunk_type="message") for draft in found.drafts))
