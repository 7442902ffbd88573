"""Blocks become pieces that fit into a chunk.

A block that fits is one piece. Prose that does not is cut at sentences, then at lines, then at characters; code and
tables stay whole up to the maximum and are then cut at lines, then at characters. The pieces of a block, put end to
end, are the block.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat

from docindex_dagster.core.tokenizer import TokenCounter
from docindex_dagster.documents.model import Block
from docindex_dagster.documents.spans import last_line, utf8_length

SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)\]*_`]*\s+|(?<=[。！？])|\n{2,}")  # noqa: RUF001 - ideographic marks are meant
LINE_END = re.compile(r"\n+")
# Pieces of a cut block are gathered up to this share of the target, so that a million short lines stay cheap.
_GRAINS = 16


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
class Piece:
    """A block, or a part of one, that fits into a chunk."""

    block: Block
    tokens: int
    section: int  # index of the section that it stands in
    is_whole: bool = True

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing in it to find."""
        return not self.block.text.strip()


def pieces_of(blocks: Sequence[tuple[int, Block]], sizes: Sizes, count_tokens: TokenCounter) -> list[Piece]:
    """Cut the blocks of a document, each given with the index of its section, into pieces that fit.

    Tokens are counted for all blocks at once, and once for each round of cuts.
    """
    counts = _count([block for _, block in blocks], count_tokens)
    pieces = [Piece(block, tokens, section) for (section, block), tokens in zip(blocks, counts, strict=True)]
    ways = chain([_sentence_ends, _line_ends], repeat(_character_ends))
    while any(_is_too_long(piece, sizes) for piece in pieces):
        pieces = _cut_round(pieces, next(ways), sizes, count_tokens)
    return pieces


def cut_block(block: Block, ends: Sequence[int]) -> list[Block]:
    """Cut a block after each of the given characters; the last end is that of the text."""
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
    """The tokens of blocks. White space alone has none, so that it goes with what stands beside it."""
    counts = count_tokens([block.text for block in blocks])
    return [tokens if block.text.strip() else 0 for block, tokens in zip(blocks, counts, strict=True)]


def _is_too_long(piece: Piece, sizes: Sizes) -> bool:
    stays_whole = piece.is_whole and piece.block.kind in {"code", "table"}
    return piece.tokens > (sizes.maximum if stays_whole else sizes.target) and len(piece.block.text) > 1


def _cut_round(
    pieces: Sequence[Piece], ends_of: Callable[[Piece, Sizes], list[int]], sizes: Sizes, count_tokens: TokenCounter
) -> list[Piece]:
    """Cut every piece that is too long, in one way."""
    cut = {
        index: cut_block(piece.block, ends_of(piece, sizes))
        for index, piece in enumerate(pieces)
        if _is_too_long(piece, sizes)
    }
    counts = iter(_count([block for blocks in cut.values() for block in blocks], count_tokens))
    result = []
    for index, piece in enumerate(pieces):
        if index in cut:
            result += [Piece(block, next(counts), piece.section, is_whole=False) for block in cut[index]]
        else:
            result.append(piece)
    return result


def _sentence_ends(piece: Piece, sizes: Sizes) -> list[int]:
    pattern = LINE_END if piece.block.kind in {"code", "table", "front_matter"} else SENTENCE_END
    return [*_ends(pattern, piece, sizes)]


def _line_ends(piece: Piece, sizes: Sizes) -> list[int]:
    return [*_ends(LINE_END, piece, sizes)]


def _ends(pattern: re.Pattern[str], piece: Piece, sizes: Sizes) -> Iterator[int]:
    """The ends of sentences or lines that are at least a grain apart."""
    text = piece.block.text
    grain = len(text) * sizes.target // (piece.tokens * _GRAINS)
    last = 0
    for match in pattern.finditer(text):
        if match.end() - last >= grain and match.end() > last:
            yield match.end()
            last = match.end()
    if last < len(text):
        yield len(text)


def _character_ends(piece: Piece, sizes: Sizes) -> list[int]:
    """Cut into equal parts, each after the last space near its end if there is one."""
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
