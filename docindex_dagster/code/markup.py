"""What the markup of components evaluates: expressions, handlers of events, and the components that it uses.

Each is written at its place into a text that is as long as the file. A component is called where it is used, and so is
a handler of events that is only named.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

    Write = Callable[[bytearray, bytes, Node], None]

_COMPONENT = re.compile(rb"[A-Z][\w$]*(?:\.[A-Za-z_$][\w$]*)*(?=[\s/>])")
_NAME = re.compile(rb"\s*[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*\s*")
_TAGS = frozenset({"start_tag", "self_closing_tag"})
_LOOP = re.compile(rb"v-for\s*=\s*[\"'][^\"']*?\s(?:in|of)\s")
_VUE_HANDLER = re.compile(rb"@|v-on:")
_SVELTE_HANDLER = re.compile(rb"on(?::|[a-z]+\s*=)")
# What holds an expression and declares no name.
_SVELTE_HOLDERS = frozenset(
    {"expression", "html_expr", "const_expr", "debug_expr", "if_start_expr", "else_if_expr", "key_start_expr"}
)
_SVELTE_EXPRESSIONS = frozenset({"raw_text_each", "raw_text_await"})
_ASTRO_EXPRESSIONS = frozenset({"attribute_js_expr", "permissible_text"})


def _write_vue(source: bytearray, data: bytes, root: "Node") -> None:
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "interpolation":
            for part in _of_type(node, "raw_text"):
                _write(source, data, part.start_byte, part.end_byte)
        elif node.type == "directive_attribute":
            _write_directive(source, data, node)
        else:
            if node.type in _TAGS:
                _write_component(source, data, node)
            stack += reversed(node.children)


def _write_directive(source: bytearray, data: bytes, node: "Node") -> None:
    for quoted in _of_type(node, "quoted_attribute_value"):
        start, end = quoted.start_byte + 1, quoted.end_byte - 1
        loop = _LOOP.match(data, node.start_byte, end)
        start = loop.end() if loop else start
        if _VUE_HANDLER.match(data, node.start_byte):
            _write_handler(source, data, start, end)
        elif start < end:
            _write(source, data, start, end)
            source[start - 1], source[end] = b"()"  # an object is no block
            _set(source, start - 2, b";")


def _write_svelte(source: bytearray, data: bytes, root: "Node") -> None:
    stack = [(root, False)]
    while stack:
        node, is_handler = stack.pop()
        if node.type in _SVELTE_HOLDERS:
            for part in _of_type(node, "raw_text_expr"):
                (_write_handler if is_handler else _write)(source, data, part.start_byte, part.end_byte)
        elif node.type in _SVELTE_EXPRESSIONS:
            _write(source, data, node.start_byte, node.end_byte)
        else:
            if node.type in _TAGS:
                _write_component(source, data, node)
            elif node.type == "attribute":
                is_handler = _SVELTE_HANDLER.match(data, node.start_byte) is not None
            stack += [(child, is_handler) for child in reversed(node.children)]


def _write_astro(source: bytearray, data: bytes, root: "Node") -> None:
    """Markup in an expression is a value in it, and expressions in that are indices of the value: `0[a][b]`."""
    stack = [(root, 0, False)]
    while stack:
        node, depth, is_value = stack.pop()  # how many expressions are around, and whether markup begins in one
        inner, begins_value = depth, False
        if node.type in _ASTRO_EXPRESSIONS:
            start = node.start_byte + (3 if data.startswith(b"...", node.start_byte) else 0)
            source[start : node.end_byte] = data[start : node.end_byte]
        elif node.type in {"attribute_interpolation", "html_interpolation"}:
            source[node.start_byte], source[node.end_byte - 1] = b"[]" if depth else b";;"
            inner, begins_value = depth + 1, True
        elif node.type == "element":
            begins_value = is_value
        elif node.type in _TAGS:
            if is_value:
                _set(source, node.start_byte, b"0")
            _write_component(source, data, node, b"" if is_value else b"[]" if depth else b";")
        is_element = node.type == "element"
        stack += [
            (child, inner, begins_value and (not is_element or child.type in _TAGS))
            for child in reversed(node.children)
        ]


def _of_type(node: "Node", kind: str) -> "Iterator[Node]":
    return (child for child in node.children if child.type == kind)


def _write(source: bytearray, data: bytes, start: int, end: int) -> None:
    """Write an expression as a statement."""
    source[start:end] = data[start:end]
    _set(source, start - 1, b";")
    _set(source, end, b";")


def _write_handler(source: bytearray, data: bytes, start: int, end: int) -> None:
    """Write what handles an event: statements, a function, or the name of one, which is called."""
    _write(source, data, start, end)
    free = _free(data, end, 2) if _NAME.fullmatch(data, start, end) else ()
    for at, sign in zip(free, b"()", strict=False):
        source[at] = sign


def _write_component(source: bytearray, data: bytes, tag: "Node", around: bytes = b";") -> None:
    """Write the call of a component, where a tag is one: as a statement, or in brackets beside a value."""
    start = tag.start_byte
    name = _COMPONENT.match(data, start + 1)
    if name is None:
        return
    after = b")" + around[1:]
    free = _free(data, name.end(), len(after))
    if not free or (around == b"[]" and source[start - 1] not in b" \t"):
        return
    if around:
        _set(source, start - 1, around[:1])
    source[start : name.end()] = name[0] + b"("
    for at, sign in zip(free, after, strict=True):
        source[at] = sign


def _free(data: bytes, start: int, count: int) -> list[int]:
    """The places of the next bytes that end no line; none where another tag or expression begins among them."""
    found: list[int] = []
    for at in range(start, len(data)):
        if len(found) == count or data[at] in b"{<":
            break
        if data[at] not in b"\r\n":
            found.append(at)
    return found if len(found) == count else []


def _set(source: bytearray, at: int, sign: bytes) -> None:
    """Write a sign where nothing else is written."""
    if 0 <= at < len(source) and source[at] in b" \t":
        source[at : at + 1] = sign


MARKUP: Mapping[str, "Write"] = MappingProxyType({"astro": _write_astro, "svelte": _write_svelte, "vue": _write_vue})
"""By the language of a component, what writes the expressions of its markup into a text of its scripts."""
