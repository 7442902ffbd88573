"""Markdown of answers without links, images or HTML, for clients that render it themselves.

An answer may repeat what attackers wrote into a file, and a client that loads an image reveals its address to another
host. Syntax that docindex's own page shows as text is therefore escaped here, and URLs become code.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, TypeAlias

from markdown_it import MarkdownIt

from docindex_dagster.answering.markdown import MARK

_GROWTH = 8  # rescan held-back text only after it has grown by an eighth, to avoid quadratic time
# The start of a line. Text after it cannot change whether the line belongs to a code block.
_OPENING = re.compile(r"[\s>*+\-_=#~|:.()\d]*`*")
_TICKS = re.compile("`+")
_SYNTAX = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<ticks>`+)"
    rf"|{MARK.pattern}"
    r"|(?P<opening>\[|<(?=[A-Za-z/!?])|(?<=[\d ]\])[(:])"  # also after a mark, which would become a link
    r"|(?P<address>(?<=:)//[^\s`<|]*|(?<=\b[Ww]{3})\.[^\s`<|]*)"
)
_UNFINISHED = re.compile(r"(?:\\|<|(?<=:)/|\[[ \d,]{0,40})\Z")
_MAX_UNFINISHED = 50
_TRAILING_PUNCTUATION = ".,;:!?*_'\")]}"  # if it ends with them
_PIPE = re.compile(r"(?<!\\)(?:\\\\)*\|")
_LIVE = re.compile(r"\[|<|//|www\.", re.IGNORECASE)


_CodeState: TypeAlias = Literal["no", "opening", "yes"]


@cache
def _blocks() -> MarkdownIt:
    """Return a parser for CommonMark's block structure only."""
    parser = MarkdownIt("commonmark", {"html": False}).disable("reference")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


@dataclass(slots=True, eq=False)
class LinkFilter:
    """Incremental escaper of an answer. The output does not depend on how the answer is split into pieces."""

    _pending: str = ""  # the block being written, from its first line
    _before: int = 0  # the number of answer characters before it
    _codes: list[_CodeState] = field(default_factory=list)  # whether each of its lines is in a fenced code block
    _line: int = 0  # the number of the next line to show
    _start: int = 0  # the start of that line
    _shown: int = 0  # the end of the shown text
    _in_doubt: bool = False  # whether the line contains code that a table would split
    _parsed: int = 0  # the number of characters parsed
    _scanned: int = 0  # length at which rescanning the line may succeed
    _added: list[int] = field(default_factory=list)  # the answer offsets before which characters were added

    def feed(self, piece: str) -> str:
        """Add a piece of the answer and return the text that can be shown now."""
        self._pending += piece.replace("\r", " ")
        return self._show(is_end=False)

    def finish(self) -> str:
        """Mark the end of the answer and return the rest of the text."""
        return self._show(is_end=True)

    def shown_range(self, start: int, end: int) -> tuple[int, int]:
        """Map the range [start, end) of the answer to the shown text."""
        return start + bisect_right(self._added, start), end + bisect_right(self._added, end - 1)

    def _show(self, *, is_end: bool) -> str:
        shown: list[str] = []
        while True:
            end = self._pending.find("\n", self._start)
            is_complete = end >= 0 or is_end
            line = self._pending[self._start : end if end >= 0 else None]
            if not self._is_known(line, is_complete=is_complete, is_end=is_end):
                break
            if (code := self._codes[self._line]) == "no":
                shown.append(self._escape(line, is_complete=is_complete))
            else:
                text = line[self._shown - self._start :]
                # With a pipe, some clients would read the line as the first row of a table.
                shown.append(text.replace("|", " ") if code == "opening" else text)
                self._shown = self._start + len(line)
            if end < 0:
                break
            shown.append("\n")
            self._start = self._shown = self._start + len(line) + 1
            self._line, self._in_doubt, self._scanned = self._line + 1, False, 0
        return "".join(shown)

    def _is_known(self, line: str, *, is_complete: bool, is_end: bool) -> bool:
        """Return whether it is known if the line is code. Parse the block once enough of it is there."""
        if self._line < len(self._codes):
            return True
        opening = _OPENING.match(line)
        is_open = opening is not None and opening.end() < len(line) and "`" not in opening[0]
        if not (is_complete or is_open):
            return False
        if not is_end and len(self._pending) < self._parsed + self._parsed // _GROWTH:
            return False
        tokens = _blocks().parse(self._pending)
        lines = self._pending.split("\n")
        codes: list[_CodeState] = ["no"] * len(lines)
        for token in tokens:
            if token.type == "fence" and token.map:
                first, after = token.map[0], min(token.map[1], len(lines))
                codes[first] = "opening"
                codes[first + 1 : after] = ["yes"] * (after - first - 1)
        # The last line may still be incomplete.
        self._codes = codes if is_end or self._line == len(lines) - 1 else codes[:-1]
        block_starts = (token.map[0] for token in tokens if token.level == 0 and token.map)
        self._drop(max((first for first in block_starts if first <= self._line), default=0), lines)
        self._parsed = len(self._pending)
        return True

    def _drop(self, count: int, lines: list[str]) -> None:
        """Drop lines that have been shown."""
        size = sum(len(line) + 1 for line in lines[:count])
        self._pending, self._codes = self._pending[size:], self._codes[count:]
        self._before += size
        self._start, self._shown, self._line = self._start - size, self._shown - size, self._line - count

    def _escape(self, line: str, *, is_complete: bool) -> str:
        """Return the part of a line outside code that can be shown now."""
        if not is_complete and len(line) < self._scanned:
            return ""
        at, pieces = self._shown - self._start, []
        added, limit = self._additions(line, at, is_complete=is_complete)
        for position, text in (*added, (limit, "")):
            pieces += [line[at:position], text]
            self._added += [self._before + self._start + position] * len(text)
            at = position
        self._shown = self._start + limit
        self._scanned = len(line) + (len(line) - limit) // _GROWTH
        return "".join(pieces)

    def _additions(self, line: str, at: int, *, is_complete: bool) -> tuple[list[tuple[int, str]], int]:
        """Return what to insert before which characters of a line from `at` on, and the end of the certain part."""
        added: list[tuple[int, str]] = []
        limit, runs = len(line), _BacktickRuns(line)
        if not is_complete and (cut := _UNFINISHED.search(line, max(at, limit - _MAX_UNFINISHED))):
            limit = cut.start()
        while (found := _SYNTAX.search(line, at)) and found.start() < limit:
            (start, end), kind = found.span(), found.lastgroup
            if end > limit or (end == len(line) and kind in {"ticks", "address"} and not is_complete):
                return added, start
            at = end
            if kind == "ticks":
                close = runs.end(start, end)
                if not is_complete and close in {None, len(line)}:
                    return added, start
                if close is not None and self._is_code(line[end:close]):
                    at = close
                else:
                    added += [(tick, "\\") for tick in range(start, end)]
            else:
                added += _neutralize(line, start, end, kind)
        return added, max(limit, at)

    def _is_code(self, text: str) -> bool:
        """Return whether a text is code even for clients that read the line as a table row, where pipes end cells."""
        self._in_doubt = self._in_doubt or _PIPE.search(text) is not None
        return not self._in_doubt or _LIVE.search(text) is None


def _neutralize(line: str, start: int, end: int, kind: str | None) -> list[tuple[int, str]]:
    """Return what to insert so that the characters [start, end) of a line do not form a link."""
    if kind == "opening":
        return [(start, "\\")]
    if kind == "address" and (after := start + len(line[start:end].rstrip(_TRAILING_PUNCTUATION))) > start + 1:
        return [(start, "`"), (after, "` " if line[after : after + 1] == "`" else "`")]
    return []


class _BacktickRuns:
    """The runs of backticks in a line, searched for only once."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._ends: dict[int, list[int]] | None = None

    def end(self, start: int, end: int) -> int | None:
        """Return the end of the code that the run [start, end) opens; None if no run of that length follows."""
        if self._ends is None:
            self._ends = {}
            for run in _TICKS.finditer(self._line, start):
                self._ends.setdefault(len(run[0]), []).append(run.end())
        ends = self._ends.get(end - start, [])
        after = bisect_right(ends, end)
        return ends[after] if after < len(ends) else None
