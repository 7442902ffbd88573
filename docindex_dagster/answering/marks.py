"""Citation marks found while an answer is written, the same ones however its text is split into pieces.

A block of Markdown is read when a later one has begun, since until then any line may change what it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from docindex_dagster.answering.claims import Claim, claims_of
from docindex_dagster.answering.markdown import Block, blocks, last_block, parser, plain_lines

_GROWTH = 8  # a text is parsed again when an eighth has come: an answer of one long block costs no quadratic time


@dataclass(frozen=True, slots=True)
class Mark:
    """A citation mark: the characters [start, end) of an answer, the numbers that it names, what it is to prove."""

    numbers: tuple[int, ...]
    start: int
    end: int
    claim: Claim


class MarkReader:
    """Reads an answer piece by piece."""

    def __init__(self) -> None:
        self._begins_at = 0  # where what is pending stands in the answer
        self._pending = ""
        self._parsed = 0  # characters of it
        self._code = ""  # the last block, if it was code

    def feed(self, piece: str) -> list[Mark]:
        """The next piece; the marks that are certain now."""
        self._pending += piece
        whole = self._pending.rfind("\n") + 1
        if whole <= self._parsed + self._parsed // _GROWTH:
            return []
        self._parsed = whole
        text = plain_lines(self._pending[:whole])
        lines_before = last_block(parser().parse(text))
        return self._read(sum(len(line) + 1 for line in text.split("\n")[:lines_before]))

    def finish(self) -> list[Mark]:
        """The answer has ended: the marks that are left."""
        return self._read(len(self._pending))

    def _read(self, count: int) -> list[Mark]:
        """The marks of so many characters, which are whole blocks."""
        text = plain_lines(self._pending[:count])
        found = list(self._marks(blocks(parser().parse(text), text)))
        self._begins_at += count
        self._pending = self._pending[count:]
        self._parsed = max(0, self._parsed - count)
        return found

    def _marks(self, found: Iterator[Block]) -> Iterator[Mark]:
        for block in found:
            spans = [(spot.start, spot.end) for spot in block.marks]
            # Nothing is worked out for the many blocks without a mark.
            claims = claims_of(block.content, spans, before=block.before, code=self._code) if spans else ()
            for spot, claim in zip(block.marks, claims, strict=True):
                start = self._begins_at + spot.position
                yield Mark(spot.numbers, start, start + spot.end - spot.start, claim)
            self._code = block.content if block.is_code else ""


def marks_of(text: str) -> list[Mark]:
    """All marks of an answer."""
    reader = MarkReader()
    return [*reader.feed(text), *reader.finish()]
