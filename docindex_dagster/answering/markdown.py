"""Answers are Markdown, in which `[n]` and `[1, 2]` are citation marks: one grammar finds them and renders them.

In it nothing is a link, a picture or HTML: such text stays text. What stands in code is never parsed, so no mark is
found there; neither is `x[1]`, a subscript. Marks are found while an answer is written, the same ones however its text
is split into pieces: a block is read when a later one has begun, since until then any line may change what it is.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from docindex_dagster.search.cancellation import check_waiting

CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", re.DOTALL)  # of one block: its second group is the code
CITATION = "citation"  # the type of a mark's token
MARK = re.compile(r"\[ *[0-9]{1,3}(?: *, *[0-9]{1,3})* *\]")  # no years
_CALL = re.compile(r"\w\([^()\n]{0,200}\)$")
_LONGEST_CALL = 210
# Three letters or more, none but the first of them large, that are no part of a name of code.
_WORD = re.compile(r"(?:^|(?<=[\s(\[\"'“„«*—–-]))[^\W\d_](?:(?![A-Z])[^\W\d_]){2,}$")  # noqa: RUF001
_LONGEST_WORD = 60
_GOES_ON_AS_PROSE = re.compile(r"(?:\[ *[0-9]{1,3}[^\[\]]{0,40}\])*[.,;:!?)\"'”»*]*(?:\s|$)")
_UNCASED = ("Lo", "Lm")  # letters of scripts in which names of code are not written, and some that have no spaces
_CELLS = ("td_open", "th_open")
LONGEST_ROW = 2000  # characters left of a cell that are kept: no claim is longer
_MAKES_LINKS = ("reference", "link", "image", "autolink")
_GROWTH = 8  # a text is parsed again when an eighth has come: an answer of one long block costs no quadratic time
_LONGEST = 2000  # characters of a claim
_BLANK = "\0"  # replaces each character of a mark
_HIDDEN = "X"  # replaces each character of code: no sentence ends in it, but one may begin with it
# Behind it what begins the next one; marks in between belong to what they follow. "e.g." and initials end none.
_END = re.compile(r"(?<!\b\w)[.!?。！？][\"'”’)\]*_]*[\s\0]+(?=[\"'“‘(*_`]*[^\W\d_a-z])|[。！？]\0*")  # noqa: RUF001
_LINES = re.compile(r"(?:\blines?\s+|:)(\d{1,6})(?:\s*[-–]\s*(\d{1,6}))?\b", re.IGNORECASE)  # noqa: RUF001


@dataclass(frozen=True, slots=True)
class Spot:
    """A mark within the content of a block, and where it stands in the whole text."""

    numbers: tuple[int, ...]
    start: int
    end: int
    position: int  # in the text
    token: Token


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, heading, cell of a table or piece of code.

    Attributes:
        content: its text, without what marks it as a list item or quote.
        marks: in their order; none in code.
        is_code: whether it is a fenced or indented block of code.
        before: the end of what the cells of a table's row hold that are left of it.
    """

    content: str
    marks: tuple[Spot, ...] = ()
    is_code: bool = False
    before: str = ""


@cache
def parser() -> MarkdownIt:
    """CommonMark with tables and citation marks, without links, pictures and HTML."""
    made = stoppable(MarkdownIt("commonmark", {"html": False})).enable("table").disable(list(_MAKES_LINKS))
    made.inline.ruler.before("emphasis", CITATION, _citation)
    made.add_render_rule(CITATION, _as_it_stands)
    return made


def stoppable(made: MarkdownIt) -> MarkdownIt:
    """Let a parser stop, with a QueryError, once nobody waits for what it parses."""
    made.core.ruler.at("inline", _inline)
    return made


def plain_lines(text: str) -> str:
    """The same with line ends of Unix, every character at its position."""
    return text.replace("\r\n", " \n").replace("\r", "\n").replace("\0", "\ufffd")


def last_block(tokens: Sequence[Token]) -> int:
    """The line, from 0, at which the last block begins: no line after it changes what stands before."""
    return max((token.map[0] for token in tokens if token.level == 0 and token.map), default=0)


def blocks(tokens: Sequence[Token], text: str) -> Iterator[Block]:
    """The blocks of a parsed text that hold no others, in their order."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    row, cursor, before, is_cell = 0, 0, "", False
    for token in tokens:
        check_waiting()
        match token.type:
            case "fence" | "code_block":
                yield Block(token.content, is_code=True)
            case "tr_open" if token.map:
                row, cursor, before = token.map[0], 0, ""
            case "inline" if is_cell:
                places, cursor = _cell(token.content, lines[row], cursor)
                yield _block(token, [starts[row] + place for place in places], text, before)
                before = f"{before} {MARK.sub('', token.content)}".strip()[-LONGEST_ROW:]
            case "inline" if token.map:
                yield _block(token, _places(token.content, lines, starts, token.map[0]), text, "")
        is_cell = token.type in _CELLS


def _inline(state: StateCore) -> None:
    """What markdown-it does for each block, which takes most of its time."""
    for token in state.tokens:
        if token.type == "inline":
            check_waiting()
            token.children = token.children or []
            state.md.inline.parse(token.content, state.md, state.env, token.children)


def _as_it_stands(_: RendererProtocol, tokens: Sequence[Token], at: int, *__: object) -> str:
    return tokens[at].content  # brackets, digits, commas and spaces alone


def _block(token: Token, places: Sequence[int], text: str, before: str) -> Block:
    spots = (_spot(child, places) for child in token.children or () if child.type == CITATION)
    right = tuple(spot for spot, mark in spots if text.startswith(mark, spot.position))
    return Block(token.content, right, before=before)


def _spot(token: Token, places: Sequence[int]) -> tuple[Spot, str]:
    start: int = token.meta["start"]
    numbers = tuple(int(number) for number in re.findall("[0-9]+", token.content))
    return Spot(numbers, start, start + len(token.content), places[start], token), token.content


def _places(content: str, lines: Sequence[str], starts: Sequence[int], first_line: int) -> list[int]:
    """The position of each character of a paragraph, whose lines lost what marks a list item or quote.

    Lines that are blank for Python, and not for Markdown, are not in the content where it begins with them.
    """
    found: list[int] = []
    rows = ((lines[at], starts[at]) for at in range(first_line, len(lines)))
    for part in content.split("\n"):
        body = part.strip()
        line, start = next(((line, start) for line, start in rows if body in line), ("", 0))
        first = start + max(line.rfind(body), 0) - (len(part) - len(part.lstrip()))
        found += range(first, first + len(part) + 1)
    return found


def _cell(content: str, line: str, cursor: int) -> tuple[list[int], int]:
    """The same of a cell, in whose content a pipe has no backslash, and where the next cell may begin."""
    found: list[int] = []
    at = line.find(content, cursor)
    if at < 0:
        at = max(line.find(content.replace("|", r"\|"), cursor), 0)
    for character in content:
        at += character == "|" and line.startswith(r"\|", at)
        found.append(at)
        at += 1
    return [*found, at], max(cursor, at)


def _citation(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 as rules of markdown-it are called
    found = MARK.match(state.src, state.pos)
    if found is None or _is_subscript(state, found.end()):
        return False
    if not silent:
        token = state.push(CITATION, "", 0)
        token.content, token.meta = found[0], {"start": state.pos}
    state.pos = found.end()
    return True


def _is_subscript(state: StateInline, end: int) -> bool:
    """Whether a bracket that ends there stands right behind a name, a call or another bracket that is no mark."""
    before = state.src[state.pos - 1 : state.pos]
    if before == "]":
        return bool(state.pending) or not state.tokens or state.tokens[-1].type != CITATION
    if before == ")":
        return _CALL.search(state.src, max(0, state.pos - _LONGEST_CALL), state.pos) is not None
    if before != "_" and not (before.isalnum() and unicodedata.category(before) not in _UNCASED):
        return False
    # Behind a word of prose it is a mark: many models leave out the space.
    is_word = _WORD.search(state.src, max(0, state.pos - _LONGEST_WORD), state.pos) is not None
    return not (is_word and _GOES_ON_AS_PROSE.match(state.src, end))


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
        self._begins_at = 0  # offset of the pending text in the answer
        self._pending = ""
        self._parsed = 0  # characters of the pending text
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
