"""Prose of document chunks, and the section of each line.

Prose consists of paragraphs without markup, links, and code font, but not code blocks. A chunk may hold several small
sections, so their headings are read from its text.

markdown-it parses the structure. Loaders convert documents in other formats to Markdown.
"""

import re
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from docindex_dagster.documents.markdown import use_heading_attributes
from docindex_dagster.documents.model import PlacedPointer, read_pointers
from docindex_dagster.graph.source_graph import ANCHOR, ANCHORS, Node, Triple

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_CODE = frozenset({"fence", "code_block"})
_DEFINES_LINKS = re.compile(r"^ {0,3}\[[^\]\n]+\]:", re.MULTILINE)
_LONGEST = 100_000  # characters; longer chunks come from generated files
_KINDS = {"heading_open": "heading", "th_open": "cell", "td_open": "cell", "paragraph_open": "text"}
_LONGEST_TITLE = 200
_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text: a paragraph, a heading, a list item or a table cell.

    `line` is the line of the chunk on which the text begins, from 0; the text keeps its line breaks.
    """

    text: str
    line: int = 0
    kind: str = "text"  # text | heading | cell
    level: int = 0  # level of a document heading; 0 for other text
    anchor: str = ""  # anchor in the attribute list of a heading
    lead: str = ""  # text in bold at the beginning
    codes: tuple[str, ...] = ()  # texts in code font

    def line_of(self, offset: int) -> int:
        """Return the line of the chunk that contains a character of the text."""
        return self.line + self.text.count("\n", 0, offset)


@dataclass(frozen=True, slots=True)
class Mark:
    """Address of a link, or a text in code font, and its line."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Prose:
    """Contents of a chunk, except its code blocks."""

    paragraphs: tuple[Paragraph, ...] = ()
    links: tuple[Mark, ...] = ()
    codes: tuple[Mark, ...] = ()

    @property
    def headings(self) -> list[Paragraph]:
        """Section headings."""
        return [paragraph for paragraph in self.paragraphs if paragraph.level]


def read_prose(text: str, *, may_start_in_code: bool = False, targets: MutableMapping[str, Any] | None = None) -> Prose:
    """Read the text of a chunk.

    Args:
        text: Markdown.
        may_start_in_code: Whether it may begin inside a code block, like the second part of a long one.
        targets: The addresses of reference links that the file defines elsewhere, from `link_targets`.
    """
    found = Prose()
    if len(text) > _LONGEST:
        return found
    tokens = _tokens(text, targets)
    shift = 0
    if may_start_in_code:
        fence = _open_fence(tokens, text)
        if not fence and not any(token.type in _CODE for token in tokens):
            return found  # it is all code
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


def link_targets(texts: Iterator[str]) -> dict[str, Any]:
    """Return the addresses that the chunks of a file define for reference links, as in `[name]: address`."""
    targets: dict[str, Any] = {}
    for text in texts:
        if len(text) <= _LONGEST and _DEFINES_LINKS.search(text):
            _parser(inline=False).parse(text, targets)
    return targets


def _tokens(text: str, targets: Mapping[str, Any] | None) -> list["Token"]:
    return _parser(inline=True).parse(text, targets if isinstance(targets, dict) else {})


def _open_fence(tokens: list["Token"], text: str) -> str:
    """Return the marks of an unclosed fence without a language: such an opening fence is in fact a closing one."""
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


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """Chunk of a document: its row, its prose, and the headings in effect from each line on."""

    row: Mapping[str, Any]
    prose: Prose
    places: Sequence[tuple[int, _Path]]

    def place(self, line: int) -> tuple[str, str]:
        """Return the node of the section that contains a line of the chunk, or of the file, and its type."""
        above = (titles for begin, titles in reversed(self.places) if begin <= line)
        titles = next(above, self.places[0][1])  # the line may precede the first heading
        return section_node(self.row["path"], titles)

    @property
    def pointers(self) -> Iterator[PlacedPointer]:
        """Links and anchors that the text does not show, with their lines in the file."""
        return read_pointers(self.row["pointers"])

    def titled(self, titles: str) -> tuple[str, str]:
        """Return the node of the section with these headings, or else the section in which the chunk begins."""
        wanted = f"{self.row['path']}#{titles}"
        places = (section_node(self.row["path"], place) for _, place in self.places)
        return next((place for place in places if place[0] == wanted), self.place(0))

    def line(self, line: int) -> int:
        """Return the file line of a line of the chunk; approximate for converted documents."""
        return int(min(self.row["start_line"] + line, self.row["end_line"]))


def section_node(path: str, titles: Sequence[str]) -> tuple[str, str]:
    """Return the node of a section, or of its file, and its type."""
    return (f"{path}#{' > '.join(titles)}", "section") if titles else (path, "file")


def may_start_in_code(row: Mapping[str, Any]) -> bool:
    """Return whether a chunk may begin inside a code block."""
    return bool(row["has_code"] and (row["part_number"] or 1) > 1)


def read_document(rows: Sequence[Mapping[str, Any]]) -> list[ReadChunk]:
    """Return the chunks of one document, in order."""
    targets = link_targets(row["text"] for row in rows)
    above: list[tuple[int, str]] = []
    found = []
    for row in rows:
        prose = read_prose(row["text"], may_start_in_code=may_start_in_code(row), targets=targets)
        heading_path = tuple(row["heading_path"] or ())
        places = [*_headings_by_line(prose, above)] if row["chunk_type"] == "section" else []
        if any(titles[: len(heading_path)] != heading_path for _, titles in places) or not places:
            places = [(0, heading_path)]  # the headings of its format differ from Markdown
            above = [*enumerate(heading_path, start=1)]
        found.append(ReadChunk(row, prose, places))
    return found


def _headings_by_line(prose: Prose, above: list[tuple[int, str]]) -> Iterator[tuple[int, _Path]]:
    """Yield from which line of a chunk which headings apply; `above` carries over from chunk to chunk."""
    headings = prose.headings
    first = min((paragraph.line for paragraph in prose.paragraphs), default=0)
    if not headings or headings[0].line > first:
        yield 0, tuple(title for _, title in above)
    for heading in headings:
        while above and above[-1][0] >= heading.level:
            above.pop()
        above.append((heading.level, _title(heading.text)))
        yield heading.line, tuple(title for _, title in above)


def _title(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_TITLE]


def section_edges(chunks: Sequence[ReadChunk]) -> tuple[list[Node], list[Triple]]:
    """Return the sections of a document, each nested in the one around it."""
    nodes: dict[str, Node] = {}
    edges: dict[str, Triple] = {}
    for chunk in chunks:
        row = chunk.row
        of_chunk = row["source"], row["path"], row["chunk_id"]
        for line, titles in chunk.places:
            around = [section_node(row["path"], titles[:depth]) for depth in range(len(titles) + 1)]
            for (parent, child), title in zip(pairwise(around), titles, strict=True):
                nodes.setdefault(child[0], Node(child[0], "section", title, *of_chunk))
                edges.setdefault(child[0], Triple(*parent, "has_section", *child, *of_chunk, chunk.line(line)))
    return [*nodes.values()], [*edges.values()]


def anchors(chunks: Sequence[ReadChunk]) -> Iterator[Node]:
    """Yield a node for each anchor by which links reach a section; its name is the node of the section or file."""
    for chunk in chunks:
        row = chunk.row
        named = [(ANCHOR, title.anchor, chunk.place(title.line)) for title in chunk.prose.headings if title.anchor]
        named += [
            (pointer.kind, pointer.name, chunk.titled(pointer.titles))
            for pointer in chunk.pointers
            if pointer.kind in ANCHORS
        ]
        for kind, name, (place, _) in named:
            yield Node(f"{kind}:{row['path']}#{name}", kind, place, row["source"], row["path"], row["chunk_id"])
