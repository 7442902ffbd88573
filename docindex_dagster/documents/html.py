"""HTML loader: the main content of a page as plain Markdown blocks, with its links and anchors.

Page furniture (navigation, header, footer, sidebars, forms, scripts, styles) is left out. The tree is walked with an
explicit stack. Pages with absurdly deep nesting are refused, since any HTML5 parser takes quadratic time on them.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from docindex_dagster.documents.model import (
    MAX_TITLE,
    Block,
    BlockKind,
    Document,
    Pointer,
    PointerKind,
    SourceLines,
    build_sections,
    code_block,
    heading_block,
    table_block,
    with_separators,
    words,
)

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_MAX_OPEN_TAGS = 1_000
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*)")
# These elements have no content, or are closed by the next element of their kind.
_NOT_NESTED = words("a area base br col dd dt hr img input li link meta option p source td th tr track wbr")
_MAIN = ("main", '[role="main"]', "article")
_NEVER = words(
    "button canvas dialog embed footer head iframe input math nav noscript object script select style svg "
    "template textarea"
)
_OUTSIDE_MAIN = _NEVER | {"aside", "header"}
_DECORATION = words("headerlink hash-link linenos lineno linenodiv gutter")
_BLOCKS = words(
    "address article aside blockquote body center dd details div dl dt fieldset figcaption figure form "
    "header hr legend li main ol p section summary table tbody td tfoot th thead tr ul"
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_CELLS = frozenset(["td", "th"])
_SPACE = re.compile(r"\s+")
_LANGUAGE = re.compile(r"\b(?:language|lang|highlight-source|highlight)-(\w[\w+#-]*)")


def load_html(text: str) -> Document:
    """Read a page. Line numbers are those where the text of a block is found in the file.

    Raises:
        ValueError: The tags are nested too deeply.
    """
    from selectolax.lexbor import LexborHTMLParser

    _check_nesting(text)
    page = LexborHTMLParser(text)
    root, is_main = _main_content(page)
    blocks = with_separators([*_Reader(text, root, is_main=is_main).blocks()]) if root is not None else []
    head_title = page.css_first("title")
    title = " ".join(head_title.text().split())[:MAX_TITLE] if head_title is not None else ""
    return Document(title=title or None, sections=build_sections(blocks), transformed=True)


def _check_nesting(text: str) -> None:
    opened: Counter[str] = Counter()
    depth = 0
    for match in _TAG.finditer(text):
        name = match[2].lower()
        if name in _NOT_NESTED:
            continue
        if not match[1]:
            opened[name] += 1
            depth += 1
        elif opened[name]:
            opened[name] -= 1
            depth -= 1
        if depth > _MAX_OPEN_TAGS:
            raise ValueError(f"more than {_MAX_OPEN_TAGS} tags are open at the same time")


def _main_content(page: "LexborHTMLParser") -> tuple["LexborNode | None", bool]:
    """Return the element that contains the main content, and whether the page marks it as such."""
    for selector in _MAIN:
        found = page.css(selector)
        if len(found) == 1:
            return found[0], True
    return page.body, False


class _Reader:
    """Tree walker that collects running text until a block ends."""

    def __init__(self, text: str, root: "LexborNode", *, is_main: bool) -> None:
        source = html.unescape(text)
        self._lines = SourceLines(source, source.find(f"<{root.tag}"))
        self._root = root
        self._skipped_tags = _NEVER if is_main else _OUTSIDE_MAIN
        self._running: list[str] = []
        self._lists: list[int | None] = []  # last item number of each open list; None for bullet lists
        self._marker = ""
        self._in_term = False
        self._pending_pointers: list[tuple[PointerKind, str]] = []  # links and anchors of the next block

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks of the content in order."""
        stack = [(self._root, False)]
        while stack:
            node, is_left = stack.pop()
            tag = node.tag or ""
            if is_left:
                yield from self._cross(tag, is_left=True)
            elif node.is_text_node:
                self._running.append(node.text_content or "")
            elif not node.is_element_node or self._is_skipped(node):
                continue
            elif tag == "br":
                self._running.append(_BREAK)
            elif tag == "pre" or tag in _HEADINGS or (tag == "table" and not _is_layout(node)):
                yield from self._flush()
                yield from self._leaf(tag, node)
            else:
                yield from self._cross(tag, is_left=False)
                self._note(node)
                stack.append((node, True))
                stack.extend((child, False) for child in reversed([*node.iter(include_text=True)]))
        yield from self._flush()

    def _is_skipped(self, node: "LexborNode") -> bool:
        if node.tag in self._skipped_tags:
            return True
        attributes = node.attributes
        classes = (attributes.get("class") or "").split()
        return attributes.get("role") == "navigation" or not _DECORATION.isdisjoint(classes)

    def _cross(self, tag: str, *, is_left: bool) -> Iterator[Block]:
        """Enter or leave an element."""
        if tag in _BLOCKS:
            yield from self._flush()
        if tag in {"ul", "ol"} and is_left:
            self._lists.pop()
        elif tag in {"ul", "ol"}:
            self._lists.append(0 if tag == "ol" else None)
        elif tag == "li":
            self._marker = "" if is_left else self._next_marker()
        elif tag == "dt":
            self._in_term = not is_left
        elif tag == "code":
            self._running.append("`")

    def _next_marker(self) -> str:
        indent = "  " * (len(self._lists) - 1)
        if not self._lists or self._lists[-1] is None:
            return f"{indent}- "
        self._lists[-1] += 1
        return f"{indent}{self._lists[-1]}. "

    def _flush(self) -> Iterator[Block]:
        """End the block of running text."""
        lines = _tidy("".join(self._running))
        if lines:
            before = self._lines.position
            start, end = self._span(self._running)
            text = self._marker + "\n".join(lines)
            kind: BlockKind = "term" if self._in_term else "item" if self._lists else "prose"
            yield self._with_pointers(Block(kind, text, start, end), before)
            self._marker = ""
        self._running = []

    def _leaf(self, tag: str, node: "LexborNode") -> Iterator[Block]:
        texts = [*self._texts(node)]
        text = "".join(texts)
        if not text.strip():
            return
        before = self._lines.position
        start, end = self._span(texts)
        for element in node.css("a, [id]"):
            if not self._is_skipped(element):
                self._note(element)
        yield self._with_pointers(self._block(tag, node, text, (start, end)), before)

    def _block(self, tag: str, node: "LexborNode", text: str, lines: tuple[int, int]) -> Block:
        if tag == "pre":
            return code_block(text.replace(_BREAK, "\n").strip("\n"), _language(node), *lines)
        if tag == "table":
            rows = [self._row(row) for row in node.css("caption, tr")]
            return table_block([row for row in rows if row], *lines)
        return heading_block(" ".join(_tidy(text)), _HEADINGS[tag], *lines)

    def _note(self, node: "LexborNode") -> None:
        """Record the link and the anchors of an element."""
        if node.id:
            self._pending_pointers.append(("anchor", node.id))
        if node.tag == "a":
            attributes = node.attributes
            named: tuple[tuple[PointerKind, str | None], ...] = (
                ("anchor", attributes.get("name")),
                ("link", attributes.get("href")),
            )
            self._pending_pointers += [(kind, name.strip()) for kind, name in named if name and name != node.id]

    def _with_pointers(self, block: Block, before: int) -> Block:
        """Return a block with its links and anchors, which are after a given position in the file."""
        if not self._pending_pointers:
            return block
        pointers = []
        for kind, name in self._pending_pointers:
            line = self._lines.line_behind(before, f'"{name}"') if kind == "link" else None
            pointers.append(Pointer(kind, name, line or block.start_line))
        self._pending_pointers = []
        return replace(block, pointers=tuple(pointers))

    def _row(self, row: "LexborNode") -> list[str]:
        cells = [row] if row.tag == "caption" else [cell for cell in row.iter() if cell.tag in _CELLS]
        return [" ".join(_tidy("".join(self._texts(cell)))) for cell in cells]

    def _texts(self, root: "LexborNode") -> Iterator[str]:
        """Yield all text in an element, in order."""
        stack = [root]
        while stack:
            node = stack.pop()
            if node.is_text_node:
                yield node.text_content or ""
            elif node.tag == "br":
                yield _BREAK
            elif node.is_element_node and (node is root or not self._is_skipped(node)):
                stack.extend(reversed([*node.iter(include_text=True)]))

    def _span(self, texts: list[str]) -> tuple[int, int]:
        """Return the lines of the first and the last of the texts."""
        lines = [line.strip() for text in texts for line in text.splitlines() if line.strip(_MARKS)]
        start = self._lines.line_of(lines[0] if lines else "")
        return start, self._lines.line_of(lines[-1] if lines else "")


_BREAK = "\N{LINE SEPARATOR}"
_MARKS = " \t\r\n`" + _BREAK


def _tidy(text: str) -> list[str]:
    """Return lines with normalized whitespace; only a line break element ends a line."""
    lines = (_SPACE.sub(" ", line).strip() for line in text.split(_BREAK))
    return [line for line in lines if line.strip("`")]


def _is_layout(table: "LexborNode") -> bool:
    """Return whether a table contains elements that a text cell cannot represent."""
    return any(found.mem_id != table.mem_id for found in table.css("pre, table"))


def _language(pre: "LexborNode") -> str:
    """Return the language named in a class of a code block, its code element or its parent elements."""
    code = pre.css_first("code")
    parent = pre.parent
    around = [code, pre, parent, parent.parent if parent is not None else None]
    for node in around:
        classes = (node.attributes.get("class") or "") if node is not None else ""
        match = _LANGUAGE.search(classes)
        if match:
            return match[1]
    return ""
