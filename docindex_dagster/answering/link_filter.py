"""Answers as Markdown in which nothing is a link, a picture or HTML, for clients that render it themselves.

An answer may repeat what attackers wrote into a file, and a client that loads a picture sends its address to another
host. So what the page shows as text is escaped here, and addresses become code.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, TypeAlias

from markdown_it import MarkdownIt

from docindex_dagster.answering.markdown import MARK

_GROWTH = 8  # what is held back is looked at again when an eighth has come, so that no text costs quadratic time
# The beginning of a line. Beyond it, what comes cannot change whether the line is part of a block of code.
_OPENING = re.compile(r"[\s>*+\-_=#~|:.()\d]*`*")
_TICKS = re.compile("`+")
_SYNTAX = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<ticks>`+)"
    rf"|{MARK.pattern}"
    r"|(?P<opening>\[|<(?=[A-Za-z/!?])|(?<=[\d ]\])[(:])"  # behind a mark as well, which would be a link
    r"|(?P<address>(?<=:)//[^\s`<|]*|(?<=\b[Ww]{3})\.[^\s`<|]*)"
)
_UNFINISHED = re.compile(r"(?:\\|<|(?<=:)/|\[[ \d,]{0,40})\Z")
_LONGEST_UNFINISHED = 50
_NOT_OF_ADDRESS = ".,;:!?*_'\")]}"  # where it ends with them
_PIPE = re.compile(r"(?<!\\)(?:\\\\)*\|")
_LIVE = re.compile(r"\[|<|//|www\.", re.IGNORECASE)


_Code: TypeAlias = Literal["no", "opening", "yes"]


@cache
def _blocks() -> MarkdownIt:
    """CommonMark's blocks alone."""
    made = MarkdownIt("commonmark", {"html": False}).disable("reference")
    made.core.ruler.enableOnly(["normalize", "block"])
    return made


@dataclass(slots=True, eq=False)
class LinkFilter:
    """Escapes an answer piece by piece; the text is the same however it is split."""

    _pending: str = ""  # the block that is being written, from its first line
    _before: int = 0  # characters of the answer before it
    _codes: list[_Code] = field(default_factory=list)  # of its lines: whether each is of a fenced block of code
    _line: int = 0  # the number of the line that is to be shown
    _start: int = 0  # where that begins
    _shown: int = 0  # up to where all is shown
    _in_doubt: bool = False  # whether the line has code that a table would split
    _parsed: int = 0  # characters that were parsed
    _scanned: int = 0  # characters of the line that were looked at in vain
    _added: list[int] = field(default_factory=list)  # the positions in the answer before which characters were added

    def feed(self, piece: str) -> str:
        """The next piece of the answer; what can be shown now."""
        self._pending += piece.replace("\r", " ")
        return self._show(is_end=False)

    def finish(self) -> str:
        """The answer has ended; what is left to be shown."""
        return self._show(is_end=True)

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Where the characters [start, end) of the answer are in what was shown."""
        return start + bisect_right(self._added, start), end + bisect_right(self._added, end - 1)

    def _show(self, *, is_end: bool) -> str:
        shown: list[str] = []
        while True:
            end = self._pending.find("\n", self._start)
            is_whole = end >= 0 or is_end
            line = self._pending[self._start : end if end >= 0 else None]
            if not self._is_known(line, is_whole=is_whole, is_end=is_end):
                break
            if (code := self._codes[self._line]) == "no":
                shown.append(self._escaped(line, is_whole=is_whole))
            else:
                text = line[self._shown - self._start :]
                # With a pipe, some clients take it for the first row of a table.
                shown.append(text.replace("|", " ") if code == "opening" else text)
                self._shown = self._start + len(line)
            if end < 0:
                break
            shown.append("\n")
            self._start = self._shown = self._start + len(line) + 1
            self._line, self._in_doubt, self._scanned = self._line + 1, False, 0
        return "".join(shown)

    def _is_known(self, line: str, *, is_whole: bool, is_end: bool) -> bool:
        """Whether it is known if a line is code; the block is parsed when enough of it has come."""
        if self._line < len(self._codes):
            return True
        opening = _OPENING.match(line)
        is_open = opening is not None and opening.end() < len(line) and "`" not in opening[0]
        if not (is_whole or is_open):
            return False
        if not is_end and len(self._pending) < self._parsed + self._parsed // _GROWTH:
            return False
        tokens = _blocks().parse(self._pending)
        lines = self._pending.split("\n")
        codes: list[_Code] = ["no"] * len(lines)
        for token in tokens:
            if token.type == "fence" and token.map:
                first, after = token.map[0], min(token.map[1], len(lines))
                codes[first] = "opening"
                codes[first + 1 : after] = ["yes"] * (after - first - 1)
        # Of the last line, not enough may have come.
        self._codes = codes if is_end or self._line == len(lines) - 1 else codes[:-1]
        begun = (token.map[0] for token in tokens if token.level == 0 and token.map)
        self._drop(max((first for first in begun if first <= self._line), default=0), lines)
        self._parsed = len(self._pending)
        return True

    def _drop(self, count: int, lines: list[str]) -> None:
        """Forget some lines, which are shown."""
        size = sum(len(line) + 1 for line in lines[:count])
        self._pending, self._codes = self._pending[size:], self._codes[count:]
        self._before += size
        self._start, self._shown, self._line = self._start - size, self._shown - size, self._line - count

    def _escaped(self, line: str, *, is_whole: bool) -> str:
        """What can be shown now of a line that is no code."""
        if not is_whole and len(line) < self._scanned:
            return ""
        at, pieces = self._shown - self._start, []
        added, limit = self._additions(line, at, is_whole=is_whole)
        for place, text in (*added, (limit, "")):
            pieces += [line[at:place], text]
            self._added += [self._before + self._start + place] * len(text)
            at = place
        self._shown = self._start + limit
        self._scanned = len(line) + (len(line) - limit) // _GROWTH
        return "".join(pieces)

    def _additions(self, line: str, at: int, *, is_whole: bool) -> tuple[list[tuple[int, str]], int]:
        """What is added before which characters of a line, from one on, and up to where that is certain."""
        added: list[tuple[int, str]] = []
        limit, runs = len(line), _Runs(line)
        if not is_whole and (cut := _UNFINISHED.search(line, max(at, limit - _LONGEST_UNFINISHED))):
            limit = cut.start()
        while (found := _SYNTAX.search(line, at)) and found.start() < limit:
            (start, end), kind = found.span(), found.lastgroup
            if end > limit or (end == len(line) and kind in {"ticks", "address"} and not is_whole):
                return added, start
            at = end
            if kind == "ticks":
                close = runs.end(start, end)
                if not is_whole and close in {None, len(line)}:
                    return added, start
                if close is not None and self._is_code(line[end:close]):
                    at = close
                else:
                    added += [(tick, "\\") for tick in range(start, end)]
            else:
                added += _defused(line, start, end, kind)
        return added, max(limit, at)

    def _is_code(self, text: str) -> bool:
        """Whether a text is code for clients that take the line for a row of a table, whose cells end at pipes, too."""
        self._in_doubt = self._in_doubt or _PIPE.search(text) is not None
        return not self._in_doubt or _LIVE.search(text) is None


def _defused(line: str, start: int, end: int, kind: str | None) -> list[tuple[int, str]]:
    """What is added to the characters [start, end) of a line, so that they are no link."""
    if kind == "opening":
        return [(start, "\\")]
    if kind == "address" and (after := start + len(line[start:end].rstrip(_NOT_OF_ADDRESS))) > start + 1:
        return [(start, "`"), (after, "` " if line[after : after + 1] == "`" else "`")]
    return []


class _Runs:
    """The runs of backticks of a line, which are looked for once."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._places: dict[int, list[int]] | None = None

    def end(self, start: int, end: int) -> int | None:
        """Where the code ends that the run [start, end) begins; None where no run of its length follows."""
        if self._places is None:
            self._places = {}
            for run in _TICKS.finditer(self._line, start):
                self._places.setdefault(len(run[0]), []).append(run.end())
        places = self._places.get(end - start, [])
        after = bisect_right(places, end)
        return places[after] if after < len(places) else None
