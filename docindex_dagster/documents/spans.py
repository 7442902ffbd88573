"""Documents that are kept as they are: their blocks tile the text without gap or overlap."""

from collections.abc import Sequence
from dataclasses import dataclass

from docindex_dagster.documents.model import Block, BlockKind


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
