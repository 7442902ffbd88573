"""reStructuredText: the tree that docutils reads, written as plain Markdown blocks.

Comments, link targets and the addresses of links are left out; all other text is kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from docindex_dagster.documents import rendered
from docindex_dagster.documents.model import Block, BlockKind, Document
from docindex_dagster.documents.outline import build_sections

# docutils itself refuses longer lines, and takes gigabytes for hundreds of thousands of constructs.
_MAX_LINE = 10_000
_MAX_LINES = 50_000
# What a system message of this level quotes stands nowhere else in the tree: a malformed table, a misplaced title.
_ERROR = 3
_IS_TERM = "docindex_is_term"  # set by our parser on what a directive describes
_SKIPPED = frozenset(["comment", "pending", "substitution_definition", "target"])
_VERBATIM = frozenset(["literal_block", "doctest_block", "math_block"])


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a node is written: under how many titles, and after what at its first line and at the others."""

    depth: int = 0
    first: str = ""
    rest: str = ""

    def inside(self, marker: str) -> "_Place":
        """The place of what follows a marker, such as the bullet of a list item."""
        return replace(self, first=self.first + marker, rest=self.rest + " " * min(len(marker), 4))


def load_rst(text: str) -> Document:
    """Read reStructuredText. Lines are those of the file, as far as docutils knows them.

    Raises:
        ValueError: it has too many lines, or too long ones.
        RecursionError: it is nested too deeply.
    """
    from docindex_dagster.documents.rst_parser import parse_rst

    text = text.removeprefix("\ufeff").translate({ord("\v"): " ", ord("\f"): " "})  # as docutils does
    lines = text.splitlines(keepends=True)
    if len(lines) > _MAX_LINES or any(len(line) > _MAX_LINE for line in lines):
        raise ValueError(f"more than {_MAX_LINES} lines, or a line of more than {_MAX_LINE} characters")
    # docutils ends lines at carriage returns and the like as well; our lines end at "\n" alone.
    numbers = [*accumulate((line.count("\n") for line in lines), initial=1)]
    last = max(len(lines), 1)
    blocks = [
        replace(
            block, start_line=numbers[min(block.start_line, last) - 1], end_line=numbers[min(block.end_line, last) - 1]
        )
        for block in _blocks(parse_rst(text))
    ]
    sections = build_sections(rendered.separated(blocks))
    title = next((part.section for part in sections if part.section), None)
    return Document(title=title, sections=sections, transformed=True)


def _blocks(tree: Any) -> Iterator[Block]:
    """Write the tree, block by block."""
    line = 1
    stack = [(tree, _Place())]
    while stack:
        node, place = stack.pop()
        if node.tagname in _SKIPPED:
            continue
        children = _children(node, place)
        if children is not None:
            stack.extend(reversed(children))
            continue
        line = max(line, node.line or line)
        block = _block(node, place, line)
        if block.text.strip():
            yield block


def _children(node: Any, place: _Place) -> list[tuple[Any, _Place]] | None:
    """What a node holds and where that is written, or None for a node that is a block itself."""
    from docutils import nodes

    if isinstance(node, nodes.system_message):
        lost = [*node.findall(nodes.literal_block)] if node["level"] >= _ERROR else []
        return [(child, place) for child in lost]
    if isinstance(node, nodes.table | nodes.line_block | nodes.TextElement | nodes.image):
        return None
    if isinstance(node, nodes.section):
        place = replace(place, depth=place.depth + 1)
    elif isinstance(node, nodes.definition):
        place = _Place(place.depth, place.rest + "    ", place.rest + "    ")
    elif isinstance(node, nodes.bullet_list | nodes.enumerated_list):
        items = enumerate(_placed(node.children, place))
        return [(item, where.inside(_marker(node, index))) for index, (item, where) in items]
    elif isinstance(node, nodes.footnote | nodes.citation) and isinstance(next(iter(node), None), nodes.label):
        label, *body = node.children
        return _placed(body, place.inside(f"[{label.astext()}] "))
    elif isinstance(node, nodes.field | nodes.option_list_item):
        label, *body = node.children
        if not "".join(part.astext() for part in body).strip():
            body = [nodes.paragraph()]
        return _placed(body, place.inside(f"{label.astext()}: "))
    return _placed(node.children, place)


def _placed(children: list[Any], place: _Place) -> list[tuple[Any, _Place]]:
    """The first child follows the marker, the others stand below it."""
    below = replace(place, first=place.rest)
    return [(child, below if index else place) for index, child in enumerate(children)]


def _marker(listing: Any, index: int) -> str:
    return "- " if listing.tagname == "bullet_list" else f"{listing.get('start', 1) + index}. "


def _block(node: Any, place: _Place, line: int) -> Block:
    end_line = line + node.rawsource.rstrip().count("\n")
    if node.tagname == "title":
        return rendered.heading(_inline(node), place.depth, line, end_line)
    if node.tagname in _VERBATIM:
        return rendered.fenced(node.astext(), node.get("language", ""), line, end_line)
    if node.tagname == "table":
        rows = [[entry.astext() for entry in row.children] for row in node.findall(lambda part: part.tagname == "row")]
        return rendered.table(rows, line, line + len(rows))
    text = "\n".join(_inline(part) for part in node.children) if node.tagname == "line_block" else _inline(node)
    return Block(_kind(node, place), place.first + text.replace("\n", f"\n{place.rest}"), line, end_line)


def _kind(node: Any, place: _Place) -> BlockKind:
    if node.tagname == "term" or node.get(_IS_TERM):
        return "term"
    return "item" if place.first else "prose"


def _inline(node: Any) -> str:
    """The text of a block, with code spans marked."""
    parts = []
    for text in node.findall(lambda part: part.tagname == "#text"):
        shown = text.astext()
        parts.append(f"`{shown}`" if text.parent.tagname == "literal" else shown)
    return "".join(parts)
