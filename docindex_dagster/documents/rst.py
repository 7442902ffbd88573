"""reStructuredText: the tree that docutils reads, written as plain Markdown blocks.

Comments and what is layout alone are left out; targets and addresses of links are recorded beside the text. All other
text is kept.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from string import ascii_lowercase
from typing import Any

from docutils import nodes

from docindex_dagster.documents.model import (
    Block,
    BlockKind,
    Document,
    Pointer,
    PointerKind,
    build_sections,
    code_block,
    heading_block,
    separated,
    table_block,
)
from docindex_dagster.documents.rst_parser import END_LINE, IS_TERM, LABELLED, LANGUAGE, LINK, REF, parse_rst

# docutils itself refuses longer lines, and takes gigabytes for hundreds of thousands of constructs.
_MAX_LINE = 10_000
_MAX_LINES = 50_000
# What a system message of this level quotes stands nowhere else in the tree: a malformed table, a misplaced title.
_ERROR = 3
_MISPLACED = "Unexpected section title"
_LETTER = re.compile(r"\w")
_SKIPPED = frozenset(["comment", "pending", "target"])
_VERBATIM = frozenset(["literal_block", "doctest_block", "math_block"])
_REFERENCES = frozenset(["citation_reference", "footnote_reference"])
_ROMAN_VALUES = (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1)
_ROMAN_DIGITS = ("m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i")
_MAX_ROMAN = 5000  # docutils reads no larger ones
_ATTRIBUTES: dict[str, PointerKind] = {LINK: "link", REF: "ref"}
_LEADING = frozenset(["inline", "reference"])
_HOLDERS = frozenset(["line_block", "table"])  # blocks whose text is in other nodes
_MOST_STEPS = 10  # from one name of an address to the next


@dataclass(slots=True, eq=False)
class _Marker:
    """What stands before the first block inside a list item and the like, and how far all of them are indented."""

    text: str
    indent: str
    is_written: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a node is written: under how many titles, and inside what."""

    depth: int = 0
    markers: tuple[_Marker, ...] = ()

    def inside(self, text: str) -> "_Place":
        """The place of what follows a marker, such as the bullet of a list item."""
        marker = _Marker(text, " " * min(len(text), 4))
        return replace(self, markers=(*self.markers, marker))

    def write(self, text: str) -> str:
        """A block's text with the markers that have not been written yet, and indented."""
        first = "".join(marker.indent if marker.is_written else marker.text for marker in self.markers)
        rest = "".join(marker.indent for marker in self.markers)
        written = first + text.replace("\n", f"\n{rest}")
        if written.strip():
            for marker in self.markers:
                marker.is_written = True
        return written


def load_rst(text: str) -> Document:
    """Read reStructuredText. Lines are those of the file, as far as docutils knows them.

    Raises:
        ValueError: it has too many lines, or too long ones.
        RecursionError: it is nested too deeply.
    """
    text = text.removeprefix("\ufeff").translate({ord("\v"): " ", ord("\f"): " "})  # as docutils does
    lines = text.splitlines(keepends=True)
    if len(lines) > _MAX_LINES or any(len(line) > _MAX_LINE for line in lines):
        raise ValueError(f"more than {_MAX_LINES} lines, or a line of more than {_MAX_LINE} characters")
    # docutils ends lines at carriage returns and the like as well; our lines end at "\n" alone.
    numbers = [*accumulate((line.count("\n") for line in lines), initial=1)]
    last = max(len(lines), 1)

    def of_file(line: int) -> int:
        return numbers[min(line, last) - 1]

    blocks = [
        replace(
            block,
            start_line=of_file(block.start_line),
            end_line=of_file(block.end_line),
            pointers=tuple(replace(pointer, line=of_file(pointer.line)) for pointer in block.pointers),
        )
        for block in _blocks(parse_rst(text))
    ]
    sections = build_sections(separated(blocks))
    title = next((part.section for part in sections if part.section), None)
    return Document(title=title, sections=sections, transformed=True)


def _blocks(tree: Any) -> Iterator[Block]:
    """Write the tree, block by block."""
    line = 1
    language = ""
    links = _Links(tree)
    labels: list[Pointer] = []  # of what comes next
    stack = [(tree, _Place())]
    while stack:
        node, place = stack.pop()
        if node.tagname in _SKIPPED:
            language = node.get(LANGUAGE, language)
            labels += links.labels(node, line)
            continue
        children = _children(node, place)
        if children is not None:
            stack.extend(reversed(children))
            continue
        line = max(line, node.line or line)
        block = _block(node, place, line, language)
        if block.text.strip():
            pointers = (*labels, *links.of(node, block.end_line))
            labels = []
            yield replace(block, pointers=pointers) if pointers else block


def _children(node: Any, place: _Place) -> list[tuple[Any, _Place]] | None:
    """What a node holds and where that is written, or None for a node that is a block itself."""
    if isinstance(node, nodes.table | nodes.line_block | nodes.TextElement | nodes.image):
        return None
    if isinstance(node, nodes.bullet_list | nodes.enumerated_list):
        return [(item, place.inside(_marker(node, index))) for index, item in enumerate(node.children)]
    children = node.children
    if isinstance(node, nodes.system_message):
        children = _quoted(node)
    elif isinstance(node, nodes.section):
        place = replace(place, depth=place.depth + 1)
    elif isinstance(node, nodes.definition_list_item):
        children = _with_classifiers(node)
    elif isinstance(node, nodes.definition):
        place = place.inside("    ")
    elif isinstance(node, nodes.footnote | nodes.citation):
        children = [child for child in children if child.tagname != "label"]
        place = place.inside(f"[{node[LABELLED]}] ")
    elif isinstance(node, nodes.field | nodes.option_list_item):
        label, *body = children
        children = [*body, nodes.paragraph()]  # the label stands even if nothing follows
        place = place.inside(f"{label.astext()}: ")
    return [(child, place) for child in children]


def _quoted(message: Any) -> list[Any]:
    """What a system message quotes, where that stands nowhere else."""
    lost = [*message.findall(nodes.literal_block)] if message["level"] >= _ERROR else []
    return [_title_as_term(block) for block in lost] if _MISPLACED in message.astext() else lost


def _title_as_term(block: Any) -> Any:
    """A title in a directive, where docutils allows none, as what names the text after it."""
    title = "\n".join(line for line in block.astext().splitlines() if _LETTER.search(line))
    term: Any = nodes.paragraph(title, "", nodes.Text(title))
    term[IS_TERM] = True
    return term


def _marker(listing: Any, index: int) -> str:
    """The bullet or number of an item, as its list counts; full stops stand for parentheses."""
    if listing.tagname == "bullet_list":
        return "- "
    number = listing.get("start", 1) + index
    style = listing.get("enumtype", "arabic")
    if style.endswith("roman") and number < _MAX_ROMAN:
        shown = _roman(number)
    elif style.endswith("alpha") and number <= len(ascii_lowercase):
        shown = ascii_lowercase[number - 1]
    else:
        shown = str(number)
    return f"{shown.upper() if style.startswith('upper') else shown}. "


def _roman(number: int) -> str:
    digits = ""
    for value, digit in zip(_ROMAN_VALUES, _ROMAN_DIGITS, strict=True):
        digits += digit * (number // value)
        number %= value
    return digits


def _with_classifiers(item: Any) -> list[Any]:
    """The parts of an item of a definition list, its classifiers as part of its term."""
    term, *parts = item.children
    for part in parts:
        if isinstance(part, nodes.classifier):
            term += [nodes.Text(" : "), *part.children]
    return [term, *(part for part in parts if not isinstance(part, nodes.classifier))]


def _block(node: Any, place: _Place, line: int, language: str) -> Block:
    end_line = max(node.get(END_LINE, line + node.rawsource.rstrip().count("\n")), line)
    if node.tagname == "title":
        return heading_block(_inline(node), place.depth, line, end_line)
    if node.tagname in _VERBATIM:
        default = language if node.tagname == "literal_block" else ""
        return code_block(_inline(node), node.get("language") or default, line, end_line)
    if node.tagname == "table":
        rows = [[_cell(entry) for entry in row.children] for row in node.findall(lambda part: part.tagname == "row")]
        return table_block(rows, line, end_line)
    text = "\n".join(_lines(node)) if node.tagname == "line_block" else _inline(node)
    return Block(_kind(node, place), place.write(text), line, end_line)


def _cell(entry: Any) -> str:
    """The text of all blocks in a cell of a table."""
    texts = []
    stack = [entry]
    while stack:
        node = stack.pop()
        children = None if node.tagname in _SKIPPED else _children(node, _Place())
        if children is not None:
            stack.extend(child for child, _ in reversed(children))
        elif node.tagname == "table":
            texts.append(_block(node, _Place(), 0, "").text)
        elif node.tagname not in _SKIPPED:
            texts.append(" ".join(_lines(node)) if node.tagname == "line_block" else _inline(node))
    return " ".join(texts)


def _lines(line_block: Any) -> list[str]:
    """The lines of a line block and of those in it."""
    return [_inline(line) for line in line_block.findall(lambda part: part.tagname == "line")]


def _kind(node: Any, place: _Place) -> BlockKind:
    if node.tagname == "term" or node.get(IS_TERM):
        return "term"
    return "item" if place.markers else "prose"


def _inline(node: Any) -> str:
    """The text of a block, with code spans and the labels of footnotes marked."""
    parts = []
    for found in node.findall(lambda part: part.tagname == "#text" or part.tagname in _REFERENCES):
        if found.tagname in _REFERENCES:
            parts.append(found.rawsource.removesuffix("_"))
        elif found.parent.tagname not in _REFERENCES:
            shown = found.astext()
            parts.append(f"`{shown}`" if found.parent.tagname == "literal" else shown)
    return "".join(parts)


class _Links:
    """Tells where the references in one tree lead. Those without a name are to be asked for in their order."""

    def __init__(self, tree: Any) -> None:
        self._tree = tree
        self._unnamed = tree.findall(lambda node: node.tagname == "target" and node.get("anonymous"))

    def labels(self, node: Any, line: int) -> Iterator[Pointer]:
        """The names of a target that stands before what it names."""
        if node.tagname == "target" and "refuri" not in node and "refname" not in node:
            for name in node["names"]:
                yield Pointer("label", name, node.line or line)

    def of(self, block: Any, end_line: int) -> Iterator[Pointer]:
        """The links in a block that ends on a line."""
        if block.tagname in _HOLDERS:
            for part in block.findall(nodes.TextElement):
                if not isinstance(part, nodes.Inline):
                    yield from self._in_text(part, part.line or block.line or end_line)
        else:
            yield from self._in_text(block, end_line - block.rawsource.rstrip().count("\n"))

    def _in_text(self, text: Any, line: int) -> Iterator[Pointer]:
        for part in text.children:
            if part.tagname == "#text":
                line += part.count("\n")
                continue
            pointer = self._pointer(part, line) if part.tagname in _LEADING else None
            if pointer:
                yield pointer
            if part.tagname != "target":  # the address in a reference is part of that
                line += part.rawsource.count("\n")

    def _pointer(self, reference: Any, line: int) -> Pointer | None:
        for attribute, kind in _ATTRIBUTES.items():
            if attribute in reference:
                return Pointer(kind, " ".join(reference[attribute].split()), line)
        if reference.tagname == "inline":
            return None
        if reference.get("anonymous"):
            reference = next(self._unnamed, reference)
        for _ in range(_MOST_STEPS):
            if "refuri" in reference:
                return Pointer("link", reference["refuri"], line)
            name = reference.get("refname")
            target = self._tree.ids.get(self._tree.nameids.get(name))
            if target is None:
                return Pointer("ref", name, line) if name else None
            if "refuri" not in target and "refname" not in target:
                return Pointer("link", f"#{name}", line)
            reference = target
        return None
