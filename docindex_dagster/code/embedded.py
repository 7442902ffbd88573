"""Code inside other files: the scripts of pages and components, the code of templates.

All else is blanked out, so a tree of what is left is one of the file: bytes and lines stay the same. It takes linear
time. Notebooks are read in `chunking/names.py`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING

from docindex_dagster.code.extract import Outline, extract
from docindex_dagster.code.languages import HOSTS
from docindex_dagster.code.markup import MARKUP
from docindex_dagster.code.parse import parse
from docindex_dagster.code.readings import BLANKS
from docindex_dagster.code.symbols import Symbol

if TYPE_CHECKING:
    from tree_sitter import Tree

_Span = tuple[int, int]

# A comment or script without an end goes on to that of the file, as in a browser.
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
_SCRIPTS = ("tsx", "typescript", "javascript")  # the first that a file has is that of all its scripts
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


@dataclass(frozen=True, slots=True)
class Embedded:
    """The code of a file in one language: a text with nothing else in it."""

    language: str
    source: bytes
    lines: Sequence[int] | None = None  # the line in the file of each line of the text, where these differ


@dataclass(frozen=True, slots=True)
class Code:
    """The parsed code of a file in one language, with its code in others."""

    tree: "Tree"
    outline: Outline  # of the code in this language
    language: str
    lines: Sequence[int] | None = None  # as in `Embedded`
    others: "tuple[Code, ...]" = ()

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """What it defines in this language, in file order."""
        return self.outline.symbols

    @property
    def outline_of_file(self) -> Outline:
        """The outline of the file in all languages; imports and exports are those of the first."""
        if not self.others:
            return self.outline
        outlines = [self.outline, *(code.outline for code in self.others)]
        symbols = [symbol for outline in outlines for symbol in outline.symbols]
        symbols.sort(key=lambda symbol: (symbol.start_byte, -symbol.end_byte))
        calls = sorted((one for each in outlines for one in each.calls), key=attrgetter("start_byte"))
        return replace(self.outline, symbols=tuple(symbols), calls=tuple(calls))


def read_code(data: bytes, language: str, tree: "Tree | None" = None) -> Code | None:
    """Parse the code of a file; None for a page, template or notebook without any.

    Args:
        data: the file as UTF-8.
        language: of the file.
        tree: of the whole file in its language, if it has been parsed.

    Raises:
        ParseError: there is no grammar for the language.
    """
    found = [*_embedded(data, language, tree)] if language in HOSTS else []
    codes = [parse_embedded(one) for one in found]
    if language not in _EMBEDDED:
        tree = tree or parse(data, language)
        codes.insert(0, Code(tree, extract(tree, data, language), language))
    if not codes:
        return None
    return replace(codes[0], others=tuple(codes[1:]))


def parse_embedded(found: Embedded) -> Code:
    """Parse the code of a file in one language."""
    tree = parse(found.source, found.language)
    return Code(tree, extract(tree, found.source, found.language), found.language, lines=found.lines)


def _embedded(data: bytes, language: str, tree: "Tree | None") -> Iterator[Embedded]:
    if language in _EMBEDDED:
        yield from _EMBEDDED[language](data, tree)
    if language in _TEMPLATED:  # where the page is written, code of the server stands for a value
        page = _TEMPLATED[language].sub(lambda match: b"0" + match[0][1:].translate(BLANKS), data)
        yield from _of_scripts(page, None)


def _of_scripts(data: bytes, _: "Tree | None") -> Iterator[Embedded]:
    language, spans = script_spans(data)
    if language:
        yield Embedded(language, bytes(_only(data, spans)))


def _of_component(host: str, data: bytes, tree: "Tree | None") -> Iterator[Embedded]:
    """The scripts of a component, and what its markup evaluates."""
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
    """The language of the scripts of a page, and where they are; "" for no script."""
    found = [
        (language, match.span("code"))
        for match in _SCRIPT.finditer(data)
        if match["code"] and (language := _language(match["attributes"]))
    ]
    languages = {language for language, _ in found}
    return next((one for one in _SCRIPTS if one in languages), ""), [span for _, span in found]


def _language(attributes: bytes) -> str:
    """The language of a script with these attributes; "" where it is data, a template or in another file."""
    named = {name.lower(): value.decode("utf-8", "replace").lower() for name, value in _ATTRIBUTE.findall(attributes)}
    if b"src" in named:
        return ""
    return _SCRIPT_LANGUAGES.get(named.get(b"lang") or named.get(b"type") or "js", "")


def _of_template(language: str, data: bytes, _: "Tree | None") -> Iterator[Embedded]:
    """The code between `<%` and `%>`."""
    spans = [
        match.span("code")
        for match in _TEMPLATE.finditer(data)
        if match["kind"] not in {b"%", b"#"} and not match["code"].lstrip().startswith(b"#")
    ]
    if spans:
        yield Embedded(language, bytes(_only(data, spans)))


def _of_razor(data: bytes, _: "Tree | None") -> Iterator[Embedded]:
    """The blocks of C#, the namespaces that a page uses, and the methods that handle its events."""
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
    """Where the bracket stands that closes the block of C# that starts at a byte."""
    depth = 1
    for match in _CSHARP.finditer(data, start):
        depth += (match[0] == b"{") - (match[0] == b"}")
        if depth == 0:
            return match.start()
    return len(data)


def _only(data: bytes, spans: Sequence[_Span]) -> bytearray:
    """A text as long as another, with some spans of it alone, each of which ends a statement."""
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
"""By the language of a file, what reads the code in it."""

_TEMPLATED: Mapping[str, re.Pattern[bytes]] = MappingProxyType(
    {"ejs": _TEMPLATE, "embeddedtemplate": _TEMPLATE, "php": _PHP}
)
"""Languages of templates of pages, with what is code of the server in them."""
