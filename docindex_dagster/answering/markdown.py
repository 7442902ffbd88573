"""Grammar of answers: Markdown in which `[n]` and `[1, 2]` are citation marks, used to find and to render the marks.

Links, images and HTML stay plain text. Code is never parsed, so it contains no marks; neither is the subscript `x[1]`
a mark. Marks are found while an answer is written, and do not depend on how its text is split into pieces. A block is
read only when a later one has begun, since until then any line may change its meaning.
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

CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", re.DOTALL)  # within one block; group 2 is the code
CITATION = "citation"  # the type of a mark's token
MARK = re.compile(r"\[ *[0-9]{1,3}(?: *, *[0-9]{1,3})* *\]")  # at most three digits, to exclude years
_CALL = re.compile(r"\w\([^()\n]{0,200}\)$")
_MAX_CALL = 210
# Words of at least three letters, lower case after the first, that are not part of an identifier.
_WORD = re.compile(r"(?:^|(?<=[\s(\[\"'“„«*—–-]))[^\W\d_](?:(?![A-Z])[^\W\d_]){2,}$")  # noqa: RUF001
_MAX_WORD = 60
_CONTINUES_AS_PROSE = re.compile(r"(?:\[ *[0-9]{1,3}[^\[\]]{0,40}\])*[.,;:!?)\"'”»*]*(?:\s|$)")
_UNCASED = ("Lo", "Lm")  # scripts without case, in which identifiers are not written; some have no spaces
_CELLS = ("td_open", "th_open")
MAX_ROW = 2000  # characters kept from the cells to the left, since no claim is longer
_LINK_RULES = ("reference", "link", "image", "autolink")
_GROWTH = 8  # parse again only after the text has grown by an eighth, to avoid quadratic time on one long block
_MAX_CLAIM = 2000  # characters per claim
_BLANK = "\0"  # replaces each character of a mark
_MASK = "X"  # replaces each character of code: a sentence may start with it but not end in it
# The end of a sentence, up to the start of the next one. Marks in between belong to the former. "e.g." and initials
# do not end a sentence.
_END = re.compile(r"(?<!\b\w)[.!?。！？][\"'”’)\]*_]*[\s\0]+(?=[\"'“‘(*_`]*[^\W\d_a-z])|[。！？]\0*")  # noqa: RUF001
_LINES = re.compile(r"(?:\blines?\s+|:)(\d{1,6})(?:\s*[-–]\s*(\d{1,6}))?\b", re.IGNORECASE)  # noqa: RUF001


@dataclass(frozen=True, slots=True)
class BlockMark:
    """A mark within the content of a block, and its position in the answer."""

    numbers: tuple[int, ...]
    start: int
    end: int
    position: int  # in the answer
    token: Token


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, heading, table cell or code block.

    Attributes:
        content: its text, without list and quote markers.
        marks: its marks, in order; empty for code.
        is_code: whether it is a fenced or indented code block.
        before: the end of the text in the table cells to its left.
    """

    content: str
    marks: tuple[BlockMark, ...] = ()
    is_code: bool = False
    before: str = ""


@cache
def parser() -> MarkdownIt:
    """Return a parser for CommonMark with tables and citation marks, without links, images and HTML."""
    markdown = stoppable(MarkdownIt("commonmark", {"html": False})).enable("table").disable(list(_LINK_RULES))
    markdown.inline.ruler.before("emphasis", CITATION, _citation)
    markdown.add_render_rule(CITATION, _render_verbatim)
    return markdown


def stoppable(markdown: MarkdownIt) -> MarkdownIt:
    """Let a parser stop with a QueryError once no caller waits for its result."""
    markdown.core.ruler.at("inline", _inline)
    return markdown


def plain_lines(text: str) -> str:
    """Return a text with Unix line endings and every other character at the same position."""
    return text.replace("\r\n", " \n").replace("\r", "\n").replace("\0", "\ufffd")


def last_block(tokens: Sequence[Token]) -> int:
    """Return the first line, from 0, of the last block. Later lines cannot change the blocks before it."""
    return max((token.map[0] for token in tokens if token.level == 0 and token.map), default=0)


def blocks(tokens: Sequence[Token], text: str) -> Iterator[Block]:
    """Yield the blocks of a parsed text that contain no other blocks, in order."""
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
                positions, cursor = _cell(token.content, lines[row], cursor)
                yield _block(token, [starts[row] + position for position in positions], text, before)
                before = f"{before} {MARK.sub('', token.content)}".strip()[-MAX_ROW:]
            case "inline" if token.map:
                yield _block(token, _positions(token.content, lines, starts, token.map[0]), text, "")
        is_cell = token.type in _CELLS


def _inline(state: StateCore) -> None:
    """Parse each block like markdown-it does, with a check for cancellation, since this takes most of the time."""
    for token in state.tokens:
        if token.type == "inline":
            check_waiting()
            token.children = token.children or []
            state.md.inline.parse(token.content, state.md, state.env, token.children)


def _render_verbatim(_: RendererProtocol, tokens: Sequence[Token], at: int, *__: object) -> str:
    return tokens[at].content  # only brackets, digits, commas and spaces


def _block(token: Token, positions: Sequence[int], text: str, before: str) -> Block:
    found = (_block_mark(child, positions) for child in token.children or () if child.type == CITATION)
    marks = tuple(mark for mark, content in found if text.startswith(content, mark.position))
    return Block(token.content, marks, before=before)


def _block_mark(token: Token, positions: Sequence[int]) -> tuple[BlockMark, str]:
    start: int = token.meta["start"]
    numbers = tuple(int(number) for number in re.findall("[0-9]+", token.content))
    return BlockMark(numbers, start, start + len(token.content), positions[start], token), token.content


def _positions(content: str, lines: Sequence[str], starts: Sequence[int], first_line: int) -> list[int]:
    """Return the position of each character of a paragraph, whose lines have lost their list and quote markers.

    Lines that are blank to Python but not to Markdown are missing from the content if it starts with them.
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
    """Return the same for a table cell, whose escaped pipes lost their backslash, and where the next cell may begin."""
    found: list[int] = []
    at = line.find(content, cursor)
    if at < 0:
        at = max(line.find(content.replace("|", r"\|"), cursor), 0)
    for character in content:
        at += character == "|" and line.startswith(r"\|", at)
        found.append(at)
        at += 1
    return [*found, at], max(cursor, at)


def _citation(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 the signature of markdown-it's rules
    found = MARK.match(state.src, state.pos)
    if found is None or _is_subscript(state, found.end()):
        return False
    if not silent:
        token = state.push(CITATION, "", 0)
        token.content, token.meta = found[0], {"start": state.pos}
    state.pos = found.end()
    return True


def _is_subscript(state: StateInline, end: int) -> bool:
    """Return whether the bracket follows an identifier, a call, or another bracket that is not a mark."""
    before = state.src[state.pos - 1 : state.pos]
    if before == "]":
        return bool(state.pending) or not state.tokens or state.tokens[-1].type != CITATION
    if before == ")":
        return _CALL.search(state.src, max(0, state.pos - _MAX_CALL), state.pos) is not None
    if before != "_" and not (before.isalnum() and unicodedata.category(before) not in _UNCASED):
        return False
    # After a word of prose it is a mark, because many models omit the space.
    is_word = _WORD.search(state.src, max(0, state.pos - _MAX_WORD), state.pos) is not None
    return not (is_word and _CONTINUES_AS_PROSE.match(state.src, end))


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence that a mark supports, or else the code block before the mark."""

    text: str
    code: str = ""

    @property
    def lines(self) -> tuple[int, int] | None:
        """The last range of lines that the sentence names, as first and last line."""
        found = [(int(first), int(last or first)) for first, last in _LINES.findall(self.text)]
        return found[-1] if found and found[-1][0] <= found[-1][1] else None


@dataclass(frozen=True, slots=True)
class Mark:
    """A citation mark: the range [start, end) of an answer, the numbers it names, and the claim it supports."""

    numbers: tuple[int, ...]
    start: int
    end: int
    claim: Claim


class MarkReader:
    """Incremental reader of an answer's marks."""

    def __init__(self) -> None:
        self._offset = 0  # the offset of the pending text in the answer
        self._pending = ""
        self._parsed = 0  # the number of pending characters already parsed
        self._code = ""  # the previous block, if it was code

    def feed(self, piece: str) -> list[Mark]:
        """Add a piece of the answer and return the marks that are now certain."""
        self._pending += piece
        complete = self._pending.rfind("\n") + 1
        if complete <= self._parsed + self._parsed // _GROWTH:
            return []
        self._parsed = complete
        text = plain_lines(self._pending[:complete])
        lines_before = last_block(parser().parse(text))
        return self._read(sum(len(line) + 1 for line in text.split("\n")[:lines_before]))

    def finish(self) -> list[Mark]:
        """Mark the end of the answer and return the remaining marks."""
        return self._read(len(self._pending))

    def _read(self, count: int) -> list[Mark]:
        """Return the marks of the first `count` pending characters, which must be complete blocks."""
        text = plain_lines(self._pending[:count])
        found = list(self._marks(blocks(parser().parse(text), text)))
        self._offset += count
        self._pending = self._pending[count:]
        self._parsed = max(0, self._parsed - count)
        return found

    def _marks(self, found: Iterator[Block]) -> Iterator[Mark]:
        for block in found:
            spans = [(mark.start, mark.end) for mark in block.marks]
            # Skip the claims of the many blocks without marks.
            claims = claims_of(block.content, spans, before=block.before, code=self._code) if spans else ()
            for mark, claim in zip(block.marks, claims, strict=True):
                start = self._offset + mark.position
                yield Mark(mark.numbers, start, start + mark.end - mark.start, claim)
            self._code = block.content if block.is_code else ""


def marks_of(text: str) -> list[Mark]:
    """Return all marks of an answer."""
    reader = MarkReader()
    return [*reader.feed(text), *reader.finish()]


def claims_of(content: str, marks: Sequence[tuple[int, int]], *, before: str = "", code: str = "") -> Iterator[Claim]:
    """Yield the claim of each mark in a block.

    The claim is the part of the sentence before the mark. If that is empty, it is the sentence before; if there is
    none, as in “[1] says”, the mark's own sentence; and if the block has no text, the code block before it.

    Args:
        content: the content of the block.
        marks: the start and end of each mark.
        before: the text to the left of the block in a table row.
        code: the previous block, if it is code.
    """
    plain = f"{before} {_mask_marks(content, marks)}"
    ends = [0, *(found.end() for found in _END.finditer(CODE_SPAN.sub(_mask_code, plain))), len(plain)]
    for begin, _ in marks:
        start = len(before) + 1 + begin
        at = min(bisect_right(ends, start), len(ends) - 1) - 1
        candidates = (
            text
            for first, last in ((ends[at], start), (ends[max(at - 1, 0)], ends[at]), (ends[at], ends[at + 1]))
            if _says_something(text := _tidy(plain[max(first, last - _MAX_CLAIM) : last]))
        )
        text = next(candidates, "")
        yield Claim(text, "" if text else code.strip()[:_MAX_CLAIM])


def _mask_code(code: re.Match[str]) -> str:
    return _MASK * len(code[0])


def _mask_marks(content: str, marks: Sequence[tuple[int, int]]) -> str:
    ends = [0, *(end for _, end in marks)]
    masked = [content[end:start] + _BLANK * (until - start) for end, (start, until) in zip(ends, marks, strict=False)]
    return "".join([*masked, content[ends[-1] :]])


def _says_something(text: str) -> bool:
    return any(map(str.isalnum, text))


def _tidy(text: str) -> str:
    return " ".join(text.replace(_BLANK, " ").split())
