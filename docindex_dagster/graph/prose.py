"""The prose of a chunk of a document: its paragraphs without markup, its links, its code font. Code blocks are none.

markdown-it reads the structure. Documents in other formats were written as Markdown by their loaders.
"""

import re
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from docindex_dagster.documents.markdown import use_heading_attributes

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_CODE = frozenset({"fence", "code_block"})
_DEFINES_LINKS = re.compile(r"^ {0,3}\[[^\]\n]+\]:", re.MULTILINE)
_LONGEST = 100_000  # characters; longer chunks are of generated files


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text: a paragraph, a heading, an item of a list, a cell of a table.

    `line` is that of the chunk on which it begins, from 0; the text has its line ends.
    """

    text: str
    line: int = 0
    kind: str = "text"  # text | heading | cell
    level: int = 0  # of a title of the document
    anchor: str = ""  # of a title whose attribute list names one
    lead: str = ""  # what it begins with, if that is emphasised strongly
    codes: tuple[str, ...] = ()  # what is in code font in it

    def line_of(self, offset: int) -> int:
        """The line of a character of the text, in the chunk."""
        return self.line + self.text.count("\n", 0, offset)


@dataclass(frozen=True, slots=True)
class Mark:
    """The address of a link, or a text in code font, and its line."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Prose:
    """What a chunk says, but for its code."""

    paragraphs: tuple[Paragraph, ...] = ()
    links: tuple[Mark, ...] = ()
    codes: tuple[Mark, ...] = ()

    @property
    def headings(self) -> list[Paragraph]:
        """The titles of sections."""
        return [paragraph for paragraph in self.paragraphs if paragraph.level]


def read_prose(text: str, *, goes_on: bool = False, targets: MutableMapping[str, Any] | None = None) -> Prose:
    """Read the text of a chunk.

    Args:
        text: Markdown.
        goes_on: it may begin inside a code block, as the second part of a long one does.
        targets: the addresses of links by reference that the file gives elsewhere, from `link_targets`.
    """
    found = Prose()
    if len(text) > _LONGEST:
        return found
    tokens = _tokens(text, targets)
    shift = 0
    if goes_on:
        fence = _open_fence(tokens, text)
        if not fence and not any(token.type in _CODE for token in tokens):
            return found  # all of it is code
        if fence:
            tokens, shift = _tokens(f"{fence}\n{text}", targets), 1
    paragraphs: list[Paragraph] = []
    links: list[Mark] = []
    codes: list[Mark] = []
    kind = "text"
    line = level = 0
    anchor = ""
    for token in tokens:
        line = max(token.map[0] - shift, 0) if token.map else line
        if token.type in {"heading_open", "th_open", "td_open", "paragraph_open"}:
            kind = _KINDS[token.type]
            level = int(token.tag[1:]) if kind == "heading" and token.level == 0 else 0
            anchor = str(token.attrGet("id") or "")
        if token.type == "inline" and token.children:
            paragraph = _read_inline(token.children, line, kind, links, codes)
            if paragraph.text:
                paragraphs.append(replace(paragraph, level=level, anchor=anchor) if level else paragraph)
    return Prose(tuple(paragraphs), tuple(links), tuple(codes))


_KINDS = {"heading_open": "heading", "th_open": "cell", "td_open": "cell", "paragraph_open": "text"}


def link_targets(texts: Iterator[str]) -> dict[str, Any]:
    """The addresses that the chunks of a file define for links by reference, as `[name]: address`."""
    targets: dict[str, Any] = {}
    for text in texts:
        if len(text) <= _LONGEST and _DEFINES_LINKS.search(text):
            _parser(inline=False).parse(text, targets)
    return targets


def _tokens(text: str, targets: Mapping[str, Any] | None) -> list["Token"]:
    return _parser(inline=True).parse(text, targets if isinstance(targets, dict) else {})


def _open_fence(tokens: list["Token"], text: str) -> str:
    """The marks of a fence without a language that nothing closes: what looks like its beginning is an end."""
    last = next((token for token in reversed(tokens) if token.type == "fence"), None)
    if last is None or last.info.strip() or last.map is None:
        return ""
    lines = text.rstrip().split("\n")
    end = lines[min(last.map[1], len(lines)) - 1].strip()
    is_closed = last.map[1] - last.map[0] > 1 and end.startswith(last.markup) and not end.strip(last.markup[0])
    return "" if is_closed else last.markup


def _read_inline(children: list["Token"], line: int, kind: str, links: list[Mark], codes: list[Mark]) -> Paragraph:
    parts: list[str] = []
    shown: list[str] = []
    strong: list[str] | None = None
    lead = ""
    begins = line
    for token in children:
        if token.type == "text":
            parts.append(token.content)
        elif token.type == "code_inline":
            parts.append(token.content)
            shown.append(token.content)
            codes.append(Mark(token.content, line))
        elif token.type in {"softbreak", "hardbreak"}:
            parts.append("\n")
            line += 1
        elif token.type == "link_open":
            links.append(Mark(str(token.attrGet("href") or ""), line))
        elif token.type == "strong_open" and not "".join(parts).strip():
            strong = parts[:]
        elif token.type == "strong_close" and strong is not None:
            lead = lead or "".join(parts[len(strong) :]).strip()
            strong = None
    return Paragraph("".join(parts).strip("\n"), begins, kind, lead=lead, codes=tuple(shown))


@lru_cache
def _parser(*, inline: bool) -> "MarkdownIt":
    from markdown_it import MarkdownIt
    from mdit_py_plugins.front_matter import front_matter_plugin

    parser = MarkdownIt("commonmark").enable("table").use(front_matter_plugin)
    use_heading_attributes(parser)
    return parser if inline else parser.disable("inline")
