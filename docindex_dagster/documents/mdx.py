"""MDX loader: Markdown with the JavaScript removed.

Imports, exports, JSX tags, comments, and expressions that only name a value are removed, which leaves Markdown on the
same lines. Prose inside components, fences, code spans and literal text in expressions remain. Every search below takes
linear time in the size of the file.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace

from docindex_dagster.documents.markdown import as_document, markdown_blocks, protected_lines
from docindex_dagster.documents.model import Block, Document

_LINE_END = re.compile(r"\r\n?|\n")
_STATEMENT = re.compile(
    r"""import\s*(?:["'{*]|[\w$]+(?:\s*,\s*[{*]|\s+from\b))"""
    r"|export\s+(?:default|const|let|var|function|class|async)\b|export\s*[{*]"
)
_CANDIDATE = re.compile(r"[<{`\\]|^(?:import|export)\b", re.MULTILINE)
_BACKTICKS = re.compile(r"`+")
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_GAP = re.compile(r"(?<=\S) {2,}")
_BRACE = re.compile(r"[{}]")
_COMMENT = re.compile(r"(?P<html><!--)|\{\s*/\*")
_COMMENT_ENDS = {True: re.compile(r"-->"), False: re.compile(r"\*/\s*\}")}
_NAMED = re.compile(r"\{\s*[A-Za-z_$][\w$]*(?:\.[\w$]+)+\s*\}")  # an expression that names a value
# Literal text in an expression; a template literal remains as the code span that it resembles.
_LITERAL = re.compile(r"""\{\s*(?:(["'])(?P<text>(?:(?!\1)[^\\\n]){0,500})\1|(?P<code>`[^`$\\]{1,500}`))\s*\}""")
_TAG_NAME = re.compile(r"</?\s*(?:[A-Za-z_$][\w$.-]*)?")
_ATTRIBUTE = re.compile(r"\s+(?:[A-Za-z_$][\w$:.-]*(?:\s*=\s*)?)?")
_TAG_END = re.compile(r"\s*/?>")


def load_mdx(text: str) -> Document:
    """Read MDX. Line numbers are those of the file."""
    blocks = [_clean(block) for block in markdown_blocks(_without_javascript(text), mdx=True)]
    return as_document([block for block in blocks if block.text.strip()], transformed=True)


def _clean(block: Block) -> Block:
    """Return a block without the blank lines that the removed code left behind."""
    text = block.text.rstrip()
    first_line = block.start_line + text.count("\n", 0, len(text) - len(text.lstrip()))
    lines = text.split("\n")
    if block.kind != "code":
        lines = [_GAP.sub(" ", line.rstrip()) for line in lines if line.strip()]
    gap = "\n\n" if block.kind != "item" or _BLANK_LINE.search(block.text) else "\n"
    end_line = block.start_line + text.count("\n")
    text = "\n".join(lines) + gap
    return replace(block, text=text, start_line=first_line, end_line=end_line, start_byte=None, end_byte=None)


def _without_javascript(text: str) -> str:
    """Replace JavaScript with a space, or with nothing if the line is otherwise blank before it; newlines remain."""
    kept: list[str] = []
    end = 0
    is_line_blank = True
    for start, stop in [*_javascript(text), (len(text), len(text))]:
        before = text[end:start]
        line = before.rpartition("\n")[2]
        is_line_blank = (is_line_blank or line != before) and not line.strip()
        kept += [before, "" if is_line_blank else " ", *_LINE_END.findall(text, start, stop)]
        is_line_blank = is_line_blank or "\n" in text[start:stop]
        end = stop
    return "".join(kept)


def _javascript(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of JavaScript, such as imports, tags and comments, in order."""
    protected = _protected_spans(text)
    braces = _matching_braces(text, protected)
    runs = _backtick_runs(text)
    position = 0
    for start, stop in [*protected, (len(text), len(text))]:
        comments = _Comments(text, start)
        while position < start:
            candidate = _CANDIDATE.search(text, position, start)
            if candidate is None:
                break
            found = candidate.start()
            literal = _LITERAL.match(text, found, start)
            if literal:
                inner = literal.span("text" if literal["code"] is None else "code")
                yield found, inner[0]
                yield inner[1], literal.end()
                position = literal.end()
                continue
            end = comments.end(found) or _javascript_end(text, found, start, braces)
            if end:
                yield found, end
            position = end or _past_code_span(text, found, runs)
        position = max(position, stop)


class _Comments:
    """A search for comment ends up to a limit. After an unclosed comment, it skips later comments of that kind."""

    def __init__(self, text: str, limit: int) -> None:
        self._text = text
        self._limit = limit
        self._unclosed: set[bool] = set()

    def end(self, start: int) -> int | None:
        """Return the end of the comment that starts at `start`, or None."""
        opening = _COMMENT.match(self._text, start, self._limit)
        if opening is None or (is_html := opening["html"] is not None) in self._unclosed:
            return None
        closing = _COMMENT_ENDS[is_html].search(self._text, opening.end(), self._limit)
        if closing is None:
            self._unclosed.add(is_html)
        return closing.end() if closing else None


def _javascript_end(text: str, start: int, limit: int, braces: dict[int, int]) -> int | None:
    """Return the end of the JavaScript that starts at `start`, or None if it is text."""
    if text[start] == "<":
        return _tag_end(text, start, limit, braces)
    if text[start] == "{":
        named = _NAMED.match(text, start, limit)
        return named.end() if named else None
    if _STATEMENT.match(text, start):
        return _statement_end(text, start, limit, braces)
    return None


def _statement_end(text: str, start: int, limit: int, braces: dict[int, int]) -> int:
    """Return the end of an import or export, which extends to the next blank line outside braces."""
    position = start
    while True:
        blank = _BLANK_LINE.search(text, position, limit)
        end = blank.start() if blank else limit
        brace = text.find("{", position, end)
        while brace != -1 and brace < end:
            position = braces.get(brace, brace + 1)
            brace = text.find("{", position, end)
        if position <= end or blank is None:
            return max(position, end)


def _tag_end(text: str, start: int, limit: int, braces: dict[int, int]) -> int | None:
    """Return the end of an opening, closing or self-closing JSX tag."""
    name = _TAG_NAME.match(text, start, limit)
    position = name.end() if name else start
    while True:
        end = _TAG_END.match(text, position, limit)
        if end:
            return end.end()
        attribute = _ATTRIBUTE.match(text, position, limit)
        if attribute is None:
            return None
        position = attribute.end()
        value = text[position : position + 1]
        if value in {'"', "'"}:
            position = text.find(value, position + 1, limit) + 1
        elif value == "{":
            position = braces.get(position, 0)
        elif text[position - 1] == "=":
            return None
        if not 0 < position <= limit:
            return None


def _past_code_span(text: str, start: int, runs: dict[int, list[int]]) -> int:
    """Return where to continue after a character that starts no JavaScript: after the code span if it opens one."""
    if text[start] == "\\":
        return start + 2
    ticks = _BACKTICKS.match(text, start)
    if ticks is None:
        return start + 1
    same_length = runs[len(ticks[0])]
    next_at = bisect_left(same_length, ticks.end())
    if next_at == len(same_length):
        return ticks.end()
    close = same_length[next_at]
    return ticks.end() if _BLANK_LINE.search(text, ticks.end(), close) else close + len(ticks[0])


def _backtick_runs(text: str) -> dict[int, list[int]]:
    """Return the start positions of runs of backticks, by length."""
    runs: dict[int, list[int]] = {}
    for match in _BACKTICKS.finditer(text):
        runs.setdefault(len(match[0]), []).append(match.start())
    return runs


def _matching_braces(text: str, protected: list[tuple[int, int]]) -> dict[int, int]:
    """Map each opening brace that has a match outside fences to the position after its closing brace."""
    matching: dict[int, int] = {}
    opened: list[int] = []
    position = 0
    for start, stop in [*protected, (len(text), len(text))]:
        for brace in _BRACE.finditer(text, position, start):
            if brace[0] == "{":
                opened.append(brace.start())
            elif opened:
                matching[opened.pop()] = brace.end()
        position = stop
    return matching


def _protected_spans(text: str) -> list[tuple[int, int]]:
    """Return the character spans of the front matter and the fenced blocks."""
    starts = [0, *(match.end() for match in _LINE_END.finditer(text)), len(text)]
    last = len(starts) - 1
    return [(starts[min(first, last)], starts[min(end, last)]) for first, end in protected_lines(text)]
