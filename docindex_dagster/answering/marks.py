"""Citation marks found while an answer is written, the same ones however its text is split into pieces.

A block of Markdown is read when a later one has begun, since until then any line may change what it is.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from docindex_dagster.answering.markdown import CODE_SPAN, Block, blocks, last_block, parser, plain_lines

_GROWTH = 8  # a text is parsed again when an eighth has come: an answer of one long block costs no quadratic time
_LONGEST = 2000  # characters of a claim
_BLANK = "\0"  # replaces each character of a mark
_HIDDEN = "X"  # replaces each character of code: no sentence ends in it, but one may begin with it
# Behind it what begins the next one; marks in between belong to what they follow. "e.g." and initials end none.
_END = re.compile(r"(?<!\b\w)[.!?。！？][\"'”’)\]*_]*[\s\0]+(?=[\"'“‘(*_`]*[^\W\d_a-z])|[。！？]\0*")  # noqa: RUF001
_LINES = re.compile(r"(?:\blines?\s+|:)(\d{1,6})(?:\s*[-–]\s*(\d{1,6}))?\b", re.IGNORECASE)  # noqa: RUF001


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence, and the code that stands alone before the mark, if any does."""

    text: str
    code: str = ""

    @property
    def lines(self) -> tuple[int, int] | None:
        """The last lines of a file that it names, first and last."""
        found = [(int(first), int(last or first)) for first, last in _LINES.findall(self.text)]
        return found[-1] if found and found[-1][0] <= found[-1][1] else None


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


def claims_of(content: str, marks: Sequence[tuple[int, int]], *, before: str = "", code: str = "") -> Iterator[Claim]:
    """What each mark of a block is to prove.

    It is what its sentence says before it; where that is nothing, the sentence before; where there is none, as in
    “[1] says”, its own; where the block says nothing at all, the code that stands before it.

    Args:
        content: of the block.
        marks: where each begins and ends.
        before: the text to the left of the block, in a row of a table.
        code: the block before, if it is code.
    """
    plain = f"{before} {_blanked(content, marks)}"
    ends = [0, *(found.end() for found in _END.finditer(CODE_SPAN.sub(_hidden, plain))), len(plain)]
    for begin, _ in marks:
        start = len(before) + 1 + begin
        at = min(bisect_right(ends, start), len(ends) - 1) - 1
        says = (
            text
            for first, last in ((ends[at], start), (ends[max(at - 1, 0)], ends[at]), (ends[at], ends[at + 1]))
            if _says_something(text := _tidy(plain[max(first, last - _LONGEST) : last]))
        )
        text = next(says, "")
        yield Claim(text, "" if text else code.strip()[:_LONGEST])


def _hidden(code: re.Match[str]) -> str:
    return _HIDDEN * len(code[0])


def _blanked(content: str, marks: Sequence[tuple[int, int]]) -> str:
    ends = [0, *(end for _, end in marks)]
    kept = [content[end:start] + _BLANK * (until - start) for end, (start, until) in zip(ends, marks, strict=False)]
    return "".join([*kept, content[ends[-1] :]])


def _says_something(text: str) -> bool:
    return any(map(str.isalnum, text))


def _tidy(text: str) -> str:
    return " ".join(text.replace(_BLANK, " ").split())
