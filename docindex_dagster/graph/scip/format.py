"""SCIP format: its messages, symbol names and files.

The messages are a subset of `scip.proto` from https://github.com/sourcegraph/scip (Apache-2.0), with the same field
names, numbers and types. Protocol Buffers skips omitted fields, such as diagnostics, when it reads a file. A symbol is
`SCHEME MANAGER PACKAGE VERSION DESCRIPTORS`, or `local NUMBER` within a file:

    scip-python python click 8.2 `click.core`/Context#invoke().

`Context#` is a type, and `invoke().` a method in it. Spaces within a part, and backticks within a quoted name, are
doubled.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from docindex_dagster.core.errors import ScipError
from docindex_dagster.sources.paths import read_regular

# Type and name of each field, by message and number. Types with a capital letter are messages; `*` means repeated.
_FIELDS: Mapping[str, Mapping[int, str]] = {
    "Index": {1: "Metadata metadata", 2: "Document* documents", 3: "SymbolInformation* external_symbols"},
    "Metadata": {
        1: "int32 version",
        2: "ToolInfo tool_info",
        3: "string project_root",
        4: "int32 text_document_encoding",
    },
    "ToolInfo": {1: "string name", 2: "string version", 3: "string* arguments"},
    "Document": {
        1: "string relative_path",
        2: "Occurrence* occurrences",
        3: "SymbolInformation* symbols",
        4: "string language",
        5: "string text",
        6: "int32 position_encoding",
    },
    "Occurrence": {
        1: "int32* range",
        2: "string symbol",
        3: "int32 symbol_roles",
        7: "int32* enclosing_range",
    },
    "SymbolInformation": {
        1: "string symbol",
        3: "string* documentation",
        4: "Relationship* relationships",
        5: "int32 kind",
        6: "string display_name",
        8: "string enclosing_symbol",
    },
    "Relationship": {
        1: "string symbol",
        2: "bool is_reference",
        3: "bool is_implementation",
        4: "bool is_type_definition",
        5: "bool is_definition",
    },
}

DEFINITION = 1
"""Role of an occurrence that defines its symbol; roles are bits."""

UTF8_TEXT = 1
"""Text encoding of files (`text_document_encoding`)."""

UTF8, UTF16, UTF32 = 1, 2, 3
"""Units of columns: bytes, UTF-16 code units or characters (`position_encoding`)."""
TYPE, METHOD, TERM, NAMESPACE, MACRO = "#", "().", ".", "/", "!"
_PARTS = 4  # parts before the descriptors
_WRITTEN_NAME = r"(?:[\w+$-]+|`(?:[^`]|``)+`)"
_DESCRIPTOR = re.compile(
    rf"(?P<name>{_WRITTEN_NAME})(?:\([\w+$-]*\)(?P<method>\.)|(?P<suffix>[/#.:!]))|\[(?P<generic>{_WRITTEN_NAME})\]|\((?P<parameter>{_WRITTEN_NAME})\)"
)
_PLAIN = re.compile(r"[\w+$-]+", re.ASCII)
MOST_BYTES = 256 << 20
_NON_WORD = re.compile(r"[^\w.+-]+", re.ASCII)
_LONGEST_NAME = 40  # characters in the name of a tool


@cache
def index_message() -> Any:
    """Return the class of the message that a SCIP file holds."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="docindex/scip.proto", package="scip", syntax="proto3")
    types = descriptor_pb2.FieldDescriptorProto
    scalars = {"int32": types.TYPE_INT32, "string": types.TYPE_STRING, "bool": types.TYPE_BOOL}
    for message, fields in _FIELDS.items():
        described = file.message_type.add(name=message)
        for number, field in fields.items():
            kind, name = field.split()
            label = types.LABEL_REPEATED if kind.endswith("*") else types.LABEL_OPTIONAL
            kind = kind.removesuffix("*")
            added = described.field.add(name=name, number=number, label=label)
            if kind in scalars:
                added.type = scalars[kind]
            else:
                added.type, added.type_name = types.TYPE_MESSAGE, f".scip.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("scip.Index"))


class Descriptor(NamedTuple):
    """Part of a symbol: its name, and its kind, given by a suffix."""

    name: str
    suffix: str


class Symbol(NamedTuple):
    """Global symbol, which other files may reference."""

    package: str  # scheme, manager, name and version
    descriptors: tuple[Descriptor, ...]

    @property
    def name(self) -> str:
        """Name of the symbol, without its containers."""
        return self.descriptors[-1].name

    @property
    def is_callable(self) -> bool:
        """Whether it is a function, a class or a macro."""
        return self.descriptors[-1].suffix in {METHOD, TYPE, MACRO}


@lru_cache(maxsize=100_000)
def parse_symbol(text: str) -> Symbol | None:
    """Parse a global symbol; return None for local and invalid ones.

    A symbol that ends within a descriptor is invalid.
    """
    parts = text.replace("  ", "\0").split(" ", _PARTS)
    if len(parts) <= _PARTS or parts[0] == "local":
        return None
    descriptors = parts[_PARTS].replace("\0", "  ")
    found, at = [], 0
    while at < len(descriptors):
        match = _DESCRIPTOR.match(descriptors, at)
        if match is None:
            return None
        found.append(_descriptor(match))
        at = match.end()
    return Symbol(" ".join(parts[:_PARTS]), tuple(found)) if found else None


def _descriptor(match: re.Match[str]) -> Descriptor:
    if match["name"] is not None:
        return Descriptor(_unquoted(match["name"]), METHOD if match["method"] else match["suffix"])
    if match["generic"] is not None:
        return Descriptor(_unquoted(match["generic"]), "[]")
    return Descriptor(_unquoted(match["parameter"]), "()")


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def format_symbol(scheme: str, manager: str, name: str, version: str, descriptors: Iterable[Descriptor]) -> str:
    """Return a symbol in SCIP notation; an empty part becomes a dot."""
    parts = (part.replace(" ", "  ") or "." for part in (scheme, manager, name, version))
    return f"{' '.join(parts)} {''.join(map(_written_descriptor, descriptors))}"


def _written_descriptor(descriptor: Descriptor) -> str:
    name = descriptor.name
    return f"{name if _PLAIN.fullmatch(name) else _quoted(name)}{descriptor.suffix}"


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


class Occurrence(NamedTuple):
    """Name in a document, with its position and symbol. Lines and columns count from 0."""

    line: int
    start: int
    end: int
    symbol: str
    is_definition: bool


@dataclass(frozen=True, slots=True)
class Document:
    """Indexed file."""

    path: str  # relative to the root of the index, as written there
    text: str  # usually "", because the index omits it
    encoding: int  # unit of columns: UTF8, UTF16 or UTF32
    found: Sequence[Any]  # the raw occurrences

    def occurrences(self) -> Iterator[Occurrence]:
        """Yield the names that do not span lines, in index order.

        Raises:
            ScipError: A range is invalid.
        """
        for raw in self.found:
            line, start, *end = raw.range if len(raw.range) in {3, 4} else (-1, 0, 0)
            if min(line, start, *end) < 0:
                raise ScipError(f"invalid range: {[*raw.range]}")
            if len(end) == 1 or end[0] == line:
                yield Occurrence(line, start, end[-1], raw.symbol, bool(raw.symbol_roles & DEFINITION))


@dataclass(frozen=True, slots=True)
class Index:
    """Contents of a SCIP file."""

    tool: str  # the tool that created it, as a plain word
    root: Path | None  # the folder in which it was created, possibly on another machine
    documents: Sequence[Document]


def read_index(file: Path) -> Index:
    """Read a SCIP file.

    Raises:
        ScipError: The file cannot be read, is too large or damaged, or is not an index.
    """
    from google.protobuf.message import DecodeError

    try:
        data = read_regular(file, MOST_BYTES + 1)
    except OSError as error:
        raise ScipError(f"cannot read {file}: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise ScipError(f"{file} is too large: the limit is {MOST_BYTES >> 20} MiB")
    try:
        message = index_message().FromString(data)
    except DecodeError as error:
        raise ScipError(f"{file} is damaged, or not a SCIP file") from error
    if not message.metadata.tool_info.name or not message.documents:
        raise ScipError(f"{file} is not a SCIP file, or is empty: it has no tool name or no documents")
    root = message.metadata.project_root
    return Index(
        tool_slug(message.metadata.tool_info.name), _root_folder(root), [_document(one) for one in message.documents]
    )


def tool_slug(name: str) -> str:
    """Return the name of a tool as a plain word."""
    return _NON_WORD.sub("-", name).strip("-.")[:_LONGEST_NAME] or "a tool without a name"


def _root_folder(uri: str) -> Path | None:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path = unquote(parts.path)
    return Path(path) if parts.scheme == "file" and path.startswith("/") and "\0" not in path else None


def _document(message: Any) -> Document:
    return Document(message.relative_path, message.text, message.position_encoding, message.occurrences)


def byte_column(line: str, column: int, encoding: int) -> int | None:
    """Return the UTF-8 byte offset of a column in a line, or None if it is past the end.

    An unspecified encoding means UTF-16 code units, because the tools that omit it are written in TypeScript.
    """
    if line.isascii() or encoding == UTF8:
        size = len(line) if line.isascii() else len(line.encode())
        return column if column <= size else None
    if encoding == UTF32:
        return len(line[:column].encode()) if column <= len(line) else None
    units = line.encode("utf-16-le")
    if 2 * column > len(units):
        return None
    return len(units[: 2 * column].decode("utf-16-le", "replace").encode())
