"""Rules for markdown-it by which it reads the blocks of MDX, where indentation and angle brackets mean nothing."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock

_UNDERLINE = re.compile(r"(?:=+|-+)[ \t]*")
_ASK_ONLY = True  # a rule's last argument: whether it only says if it holds
_COMMENTS = (("<!--", "-->"), ("{/*", "*/"))


def use_mdx(parser: "MarkdownIt") -> None:
    """Change a parser's rules to those of MDX, and of the HTML comments that its tools allow."""
    parser.disable(["code", "html_block", "lheading"])
    parser.block.ruler.at("paragraph", _paragraph)
    parser.block.ruler.before("fence", "comment", _comment, {"alt": ["paragraph", "reference", "blockquote", "list"]})


def _comment(state: "StateBlock", first: int, last: int, silent: bool) -> bool:  # noqa: FBT001 - a rule's signature
    """A comment that begins a line, with the fences and headings inside it."""
    start = state.bMarks[first] + state.tShift[first]
    closing = next((end for begin, end in _COMMENTS if state.src.startswith(begin, start)), None)
    if closing is None:
        return False
    if closing not in state.env:  # where the last comment ends is found once: many that are never closed stay cheap
        state.env[closing] = state.src.rfind(closing)
    if start > state.env[closing]:
        return False
    if silent:
        return True
    end = state.src.index(closing, start)
    line = first
    while line < last and state.eMarks[line] < end:
        line += 1
    state.line = min(line + 1, last)
    state.push("comment", "", 0).map = [first, state.line]
    return True


def _paragraph(state: "StateBlock", first: int, last: int, silent: bool) -> bool:  # noqa: ARG001, FBT001 - a rule's signature
    """A paragraph or an underlined heading, as in Markdown but for one thing.

    There, a line that is indented by four or more goes on with the paragraph before it whatever it holds, since it
    could only be code. Here a fence deep inside components is a fence.
    """
    end, level = _end_of_paragraph(state, first)
    content = state.getLines(first, end, state.blkIndent, keepLastLF=False).strip()
    state.line = end + 1 if level else end
    name, tag = ("heading", f"h{level}") if level else ("paragraph", "p")
    state.push(f"{name}_open", tag, 1).map = [first, state.line]
    inline = state.push("inline", "", 0)
    inline.content, inline.map, inline.children = content, [first, end], []
    state.push(f"{name}_close", tag, -1)
    return True


def _end_of_paragraph(state: "StateBlock", first: int) -> tuple[int, int]:
    """The line after a paragraph, and the level of the heading that it is if that line underlines it, else 0."""
    terminators = state.md.block.ruler.getRules("paragraph")
    around, state.parentType = state.parentType, "paragraph"
    line, level = first + 1, 0
    while line < state.lineMax and not state.isEmpty(line):
        start = state.bMarks[line] + state.tShift[line]
        if state.sCount[line] >= state.blkIndent and _UNDERLINE.fullmatch(state.src, start, state.eMarks[line]):
            level = 1 if state.src[start] == "=" else 2
            break
        # A negative indentation marks a lazy line of a quote.
        if state.sCount[line] >= 0 and any(ends(state, line, state.lineMax, _ASK_ONLY) for ends in terminators):
            break
        line += 1
    state.parentType = around
    return line, level
