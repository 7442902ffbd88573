"""Code embedded in other files: scripts in pages and components, and code in templates.

Everything else is blanked out, so byte offsets and lines of the code's tree are those of the file. This takes linear
time. For the markup of a component, the code it evaluates is written in place: expressions, event handlers and a call
to each component it uses. Notebooks are handled in `chunking/references.py`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING

from docindex_dagster.code.extraction import Outline, extract
from docindex_dagster.code.languages import HOSTS
from docindex_dagster.code.parsers import parse
from docindex_dagster.code.source_rewrites import BLANKS
from docindex_dagster.code.symbols import Symbol

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

    Write = Callable[[bytearray, bytes, Node], None]

_Span = tuple[int, int]

# An unclosed comment or script extends to the end of the file, as in a browser.
_SCRIPT = re.compile(
    rb"<!--.*?(?:-->|\Z)|<script(?=[\s/>])(?P<attributes>(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^>\"'])*+)"
    rb"(?:(?<=/)>|>?(?P<code>.*?)(?:</script\b|\Z))",
    re.IGNORECASE | re.DOTALL,
)
_ATTRIBUTE = re.compile(rb"(?<![\w:-])(lang|type|src)\s*=\s*[\"']?([^\s\"'>]*)", re.IGNORECASE)
_SCRIPT_TYPES = {
    "javascript": "js javascript jsx module babel ecmascript x-javascript",
    "typescript": "ts typescript",
    "tsx": "tsx",
}
_SCRIPT_LANGUAGES = {
    f"{before}{name}": language
    for language, names in _SCRIPT_TYPES.items()
    for name in names.split()
    for before in ("", "text/", "application/")
}
_SCRIPTS = ("tsx", "typescript", "javascript")  # the first one used in a file applies to all of its scripts
_FRONT_MATTER = re.compile(rb"(?:\xef\xbb\xbf)?\s*---(?P<code>.*?\n)---", re.DOTALL)
_TEMPLATE = re.compile(rb"<%(?P<kind>[%#=_-]?)(?P<code>.*?)(?:[-_]?%>|\Z)", re.DOTALL)
_PHP = re.compile(rb"<\?(?:php\b|=).*?(?:\?>|\Z)", re.DOTALL | re.IGNORECASE)
_RAZOR = re.compile(
    rb"@\*.*?(?:\*@|\Z)|^[ \t]*@using[ \t]+(?P<using>[\w.]+)|@(?:code|functions)?\s*\{|"
    rb"@on\w+(?::\w+)?=\"@?(?P<handler>\w+)\"",
    re.DOTALL | re.MULTILINE,
)
_CSHARP = re.compile(
    rb"//[^\n]*|/\*.*?(?:\*/|\Z)|@\"(?:[^\"]|\"\")*+(?:\"|\Z)|\"(?:\\.|[^\"\\\n])*+\"?|'(?:\\.|[^'\\\n])'|[{}]",
    re.DOTALL,
)
_ACCESSORS = re.compile(rb"\{\s*(?:\w+\s+)?(?:get|set|init)\s*;[^{}]*\}")
_COMPONENT = re.compile(rb"[A-Z][\w$]*(?:\.[A-Za-z_$][\w$]*)*(?=[\s/>])")
_NAME = re.compile(rb"\s*[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*\s*")
_TAGS = frozenset({"start_tag", "self_closing_tag"})
_LOOP = re.compile(rb"v-for\s*=\s*[\"'][^\"']*?\s(?:in|of)\s")
_VUE_HANDLER = re.compile(rb"@|v-on:")
_SVELTE_HANDLER = re.compile(rb"on(?::|[a-z]+\s*=)")
# Nodes that contain an expression and declare no name.
_SVELTE_HOLDERS = frozenset(
    {"expression", "html_expr", "const_expr", "debug_expr", "if_start_expr", "else_if_expr", "key_start_expr"}
)
_SVELTE_EXPRESSIONS = frozenset({"raw_text_each", "raw_text_await"})
_ASTRO_EXPRESSIONS = frozenset({"attribute_js_expr", "permissible_text"})


@dataclass(frozen=True, slots=True)
class Embedded:
    """The code of a file in one language, with everything else blanked out."""

    language: str
    source: bytes
    lines: Sequence[int] | None = None  # maps lines of `source` to lines of the file, if they differ


@dataclass(frozen=True, slots=True)
class Code:
    """The parsed code of a file in its main language, and its code in other languages."""

    tree: "Tree"
    outline: Outline  # only of the code in this language
    language: str
    lines: Sequence[int] | None = None  # as in `Embedded`
    others: "tuple[Code, ...]" = ()

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """The symbols defined in this language, in file order."""
        return self.outline.symbols

    @property
    def outline_of_file(self) -> Outline:
        """The outline of the file across all languages; imports and exports are those of the main language."""
        if not self.others:
            return self.outline
        outlines = [self.outline, *(code.outline for code in self.others)]
        symbols = [symbol for outline in outlines for symbol in outline.symbols]
        symbols.sort(key=lambda symbol: (symbol.start_byte, -symbol.end_byte))
        calls = sorted((call for outline in outlines for call in outline.calls), key=attrgetter("start_byte"))
        return replace(self.outline, symbols=tuple(symbols), calls=tuple(calls))


def read_code(data: bytes, language: str, tree: "Tree | None" = None) -> Code | None:
    """Parse the code of a file. Return None for a page, template or notebook without code.

    Args:
        data: the file as UTF-8.
        language: the language of the file.
        tree: the tree of the file, if it has been parsed.

    Raises:
        ParseError: there is no grammar for the language.
    """
    embedded = [*_embedded(data, language, tree)] if language in HOSTS else []
    codes = [parse_embedded(code) for code in embedded]
    if language not in _EMBEDDED:
        tree = tree or parse(data, language)
        codes.insert(0, Code(tree, extract(tree, data, language), language))
    if not codes:
        return None
    return replace(codes[0], others=tuple(codes[1:]))


def parse_embedded(embedded: Embedded) -> Code:
    """Parse the code of a file in one language."""
    tree = parse(embedded.source, embedded.language)
    return Code(tree, extract(tree, embedded.source, embedded.language), embedded.language, lines=embedded.lines)


def _embedded(data: bytes, language: str, tree: "Tree | None") -> Iterator[Embedded]:
    if language in _EMBEDDED:
        yield from _EMBEDDED[language](data, tree)
    if language in _TEMPLATED:  # in the page, server-side code is replaced with a value
        page = _TEMPLATED[language].sub(lambda match: b"0" + match[0][1:].translate(BLANKS), data)
        yield from _of_scripts(page, None)


def _of_scripts(data: bytes, _: "Tree | None") -> Iterator[Embedded]:
    language, spans = script_spans(data)
    if language:
        yield Embedded(language, bytes(_only(data, spans)))


def _of_component(host: str, data: bytes, tree: "Tree | None") -> Iterator[Embedded]:
    """Yield the scripts of a component, including the code that its markup evaluates."""
    language, spans = script_spans(data)
    front = _FRONT_MATTER.match(data) if host == "astro" else None
    if front:
        spans = [front.span("code"), *spans]
    if host == "astro":
        language = "typescript"
    source = _only(data, spans)
    MARKUP[host](source, data, (tree or parse(data, host)).root_node)
    if source.strip():
        yield Embedded(language or "javascript", bytes(source))


def script_spans(data: bytes) -> tuple[str, list[_Span]]:
    """Return the language and the spans of the scripts in a page; the language is "" if there are none."""
    found = [
        (language, match.span("code"))
        for match in _SCRIPT.finditer(data)
        if match["code"] and (language := _language(match["attributes"]))
    ]
    languages = {language for language, _ in found}
    return next((language for language in _SCRIPTS if language in languages), ""), [span for _, span in found]


def _language(attributes: bytes) -> str:
    """Return the language of a script with these attributes; "" for data, a template or a link to a file."""
    named = {name.lower(): value.decode("utf-8", "replace").lower() for name, value in _ATTRIBUTE.findall(attributes)}
    if b"src" in named:
        return ""
    return _SCRIPT_LANGUAGES.get(named.get(b"lang") or named.get(b"type") or "js", "")


def _of_template(language: str, data: bytes, _: "Tree | None") -> Iterator[Embedded]:
    """Yield the code between `<%` and `%>`."""
    spans = [
        match.span("code")
        for match in _TEMPLATE.finditer(data)
        if match["kind"] not in {b"%", b"#"} and not match["code"].lstrip().startswith(b"#")
    ]
    if spans:
        yield Embedded(language, bytes(_only(data, spans)))


def _of_razor(data: bytes, _: "Tree | None") -> Iterator[Embedded]:
    """Yield the C# blocks of a page, its `@using` namespaces and the methods that handle its events."""
    source = bytearray(data.translate(BLANKS))
    end = 0
    while match := _RAZOR.search(data, end):
        end = match.end()
        if match["using"]:
            start = match.start("using") - len("using ")
            source[start - 1 : end] = b"using " + match["using"] + b";"
        elif match["handler"]:
            source[match.start("handler") - 1 : end + 1] = b";" + match["handler"] + b"()"
        elif match[0].endswith(b"{"):
            start, end = end, _end_of_block(data, end)
            source[start:end] = _ACCESSORS.sub(lambda found: b";" + found[0][1:].translate(BLANKS), data[start:end])
    if source.strip():
        yield Embedded("csharp", bytes(source))


def _end_of_block(data: bytes, start: int) -> int:
    """Return the offset of the brace that closes the C# block starting at `start`."""
    depth = 1
    for match in _CSHARP.finditer(data, start):
        depth += (match[0] == b"{") - (match[0] == b"}")
        if depth == 0:
            return match.start()
    return len(data)


def _only(data: bytes, spans: Sequence[_Span]) -> bytearray:
    """Return a copy of `data` that keeps only some spans, each terminated as a statement."""
    source = bytearray(data.translate(BLANKS))
    for start, end in spans:
        source[start:end] = data[start:end]
        if data[end : end + 1].strip():
            source[end] = ord(";")
    return source


_EMBEDDED: Mapping[str, Callable[[bytes, "Tree | None"], Iterator[Embedded]]] = MappingProxyType(
    {
        "astro": lambda data, tree: _of_component("astro", data, tree),
        "ejs": lambda data, tree: _of_template("javascript", data, tree),
        "embeddedtemplate": lambda data, tree: _of_template("ruby", data, tree),
        "html": _of_scripts,
        "razor": _of_razor,
        "svelte": lambda data, tree: _of_component("svelte", data, tree),
        "vue": lambda data, tree: _of_component("vue", data, tree),
    }
)
"""Functions that extract the embedded code of a file, by language of the file."""

_TEMPLATED: Mapping[str, re.Pattern[bytes]] = MappingProxyType(
    {"ejs": _TEMPLATE, "embeddedtemplate": _TEMPLATE, "php": _PHP}
)
"""Patterns of the server-side code in page templates, by template language."""


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
            source[start - 1], source[end] = b"()"  # so that an object does not parse as a block
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
    """Write markup inside an expression as a value, and expressions inside that as subscripts of it: `0[a][b]`."""
    stack = [(root, 0, False)]
    while stack:
        node, depth, is_value = stack.pop()  # depth: enclosing expressions; is_value: markup starts in an expression
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
    """Write an event handler: statements, a function, or the name of a function, which is turned into a call."""
    _write(source, data, start, end)
    free = _free_offsets(data, end, 2) if _NAME.fullmatch(data, start, end) else ()
    for at, char in zip(free, b"()", strict=False):
        source[at] = char


def _write_component(source: bytearray, data: bytes, tag: "Node", around: bytes = b";") -> None:
    """Write a component tag as a call: as a statement, or as a subscript next to a value."""
    start = tag.start_byte
    name = _COMPONENT.match(data, start + 1)
    if name is None:
        return
    after = b")" + around[1:]
    free = _free_offsets(data, name.end(), len(after))
    if not free or (around == b"[]" and source[start - 1] not in b" \t"):
        return
    if around:
        _set(source, start - 1, around[:1])
    source[start : name.end()] = name[0] + b"("
    for at, char in zip(free, after, strict=True):
        source[at] = char


def _free_offsets(data: bytes, start: int, count: int) -> list[int]:
    """Return the offsets of the next bytes that are not newlines; none if another tag or expression starts there."""
    found: list[int] = []
    for at in range(start, len(data)):
        if len(found) == count or data[at] in b"{<":
            break
        if data[at] not in b"\r\n":
            found.append(at)
    return found if len(found) == count else []


def _set(source: bytearray, at: int, char: bytes) -> None:
    """Write a character unless the position is already used."""
    if 0 <= at < len(source) and source[at] in b" \t":
        source[at : at + 1] = char


MARKUP: Mapping[str, "Write"] = MappingProxyType({"astro": _write_astro, "svelte": _write_svelte, "vue": _write_vue})
"""Functions that write the expressions of a component's markup into its script source, by component language."""
