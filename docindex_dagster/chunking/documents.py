"""Chunking of documents: sections are split or joined to a good size, and each chunk gets its headings.

A block that fits into a chunk is one piece. Longer prose is split at sentences, then at lines, then at characters. Code
and tables are kept intact up to the maximum, and are then split at lines, then at characters. The concatenated pieces
of a block equal the block.

Long sections are split into parts, and short ones are joined with their neighbors. Each further part of a split section
repeats the last sentences or lines of the prose before it.

The chunks of Markdown and plain text are spans that, without their overlap, make up the file. Token counts are summed
over blocks, so `count_tokens` must not add special tokens to each text.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, groupby, repeat, takewhile
from pathlib import PurePosixPath

from docindex_dagster.chunking.chunker import ChunkOptions, Draft, FileDrafts, Sizes, SourceFile
from docindex_dagster.core.tokenizer import TokenCounter, count_tokens
from docindex_dagster.documents.load import load_document
from docindex_dagster.documents.model import (
    Block,
    Document,
    Mark,
    PlacedPointer,
    Section,
    build_sections,
    last_line,
    page_anchor,
    tile,
    utf8_length,
    write_pointers,
)

_INTRO = "intro"
_MAX_ADDRESS = 1000  # characters of an address; longer ones are embedded images and scripts
# Smaller than for documents: a message says one thing in a few sentences.
SIZES = Sizes(target=256, overlap=32, maximum=256, minimum=0)
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)\]*_`]*\s+|(?<=[。！？])|\n{2,}")  # noqa: RUF001 - ideographic punctuation
_LINE_END = re.compile(r"\n+")
# Pieces of a split block are at least this fraction of the target, so that a million short lines remain cheap.
_GRAINS = 16
_REPEATED = frozenset(["prose", "item", "term"])


@dataclass(frozen=True, slots=True)
class _Piece:
    """A block, or part of a block, that fits into a chunk."""

    block: Block
    tokens: int
    section: int  # index of its section
    is_whole: bool = True

    @property
    def is_blank(self) -> bool:
        """Whether the piece contains only whitespace."""
        return not self.block.text.strip()


def _split_into_pieces(blocks: Sequence[tuple[int, Block]], sizes: Sizes, count_tokens: TokenCounter) -> list[_Piece]:
    """Split the blocks of a document, each given with the index of its section, into pieces that fit.

    Tokens are counted once for all blocks together, and once per round of splitting.
    """
    counts = _count([block for _, block in blocks], count_tokens)
    pieces = [_Piece(block, tokens, section) for (section, block), tokens in zip(blocks, counts, strict=True)]
    methods = chain([_sentence_ends, _line_ends], repeat(_character_ends))
    while any(_is_too_long(piece, sizes) for piece in pieces):
        pieces = _split_round(pieces, next(methods), sizes, count_tokens)
    return pieces


def _cut_block(block: Block, ends: Sequence[int]) -> list[Block]:
    """Split a block after each of the given character offsets, the last of which is the end of the text."""
    parts = []
    line, byte, start = block.start_line, block.start_byte, 0
    for end in ends:
        text = block.text[start:end]
        part = replace(block, text=text, pointers=() if start else block.pointers)
        if byte is not None:
            end_byte = byte + utf8_length(text)
            part = replace(part, start_line=line, end_line=last_line(text, line), start_byte=byte, end_byte=end_byte)
            line, byte = line + text.count("\n"), end_byte
        parts.append(part)
        start = end
    return parts


def _count(blocks: Sequence[Block], count_tokens: TokenCounter) -> list[int]:
    """Count the tokens of blocks. Whitespace alone has none, so that it stays with its neighbor."""
    counts = count_tokens([block.text for block in blocks])
    return [tokens if block.text.strip() else 0 for block, tokens in zip(blocks, counts, strict=True)]


def _is_too_long(piece: _Piece, sizes: Sizes) -> bool:
    is_kept_intact = piece.is_whole and piece.block.kind in {"code", "table"}
    return piece.tokens > (sizes.maximum if is_kept_intact else sizes.target) and len(piece.block.text) > 1


def _split_round(
    pieces: Sequence[_Piece], ends_of: Callable[[_Piece, Sizes], list[int]], sizes: Sizes, count_tokens: TokenCounter
) -> list[_Piece]:
    """Split every piece that is too long, using one method."""
    cut = {
        index: _cut_block(piece.block, ends_of(piece, sizes))
        for index, piece in enumerate(pieces)
        if _is_too_long(piece, sizes)
    }
    counts = iter(_count([block for blocks in cut.values() for block in blocks], count_tokens))
    result = []
    for index, piece in enumerate(pieces):
        if index in cut:
            result += [_Piece(block, next(counts), piece.section, is_whole=False) for block in cut[index]]
        else:
            result.append(piece)
    return result


def _sentence_ends(piece: _Piece, sizes: Sizes) -> list[int]:
    pattern = _LINE_END if piece.block.kind in {"code", "table", "front_matter"} else _SENTENCE_END
    return [*_ends(pattern, piece, sizes)]


def _line_ends(piece: _Piece, sizes: Sizes) -> list[int]:
    return [*_ends(_LINE_END, piece, sizes)]


def _ends(pattern: re.Pattern[str], piece: _Piece, sizes: Sizes) -> Iterator[int]:
    """Yield the ends of sentences or lines that are at least a grain apart."""
    text = piece.block.text
    grain = len(text) * sizes.target // (piece.tokens * _GRAINS)
    last = 0
    for match in pattern.finditer(text):
        if match.end() - last >= grain and match.end() > last:
            yield match.end()
            last = match.end()
    if last < len(text):
        yield len(text)


def _character_ends(piece: _Piece, sizes: Sizes) -> list[int]:
    """Return the ends of equal parts, moved back to the last space near each end if there is one."""
    text = piece.block.text
    step = max(len(text) // (piece.tokens // sizes.target + 1), 1)
    ends = []
    last = 0
    while last + step < len(text):
        end = last + step
        space = text.rfind(" ", last + step * 3 // 4, end)
        last = end if space == -1 else space + 1
        ends.append(last)
    return [*ends, len(text)]


@dataclass(frozen=True, slots=True)
class _Part:
    """The content of a chunk, without its overlap."""

    pieces: tuple[_Piece, ...]
    tokens: int
    number: int | None = None  # 1, 2, … in a section that had to be split


def _build_parts(sections: Sequence[Section], pieces: Sequence[_Piece], sizes: Sizes) -> list[_Part]:
    """Group the pieces of a document, in order, into parts.

    A part below the minimum is joined with the next part if that is a subsection or the next sibling section. Otherwise
    it is joined with the previous part if that belongs to the same parent. Results stay within the target. Only a
    heading with at most one line below it may exceed the target, up to the maximum, because it says too little on its
    own.
    """

    def joins_next(left: _Part, right: _Part) -> bool:
        return _is_short(left, right, sizes) and _is_followed_by(sections, left, right)

    def joins_previous(left: _Part, right: _Part) -> bool:
        return _is_short(right, left, sizes) and _is_in_parent_of(sections, left, right)

    parts = [part for _, group in groupby(pieces, key=lambda piece: piece.section) for part in _split([*group], sizes)]
    return _join(_join(parts, joins_next), joins_previous)


def _titled_sections(sections: Sequence[Section], part: _Part) -> Sequence[Section]:
    """Return the sections of a part, without text before the first heading unless there is nothing else."""
    inside = sections[part.pieces[0].section : part.pieces[-1].section + 1]
    return inside[1:] if len(inside) > 1 and inside[0].level == 0 else inside


def _common_path(sections: Sequence[Section], part: _Part) -> tuple[str, ...]:
    """Return the headings that all sections of a part share."""
    paths = [section.heading_path for section in _titled_sections(sections, part)]
    levels = takewhile(lambda titles: len(set(titles)) == 1, zip(*paths, strict=False))
    return tuple(titles[0] for titles in levels)


def _split(pieces: Sequence[_Piece], sizes: Sizes) -> list[_Part]:
    """Split the pieces of one section into parts."""
    runs = _balance(_fill(pieces, sizes), sizes)
    numbers = range(1, len(runs) + 1) if len(runs) > 1 else [None]
    return [_Part(tuple(run), _tokens(run), number) for run, number in zip(runs, numbers, strict=True)]


def _fill(pieces: Sequence[_Piece], sizes: Sizes) -> list[list[_Piece]]:
    """Fill runs up to the target, one after the other. Pieces that introduce a piece stay with it."""
    runs: list[list[_Piece]] = [[]]
    used = 0
    for piece in pieces:
        opens_section = all(before.block.kind == "heading" or before.is_blank for before in runs[-1])
        limit = sizes.maximum if opens_section else sizes.target
        if not piece.is_blank and runs[-1] and used + piece.tokens > limit:
            lead_in = _take_lead_in(runs[-1], min(sizes.minimum, sizes.maximum - sizes.overlap - piece.tokens))
            runs.append(lead_in)
            used = sizes.overlap + _tokens(lead_in)
        runs[-1].append(piece)
        used += piece.tokens
    return runs


def _take_lead_in(run: list[_Piece], room: int) -> list[_Piece]:
    """Remove pieces from the end of a run that only introduce the next piece, as far as they fit; return them.

    Something other than whitespace always remains in the run.
    """
    taken: list[_Piece] = []
    while (
        any(not piece.is_blank for piece in run[:-1])
        and _is_lead_in(run[-1])
        and _tokens(taken) + run[-1].tokens <= room
    ):
        taken.insert(0, run.pop())
    return taken


def _is_lead_in(piece: _Piece) -> bool:
    """Return whether a piece introduces the next one: a heading, a term, or a sentence that ends in a colon."""
    return piece.block.kind in {"heading", "term"} or piece.block.text.rstrip().endswith(":")


def _balance(runs: list[list[_Piece]], sizes: Sizes) -> list[list[_Piece]]:
    """Balance the last two runs, or merge them, if the last one is short."""
    if len(runs) == 1 or _tokens(runs[-1]) >= sizes.minimum:
        return runs
    last_two = runs[-2] + runs[-1]
    total = _tokens(last_two)
    left_tokens = accumulate(piece.tokens for piece in last_two)
    larger_half, cut = min(
        (max(left, total - left), index)
        for index, (left, piece, after) in enumerate(zip(left_tokens, last_two, last_two[1:], strict=False), start=1)
        if index == len(runs[-2]) or not (_is_lead_in(piece) or after.is_blank)
    )
    if total - larger_half < sizes.minimum and total <= sizes.maximum:
        return [*runs[:-2], last_two]
    return [*runs[:-2], last_two[:cut], last_two[cut:]]


def _join(parts: Sequence[_Part], joins: Callable[[_Part, _Part], bool]) -> list[_Part]:
    joined: list[_Part] = []
    for part in parts:
        if joined and joins(joined[-1], part):
            left = joined.pop()
            joined.append(_Part(left.pieces + part.pieces, left.tokens + part.tokens, left.number or part.number))
        else:
            joined.append(part)
    return joined


def _is_short(part: _Part, other: _Part, sizes: Sizes) -> bool:
    """Return whether a part is too short on its own and fits another. Parts of split sections are not mixed."""
    limit = sizes.maximum if _says_little(part) else sizes.target
    both_split = part.number is not None and other.number is not None
    return part.tokens < sizes.minimum and part.tokens + other.tokens <= limit and not both_split


def _says_little(part: _Part) -> bool:
    bodies = (piece.block.text for piece in part.pieces if piece.block.kind != "heading")
    return sum(bool(line.strip()) for body in bodies for line in body.splitlines()) <= 1


def _is_followed_by(sections: Sequence[Section], left: _Part, right: _Part) -> bool:
    """Return whether the next part is a subsection of a part, or a sibling of a complete part."""
    path = _common_path(sections, left)
    first = _titled_sections(sections, left)[0]
    next_path = sections[right.pieces[0].section].heading_path
    is_sibling = first.heading_path == path and next_path[:-1] == path[:-1]
    return first.level == 0 or next_path[: len(path)] == path or is_sibling


def _is_in_parent_of(sections: Sequence[Section], left: _Part, right: _Part) -> bool:
    """Return whether `left` lies entirely in the parent section of `right`."""
    parent = sections[right.pieces[0].section].heading_path[:-1]
    return _common_path(sections, left)[: len(parent)] == parent


def _tokens(pieces: Sequence[_Piece]) -> int:
    return sum(piece.tokens for piece in pieces)


def _overlaps(parts: Sequence[_Part], sizes: Sizes, count_tokens: TokenCounter) -> list[Block | None]:
    """Return the overlap at the start of each part: about `sizes.overlap` tokens from the part before, or None.

    Only a part that continues a split section has an overlap. It consists of full sentences, or of full lines if the
    last sentence is too long.
    """
    found: list[Block | None] = [None] * len(parts)
    rooms = {
        index: min(sizes.overlap, sizes.maximum - part.tokens)
        for index, part in enumerate(parts)
        if part.number and part.number > 1
    }
    tails = {index: _trailing_prose(parts[index - 1], sizes.overlap) for index in rooms}
    for pattern in (_SENTENCE_END, _LINE_END):
        units = {index: _units(tail, pattern) for index, tail in tails.items() if tail and found[index] is None}
        counts = iter(count_tokens([unit.text for blocks in units.values() for unit in blocks]))
        for index, blocks in units.items():
            tokens = [next(counts) for _ in blocks]
            found[index] = _last_fitting(blocks, tokens, rooms[index])
    return found


def _trailing_prose(part: _Part, tokens: int) -> Block | None:
    """Return the prose at the end of a part as one block, no shorter than needed, but never the entire part."""
    taken: list[Block] = []
    for piece in reversed(part.pieces[1:]):
        if piece.block.kind not in _REPEATED or tokens <= 0:
            break
        taken.insert(0, piece.block)
        tokens -= piece.tokens
    return _merge(taken) if taken else None


def _merge(blocks: Sequence[Block]) -> Block:
    text = "".join(block.text for block in blocks)
    return replace(blocks[0], text=text, end_line=blocks[-1].end_line, end_byte=blocks[-1].end_byte)


def _units(block: Block, pattern: re.Pattern[str]) -> list[Block]:
    ends = [match.end() for match in pattern.finditer(block.text)]
    return _cut_block(block, sorted({*ends, len(block.text)} - {0}))


def _last_fitting(units: Sequence[Block], tokens: Sequence[int], room: int) -> Block | None:
    """Return as many units from the end as fit, as one block."""
    sums = accumulate(reversed(tokens))
    count = sum(1 for _ in takewhile(lambda total: total <= room, sums))
    last = units[len(units) - count :]
    return _merge(last) if any(unit.text.strip() for unit in last) else None


def chunk_document(
    text: str, *, path: str, loader: str, sizes: Sizes, count_tokens: TokenCounter, pages: Sequence[int] = ()
) -> FileDrafts:
    """Split one document into chunks.

    Args:
        text: The decoded file.
        path: Its path; the file name replaces a missing title.
        loader: How to read it; see `documents.load`.
        sizes: In tokens; no chunk exceeds the maximum, not counting runs of whitespace.
        count_tokens: Counts the tokens of each text; a text has at most as many as its parts together.
        pages: The line on which each page starts, if the document has pages.

    Returns:
        The chunks in file order; none if the file is blank. `fallback` says why a structured document was read as plain
        text.
    """
    document = replace(load_document(text, path, loader), pages=tuple(pages))
    return _cut_document(document, path, sizes, count_tokens)


def _cut_document(document: Document, path: str, sizes: Sizes, count_tokens: TokenCounter) -> FileDrafts:
    """Split the loaded document of the file at `path`, as `chunk_document` does."""
    if not any(block.text.strip() for section in document.sections for block in section.blocks):
        return FileDrafts((), fallback=document.fallback)
    blocks = [(index, block) for index, section in enumerate(document.sections) for block in section.blocks]
    parts = _build_parts(document.sections, _split_into_pieces(blocks, sizes, count_tokens), sizes)
    repeated = _overlaps(parts, sizes, count_tokens)
    drafts: list[Draft] = []
    first_index: int | None = None
    for index, (part, overlap) in enumerate(zip(parts, repeated, strict=True)):
        first_index = index if part.number == 1 else first_index
        parent = first_index if part.number and part.number > 1 else None
        drafts.append(_draft(document, PurePosixPath(path).name, part, overlap, parent))
    return FileDrafts(tuple(drafts), fallback=document.fallback)


def _draft(document: Document, file_name: str, part: _Part, overlap: Block | None, parent: int | None) -> Draft:
    blocks = [piece.block for piece in part.pieces]
    spanned = [overlap, *blocks] if overlap else blocks
    text = "".join(block.text for block in spanned)
    first = _titled_sections(document.sections, part)[0]
    return Draft(
        text=text.strip("\n") if document.transformed else text,
        chunk_type="section" if document.structured else "text",
        start_line=spanned[0].start_line,
        end_line=max(block.end_line for block in spanned),
        start_byte=spanned[0].start_byte,
        end_byte=spanned[-1].end_byte,
        heading_path=_common_path(document.sections, part),
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


def _pages(document: Document, part: _Part, first: int, last: int) -> Iterator[PlacedPointer]:
    """Yield the pages between the first and last line of a part, as anchors in the sections on these pages."""
    if not document.pages:
        return
    for page in range(bisect_right(document.pages, first), bisect_right(document.pages, last) + 1):
        line = max(first, document.pages[page - 1])
        piece = next((piece for piece in part.pieces if piece.block.end_line >= line), part.pieces[-1])
        yield PlacedPointer(line, "anchor", _titles(document, piece), page_anchor(page))


def _titles(document: Document, piece: _Piece) -> str:
    return " > ".join(document.sections[piece.section].heading_path)


def _pointers(document: Document, piece: _Piece) -> Iterator[PlacedPointer]:
    """Yield the links and anchors of a piece that its text does not show, with the titles of its section."""
    titles = _titles(document, piece)
    for pointer in piece.block.pointers:
        if len(pointer.name) <= _MAX_ADDRESS:
            yield PlacedPointer(pointer.line, pointer.kind, titles, pointer.name)


def chunk_messages(file: SourceFile, _options: ChunkOptions, /) -> FileDrafts:
    """Split a file of messages at sentence ends; split sentences that are too long at lines, then at characters."""
    marks = [Mark(0, "prose"), *(Mark(end.end(), "prose") for end in _SENTENCE_END.finditer(file.text))]
    sentences = tile(file.text, [mark for mark in marks if mark.offset < len(file.text)])
    document = Document(title=None, sections=build_sections(sentences), structured=False)
    found = _cut_document(document, file.path, SIZES, count_tokens)
    return replace(found, drafts=tuple(replace(draft, chunk_type="message") for draft in found.drafts))
