"""What a citation mark is to prove: the sentence before it, by its form alone."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_BLANK = "\0"  # stands for each character of a mark
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
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


def claim_at(content: str, marks: Sequence[tuple[int, int]], start: int, *, before: str = "", code: str = "") -> Claim:
    """What the mark at `start` of a block is to prove.

    It is what its sentence says before it; where that is nothing, the sentence before; where there is none, as in
    “[1] says”, its own; where the block says nothing at all, the code that stands before it.

    Args:
        content: of the block.
        marks: where each of its marks begins and ends.
        start: where this one begins.
        before: what is left of the block in a row of a table.
        code: the block before, if it is code.
    """
    plain, start = f"{before} {_blanked(content, marks)}", len(before) + 1 + start
    ends = [0, *(found.end() for found in _END.finditer(_CODE.sub(_hidden, plain))), len(plain)]
    at = max(index for index, end in enumerate(ends[:-1]) if end <= start)
    own, earlier = plain[ends[at] : ends[at + 1]], plain[ends[at - 1] : ends[at]] if at else ""
    says = (_tidy(text) for text in (plain[ends[at] : start], earlier, own) if _says_something(text))
    text = next(says, "")
    return Claim(text, "" if text else code.strip())


def _hidden(code: re.Match[str]) -> str:
    return _HIDDEN * len(code[0])


def _blanked(content: str, marks: Iterable[tuple[int, int]]) -> str:
    for start, end in marks:
        content = content[:start] + _BLANK * (end - start) + content[end:]
    return content


def _says_something(text: str) -> bool:
    return any(map(str.isalnum, text))


def _tidy(text: str) -> str:
    return " ".join(text.replace(_BLANK, " ").split())
