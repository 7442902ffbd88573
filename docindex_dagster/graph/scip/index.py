"""A file of SCIP, opened: what tool made it, and which name stands for what in each document."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from docindex_dagster.core.errors import ScipError
from docindex_dagster.graph.scip.messages import DEFINITION, UTF8, UTF32, index_message

MOST_BYTES = 256 << 20
_UNTIDY = re.compile(r"[^\w.+-]+", re.ASCII)
_LONGEST_NAME = 40  # characters of a tool's name


class Occurrence(NamedTuple):
    """A name in a document: where it stands, and what it stands for. Lines and columns count from 0."""

    line: int
    start: int
    end: int
    symbol: str
    is_definition: bool


@dataclass(frozen=True, slots=True)
class Document:
    """A file as the index has it."""

    path: str  # relative to the root of the index, as it is written there
    text: str  # "" where the index does not hold it, as usual
    encoding: int  # what columns count, as `messages` names it
    found: Sequence[Any]  # the occurrences as they are written

    def occurrences(self) -> Iterator[Occurrence]:
        """The names that stand in one line, in the order of the index.

        Raises:
            ScipError: a range is none.
        """
        for one in self.found:
            line, start, *end = one.range if len(one.range) in {3, 4} else (-1, 0, 0)
            if min(line, start, *end) < 0:
                raise ScipError(f"{[*one.range]} is no range")
            if len(end) == 1 or end[0] == line:
                yield Occurrence(line, start, end[-1], one.symbol, bool(one.symbol_roles & DEFINITION))


@dataclass(frozen=True, slots=True)
class Index:
    """What a file of SCIP says."""

    tool: str  # who made it, as a plain word
    root: Path | None  # the folder that it was made in, on whatever machine
    documents: Sequence[Document]


def read(file: Path) -> Index:
    """Open a file of SCIP.

    Raises:
        ScipError: it cannot be read, is too large, damaged, or no index.
    """
    from google.protobuf.message import DecodeError

    try:
        with file.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise ScipError(f"{file} cannot be read: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise ScipError(f"{file} is larger than {MOST_BYTES >> 20} MiB")
    try:
        message = index_message().FromString(data)
    except DecodeError as error:
        raise ScipError(f"{file} is damaged, or no file of SCIP") from error
    if not message.metadata.tool_info.name or not message.documents:
        raise ScipError(f"{file} is no file of SCIP, or an empty one: it names no tool, or no document")
    root = message.metadata.project_root
    return Index(tidy(message.metadata.tool_info.name), _folder(root), [_document(one) for one in message.documents])


def tidy(name: str) -> str:
    """The name of a tool as a plain word."""
    return _UNTIDY.sub("-", name).strip("-.")[:_LONGEST_NAME] or "a tool without a name"


def _folder(uri: str) -> Path | None:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path = unquote(parts.path)
    return Path(path) if parts.scheme == "file" and path.startswith("/") and "\0" not in path else None


def _document(message: Any) -> Document:
    return Document(message.relative_path, message.text, message.position_encoding, message.occurrences)


def byte_column(line: str, column: int, encoding: int) -> int | None:
    """The byte of a line, encoded as UTF-8, at which a column begins; None where it lies behind its end.

    What an index leaves open counts units of UTF-16: the tools that leave it open are written in TypeScript.
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
