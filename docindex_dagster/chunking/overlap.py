"""What a part repeats of the one before it: the last sentences or lines of its prose."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, takewhile

from docindex_dagster.chunking.sections import Part
from docindex_dagster.chunking.split import LINE_END, SENTENCE_END, Sizes, cut_block
from docindex_dagster.core.tokenizer import TokenCounter
from docindex_dagster.documents.model import Block

_REPEATED = frozenset(["prose", "item", "term"])


def overlaps(parts: Sequence[Part], sizes: Sizes, count_tokens: TokenCounter) -> list[Block | None]:
    """The end of the part before that each part begins with: about `sizes.overlap` tokens, or None.

    Only a part that goes on with a split section repeats anything. Whole sentences are taken, or whole lines where
    the last sentence is too long.
    """
    found: list[Block | None] = [None] * len(parts)
    rooms = {
        index: min(sizes.overlap, sizes.maximum - part.tokens)
        for index, part in enumerate(parts)
        if part.number and part.number > 1
    }
    tails = {index: _prose_end(parts[index - 1], sizes.overlap) for index in rooms}
    for pattern in (SENTENCE_END, LINE_END):
        units = {index: _units(tail, pattern) for index, tail in tails.items() if tail and found[index] is None}
        counts = iter(count_tokens([unit.text for blocks in units.values() for unit in blocks]))
        for index, blocks in units.items():
            tokens = [next(counts) for _ in blocks]
            found[index] = _last_that_fit(blocks, tokens, rooms[index])
    return found


def _prose_end(part: Part, tokens: int) -> Block | None:
    """The prose that ends a part, as one block no shorter than needed, but never all of the part."""
    taken: list[Block] = []
    for piece in reversed(part.pieces[1:]):
        if piece.block.kind not in _REPEATED or tokens <= 0:
            break
        taken.insert(0, piece.block)
        tokens -= piece.tokens
    return _as_one(taken) if taken else None


def _as_one(blocks: Sequence[Block]) -> Block:
    text = "".join(block.text for block in blocks)
    return replace(blocks[0], text=text, end_line=blocks[-1].end_line, end_byte=blocks[-1].end_byte)


def _units(block: Block, pattern: re.Pattern[str]) -> list[Block]:
    ends = [match.end() for match in pattern.finditer(block.text)]
    return cut_block(block, sorted({*ends, len(block.text)} - {0}))


def _last_that_fit(units: Sequence[Block], tokens: Sequence[int], room: int) -> Block | None:
    """As many units from the end as have room, as one block."""
    sums = accumulate(reversed(tokens))
    count = sum(1 for _ in takewhile(lambda total: total <= room, sums))
    last = units[len(units) - count :]
    return _as_one(last) if any(unit.text.strip() for unit in last) else None
