"""Markdown loader: CommonMark with tables and front matter, kept unchanged.

markdown-it finds the structure; only the line numbers of its tokens are used, and the text remains that of the file.
The blocks are the leaves of the token tree, so a fence inside a list is a separate block.

This module defines two extensions: the blocks of MDX, where indentation and angle brackets have no meaning, and
attribute lists after headings, as in kramdown, Pandoc, Python-Markdown and Docusaurus. `Install {#install .wide}` and
`Install {: #install }` are headings `Install` with the anchor `install`.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from docindex_dagster.documents.model import MAX_TITLE, Block, BlockKind, Document, Mark, build_sections, tile

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

_LINE_END = re.compile(r"\r\n?|\n")  # line ends as markdown-it recognizes them
_MARKUP = re.compile(r"[\\`*_\[\]<>!&]")
_FRONT_MATTER_TITLE = re.compile(r"^title:[ \t]*(?P<quote>[\"']?)(?P<title>\S.*?)(?P=quote)[ \t]*$", re.MULTILINE)
_BYTE_ORDER_MARK = "\ufeff"
_KINDS: dict[str, BlockKind] = {
    "front_matter": "front_matter",
    "heading_open": "heading",
    "paragraph_open": "prose",
    "fence": "code",
    "code_block": "code",
    "table_open": "table",
    "html_block": "prose",
    "hr": "prose",
}
_UNDERLINE = re.compile(r"(?:=+|-+)[ \t]*")
_CHECK_ONLY = True  # the last argument of a rule: only check whether it matches
_COMMENTS = (("<!--", "-->"), ("{/*", "*/"))
_MAX_ATTRIBUTES = 500  # characters of an attribute list


def use_heading_attributes(parser: "MarkdownIt") -> None:
    """Make a parser move the attribute list of each heading from its content to the attributes of its token."""
    parser.core.ruler.after("block", "heading_attributes", _heading_attributes)


def _heading_attributes(state: "StateCore") -> None:
    for index, token in enumerate(state.tokens):
        if token.type == "heading_open":
            inline = state.tokens[index + 1]
            inline.content, attributes = _split_attributes(inline.content)
            token.attrs.update(attributes)


def _split_attributes(heading: str) -> tuple[str, dict[str, str]]:
    """Return the text of a heading and the attributes after it, which may be empty."""
    from mdit_py_plugins.attrs.parse import ParseError, parse

    start = heading.rfind("{", -_MAX_ATTRIBUTES) if heading.endswith("}") else -1
    text = heading[: max(start, 0)]
    if not text[-1:].isspace():  # for example `/users/{id}`
        return heading, {}
    try:
        _, attributes = parse("{" + heading[start + 1 :].removeprefix(":"))
    except ParseError:
        return heading, {}
    return (text.rstrip(), attributes) if attributes else (heading, {})


def _use_mdx(parser: "MarkdownIt") -> None:
    """Apply the rules of MDX to a parser, and allow HTML comments, as MDX tools do."""
    parser.disable(["code", "html_block", "lheading"])
    parser.block.ruler.at("paragraph", _paragraph)
    parser.block.ruler.before("fence", "comment", _comment, {"alt": ["paragraph", "reference", "blockquote", "list"]})


def _comment(state: "StateBlock", first: int, last: int, silent: object) -> bool:
    """Match a comment at the start of a line, including the fences and headings inside it."""
    start = state.bMarks[first] + state.tShift[first]
    closing = next((end for begin, end in _COMMENTS if state.src.startswith(begin, start)), None)
    if closing is None:
        return False
    if closing not in state.env:  # search for the last end once, to keep many unclosed comments cheap
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


def _paragraph(state: "StateBlock", first: int, _last: int, _silent: object) -> bool:
    """Match a paragraph or an underlined heading, as in Markdown, with one difference.

    In Markdown, a line indented by four or more continues the paragraph before it whatever it contains, because it
    could only be code. In MDX, a fence deep inside components remains a fence.
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
    """Return the line after a paragraph, and its heading level if that line underlines it, otherwise 0."""
    terminators = state.md.block.ruler.getRules("paragraph")
    around, state.parentType = state.parentType, "paragraph"
    line, level = first + 1, 0
    while line < state.lineMax and not state.isEmpty(line):
        start = state.bMarks[line] + state.tShift[line]
        if state.sCount[line] >= state.blkIndent and _UNDERLINE.fullmatch(state.src, start, state.eMarks[line]):
            level = 1 if state.src[start] == "=" else 2
            break
        # A negative indentation marks a lazy line of a quote.
        if state.sCount[line] >= 0 and any(ends(state, line, state.lineMax, _CHECK_ONLY) for ends in terminators):
            break
        line += 1
    state.parentType = around
    return line, level


def load_markdown(text: str) -> Document:
    """Read Markdown. Its blocks are spans of the text."""
    return as_document(markdown_blocks(text), transformed=False)


def as_document(blocks: list[Block], *, transformed: bool) -> Document:
    """Return a document of Markdown blocks, titled by its front matter or its first heading of level 1."""
    sections = build_sections(blocks)
    front_matter = next((block.text for block in blocks if block.kind == "front_matter"), None)
    title = _front_matter_title(front_matter) or next((part.section for part in sections if part.section), None)
    return Document(title, sections, front_matter, transformed=transformed)


def markdown_blocks(text: str, *, mdx: bool = False) -> list[Block]:
    """Split Markdown into its leaf blocks, which cover the text without gaps.

    With `mdx`, indentation does not start code blocks, and angle brackets do not start HTML, as in MDX.
    """
    shift = len(_BYTE_ORDER_MARK) if text.startswith(_BYTE_ORDER_MARK) else 0
    body = text[shift:]
    starts = [shift, *(shift + match.end() for match in _LINE_END.finditer(body))]
    return tile(text, [*_marks(body, starts, mdx=mdx)])


def protected_lines(text: str) -> list[tuple[int, int]]:
    """Return the line ranges of the fenced blocks and the front matter in MDX: 0-based, end exclusive."""
    tokens = _block_parser(mdx=True).parse(text)
    return [(token.map[0], token.map[1]) for token in tokens if token.type in {"fence", "front_matter"} and token.map]


def _marks(body: str, starts: list[int], *, mdx: bool) -> Iterator[Mark]:
    environment: dict[str, object] = {}
    tokens = _block_parser(mdx=mdx).parse(body, environment)
    in_item = False
    in_table = False
    for index, token in enumerate(tokens):
        if token.type == "list_item_open":
            in_item = True
        if token.type in {"table_open", "table_close"}:
            in_table = token.type == "table_open"
        kind = _KINDS.get(token.type)
        if token.type == "front_matter":
            yield Mark(starts[0], "front_matter")
        if kind is None or token.map is None or (in_table and kind != "table"):
            continue
        offset = starts[token.map[0]]
        if kind == "heading" and token.level == 0:
            title = _plain(tokens[index + 1].content, environment)
            yield Mark(offset, "heading", int(token.tag[1:]), title)
        elif kind in {"heading", "prose"}:
            yield Mark(offset, "item" if in_item else "prose")
        else:
            yield Mark(offset, kind)
        in_item = False


def _plain(source: str, environment: dict[str, object]) -> str:
    """Return the text of a heading without its markup."""
    if len(source) > MAX_TITLE * 5 or not _MARKUP.search(source):
        return " ".join(source[: MAX_TITLE * 5].split())[:MAX_TITLE]
    children = _inline_parser().parseInline(source, environment)[0].children or []
    return " ".join("".join(_inline_text(child) for child in children).split())[:MAX_TITLE]


def _inline_text(token: "Token") -> str:
    if token.type in {"softbreak", "hardbreak"}:
        return " "
    return "" if token.type == "html_inline" else token.content


def _front_matter_title(front_matter: str | None) -> str | None:
    match = _FRONT_MATTER_TITLE.search(front_matter or "")
    return match["title"][:MAX_TITLE] if match else None


@lru_cache
def _block_parser(*, mdx: bool) -> "MarkdownIt":
    from markdown_it import MarkdownIt
    from mdit_py_plugins.front_matter import front_matter_plugin

    parser = MarkdownIt("commonmark").enable("table").disable("inline").use(front_matter_plugin)
    use_heading_attributes(parser)
    if mdx:
        _use_mdx(parser)
    return parser


@lru_cache
def _inline_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")
