"""What a citation mark is to prove: the sentence before it, by its form alone."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from docindex_dagster.answering.markdown import CODE_SPAN

_LONGEST = 2000  # characters of a claim
_BLANK = "\0"  # stands for each character of a mark
_HIDDEN = "X"  # stands for each character of code, in which no sentence ends, and with which one may begin
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


def claims_of(content: str, marks: Sequence[tuple[int, int]], *, before: str = "", code: str = "") -> Iterator[Claim]:
    """What each mark of a block is to prove.

    It is what its sentence says before it; where that is nothing, the sentence before; where there is none, as in
    “[1] says”, its own; where the block says nothing at all, the code that stands before it.

    Args:
        content: of the block.
        marks: where each begins and ends.
        before: what is left of the block in a row of a table.
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
