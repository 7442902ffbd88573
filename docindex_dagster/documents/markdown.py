"""Markdown: CommonMark with tables and front matter, kept as it is.

markdown-it finds the structure; only the line numbers of its tokens are used, and the text stays the file's own. The
blocks are the leaves of the token tree, so that a fence inside a list is a block like any other.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from docindex_dagster.documents.attributes import use_heading_attributes
from docindex_dagster.documents.mdx_rules import use_mdx
from docindex_dagster.documents.model import MAX_TITLE, Block, BlockKind, Document
from docindex_dagster.documents.outline import build_sections
from docindex_dagster.documents.spans import Mark, tile

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_LINE_END = re.compile(r"\r\n?|\n")  # what markdown-it takes for one
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


def load_markdown(text: str) -> Document:
    """Read Markdown. Its blocks are spans of the text."""
    return as_document(markdown_blocks(text), transformed=False)


def as_document(blocks: list[Block], *, transformed: bool) -> Document:
    """A document of Markdown blocks, named by its front matter or its first heading of level 1."""
    sections = build_sections(blocks)
    front_matter = next((block.text for block in blocks if block.kind == "front_matter"), None)
    title = _front_matter_title(front_matter) or next((part.section for part in sections if part.section), None)
    return Document(title, sections, front_matter, transformed=transformed)


def markdown_blocks(text: str, *, mdx: bool = False) -> list[Block]:
    """Cut Markdown into its leaf blocks, which tile the text.

    With `mdx`, indentation makes no code and angle brackets make no HTML, as in MDX.
    """
    shift = len(_BYTE_ORDER_MARK) if text.startswith(_BYTE_ORDER_MARK) else 0
    body = text[shift:]
    starts = [shift, *(shift + match.end() for match in _LINE_END.finditer(body))]
    return tile(text, [*_marks(body, starts, mdx=mdx)])


def untouchable_lines(text: str) -> list[tuple[int, int]]:
    """The fenced blocks and the front matter of MDX, as pairs of lines: 0-based, the second exclusive."""
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
    """The text of a heading without its markup."""
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
        use_mdx(parser)
    return parser


@lru_cache
def _inline_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")
