"""reStructuredText loader: writes the docutils tree as plain Markdown blocks.

Comments and pure layout are left out; targets and link addresses are recorded as pointers. All other text is kept.
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
    table_block,
    with_separators,
)
from docindex_dagster.documents.rst_parser import END_LINE, FOOTNOTE_LABEL, IS_TERM, LANGUAGE, LINK, REF, parse_rst

# docutils itself refuses longer lines, and takes gigabytes for hundreds of thousands of constructs.
_MAX_LINE = 10_000
_MAX_LINES = 50_000
# Text quoted in a system message of this level is missing from the tree: a malformed table, a misplaced title.
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
_LINKING = frozenset(["inline", "reference"])
_CONTAINERS = frozenset(["line_block", "table"])  # blocks whose text is in other nodes
_MAX_STEPS = 10  # redirections from one target name to another


@dataclass(slots=True, eq=False)
class _Marker:
    """The text before the first block in a list item or similar, and the indentation of all its blocks."""

    text: str
    indent: str
    is_written: bool = False


@dataclass(frozen=True, slots=True)
class _Context:
    """The context in which a node is written: the number of enclosing titles, and the enclosing markers."""

    depth: int = 0
    markers: tuple[_Marker, ...] = ()

    def inside(self, text: str) -> "_Context":
        """Return the context of the content after a marker, such as the bullet of a list item."""
        marker = _Marker(text, " " * min(len(text), 4))
        return replace(self, markers=(*self.markers, marker))

    def write(self, text: str) -> str:
        """Return a block's text, indented and with the markers that are still to be written."""
        first = "".join(marker.indent if marker.is_written else marker.text for marker in self.markers)
        rest = "".join(marker.indent for marker in self.markers)
        written = first + text.replace("\n", f"\n{rest}")
        if written.strip():
            for marker in self.markers:
                marker.is_written = True
        return written


def load_rst(text: str) -> Document:
    """Read reStructuredText. Line numbers refer to the file, as far as docutils knows them.

    Raises:
        ValueError: The text has too many lines, or too long lines.
        RecursionError: The text is nested too deeply.
    """
    text = text.removeprefix("\ufeff").translate({ord("\v"): " ", ord("\f"): " "})  # as docutils does
    lines = text.splitlines(keepends=True)
    if len(lines) > _MAX_LINES or any(len(line) > _MAX_LINE for line in lines):
        raise ValueError(f"more than {_MAX_LINES} lines, or a line of more than {_MAX_LINE} characters")
    # docutils also ends lines at carriage returns and similar characters; our lines end only at "\n".
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
    sections = build_sections(with_separators(blocks))
    title = next((part.section for part in sections if part.section), None)
    return Document(title=title, sections=sections, transformed=True)


def _blocks(tree: Any) -> Iterator[Block]:
    """Write the tree, block by block."""
    line = 1
    language = ""
    links = _Links(tree)
    labels: list[Pointer] = []  # of the next block
    stack = [(tree, _Context())]
    while stack:
        node, context = stack.pop()
        if node.tagname in _SKIPPED:
            language = node.get(LANGUAGE, language)
            labels += links.labels(node, line)
            continue
        children = _children(node, context)
        if children is not None:
            stack.extend(reversed(children))
            continue
        line = max(line, node.line or line)
        block = _block(node, context, line, language)
        if block.text.strip():
            pointers = (*labels, *links.of(node, block.end_line))
            labels = []
            yield replace(block, pointers=pointers) if pointers else block


def _children(node: Any, context: _Context) -> list[tuple[Any, _Context]] | None:
    """Return the children of a node with their contexts, or None for a node that is a block itself."""
    if isinstance(node, nodes.table | nodes.line_block | nodes.TextElement | nodes.image):
        return None
    if isinstance(node, nodes.bullet_list | nodes.enumerated_list):
        return [(item, context.inside(_marker(node, index))) for index, item in enumerate(node.children)]
    children = node.children
    if isinstance(node, nodes.system_message):
        children = _quoted_blocks(node)
    elif isinstance(node, nodes.section):
        context = replace(context, depth=context.depth + 1)
    elif isinstance(node, nodes.definition_list_item):
        children = _with_classifiers(node)
    elif isinstance(node, nodes.definition):
        context = context.inside("    ")
    elif isinstance(node, nodes.footnote | nodes.citation):
        children = [child for child in children if child.tagname != "label"]
        context = context.inside(f"[{node[FOOTNOTE_LABEL]}] ")
    elif isinstance(node, nodes.field | nodes.option_list_item):
        label, *body = children
        children = [*body, nodes.paragraph()]  # writes the label even if the body is empty
        context = context.inside(f"{label.astext()}: ")
    return [(child, context) for child in children]


def _quoted_blocks(message: Any) -> list[Any]:
    """Return the text quoted in a system message, if it appears nowhere else."""
    lost = [*message.findall(nodes.literal_block)] if message["level"] >= _ERROR else []
    return [_title_as_term(block) for block in lost] if _MISPLACED in message.astext() else lost


def _title_as_term(block: Any) -> Any:
    """Return a title inside a directive, where docutils allows none, as a term for the text after it."""
    title = "\n".join(line for line in block.astext().splitlines() if _LETTER.search(line))
    term: Any = nodes.paragraph(title, "", nodes.Text(title))
    term[IS_TERM] = True
    return term


def _marker(listing: Any, index: int) -> str:
    """Return the bullet or number of an item in its list's style, with a full stop instead of parentheses."""
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
    """Return the parts of a definition list item, with its classifiers appended to the term."""
    term, *parts = item.children
    for part in parts:
        if isinstance(part, nodes.classifier):
            term += [nodes.Text(" : "), *part.children]
    return [term, *(part for part in parts if not isinstance(part, nodes.classifier))]


def _block(node: Any, context: _Context, line: int, language: str) -> Block:
    end_line = max(node.get(END_LINE, line + node.rawsource.rstrip().count("\n")), line)
    if node.tagname == "title":
        return heading_block(_inline(node), context.depth, line, end_line)
    if node.tagname in _VERBATIM:
        default = language if node.tagname == "literal_block" else ""
        return code_block(_inline(node), node.get("language") or default, line, end_line)
    if node.tagname == "table":
        rows = [[_cell(entry) for entry in row.children] for row in node.findall(lambda part: part.tagname == "row")]
        return table_block(rows, line, end_line)
    text = "\n".join(_lines(node)) if node.tagname == "line_block" else _inline(node)
    return Block(_kind(node, context), context.write(text), line, end_line)


def _cell(entry: Any) -> str:
    """Return the text of all blocks in a table cell."""
    texts = []
    stack = [entry]
    while stack:
        node = stack.pop()
        children = None if node.tagname in _SKIPPED else _children(node, _Context())
        if children is not None:
            stack.extend(child for child, _ in reversed(children))
        elif node.tagname == "table":
            texts.append(_block(node, _Context(), 0, "").text)
        elif node.tagname not in _SKIPPED:
            texts.append(" ".join(_lines(node)) if node.tagname == "line_block" else _inline(node))
    return " ".join(texts)


def _lines(line_block: Any) -> list[str]:
    """Return the lines of a line block, including nested ones."""
    return [_inline(line) for line in line_block.findall(lambda part: part.tagname == "line")]


def _kind(node: Any, context: _Context) -> BlockKind:
    if node.tagname == "term" or node.get(IS_TERM):
        return "term"
    return "item" if context.markers else "prose"


def _inline(node: Any) -> str:
    """Return the text of a block, with marked code spans and footnote labels."""
    parts = []
    for found in node.findall(lambda part: part.tagname == "#text" or part.tagname in _REFERENCES):
        if found.tagname in _REFERENCES:
            parts.append(found.rawsource.removesuffix("_"))
        elif found.parent.tagname not in _REFERENCES:
            shown = found.astext()
            parts.append(f"`{shown}`" if found.parent.tagname == "literal" else shown)
    return "".join(parts)


class _Links:
    """Resolver for the references in one tree. Anonymous references must be resolved in document order."""

    def __init__(self, tree: Any) -> None:
        self._tree = tree
        self._unnamed = tree.findall(lambda node: node.tagname == "target" and node.get("anonymous"))

    def labels(self, node: Any, line: int) -> Iterator[Pointer]:
        """Yield the names of a target that precedes what it names."""
        if node.tagname == "target" and "refuri" not in node and "refname" not in node:
            for name in node["names"]:
                yield Pointer("label", name, node.line or line)

    def of(self, block: Any, end_line: int) -> Iterator[Pointer]:
        """Yield the links in a block that ends on a given line."""
        if block.tagname in _CONTAINERS:
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
            pointer = self._pointer(part, line) if part.tagname in _LINKING else None
            if pointer:
                yield pointer
            if part.tagname != "target":  # the address inside a reference belongs to the reference
                line += part.rawsource.count("\n")

    def _pointer(self, reference: Any, line: int) -> Pointer | None:
        for attribute, kind in _ATTRIBUTES.items():
            if attribute in reference:
                return Pointer(kind, " ".join(reference[attribute].split()), line)
        if reference.tagname == "inline":
            return None
        if reference.get("anonymous"):
            reference = next(self._unnamed, reference)
        for _ in range(_MAX_STEPS):
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
