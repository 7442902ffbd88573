"""Which documents of an index fit the files that are indexed: each of the others is refused, with the reason."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from docindex_dagster.callgraph.languages import has_calls
from docindex_dagster.core.errors import ScipError
from docindex_dagster.graph.scip.defined import File, files_of
from docindex_dagster.graph.scip.index import Document, Index, Occurrence, byte_column
from docindex_dagster.graph.scip.symbols import MACRO, METHOD, TYPE, parse
from docindex_dagster.sources.paths import path_to_name
from docindex_dagster.sources.text import read_document

OUTSIDE = "lies outside of the source"
UNKNOWN = "is not in the index of docindex"
REPEATED = "is there twice"
NO_CALLS = "is cut as text, or in a language whose calls are not looked at"
EDITED = "changed since it was indexed: run `docindex index`"
OTHER_STATE = "is of another state: make the file of SCIP anew"
DAMAGED = "is damaged"
"""Why a document is refused."""

_WORD = re.compile(r"\w")
_PLAIN = re.compile(r"\w+")
_SIGNS = ":'\"`@"  # around names, in strings and the like
_NAMED_AS_WRITTEN = frozenset({TYPE, METHOD, MACRO})


class Name(NamedTuple):
    """A name in a document, by its bytes in the text."""

    start: int
    end: int
    line: int  # from 1
    text: str
    symbol: str
    is_definition: bool


@dataclass(frozen=True, slots=True)
class Fitting:
    """A document that fits its file."""

    file: File
    data: bytes  # the file's text as UTF-8
    names: Sequence[Name]


@dataclass(frozen=True, slots=True)
class Checked:
    """The documents of an index: those that fit, and the paths of the others by the reason."""

    fitting: Sequence[Fitting]
    refused: Mapping[str, Sequence[str]] = field(default_factory=dict)


class _RefusedError(Exception):
    """A document does not fit; its argument says why."""


def checked(index: Index, folder: Path, chunks: pa.Table) -> Checked:
    """Compare the documents of an index with the files of a source in a folder, and with its chunks."""
    before = _below(index.root, folder)
    paths = [_path(document.path, before) for document in index.documents]
    files = files_of(chunks, {path for path in paths if path is not None})
    fitting: dict[str, Fitting] = {}
    refused: dict[str, list[str]] = defaultdict(list)
    for document, path in zip(index.documents, paths, strict=True):
        try:
            found = _fitting(document, path, files, folder)
            fitting.setdefault(found.file.path, found)
            if fitting[found.file.path] is not found:
                refused[REPEATED].append(found.file.path)
        except _RefusedError as error:
            refused[str(error)].append(path or document.path)
    return Checked([*fitting.values()], refused)


def _below(root: Path | None, folder: Path) -> str:
    """What is to be put before the paths of an index that was made in a folder below that of the source."""
    is_part = root is not None and root != folder and ".." not in root.parts and root.is_relative_to(folder)
    return f"{root.relative_to(folder).as_posix()}/" if is_part and root is not None else ""


def _path(written: str, before: str) -> str | None:
    """The path as docindex has it; None where it leads out of the source, or is none."""
    parts = written.split("/")
    if "\0" in written or "\\" in written or any(part in {"", ".", ".."} for part in parts):
        return None
    return path_to_name(f"{before}{written}".encode())


def _fitting(document: Document, path: str | None, files: Mapping[str, File], folder: Path) -> Fitting:
    """A document with the text of its file.

    Raises:
        _RefusedError: it does not fit.
    """
    if path is None:
        raise _RefusedError(OUTSIDE)
    file = files.get(path)
    if file is None:
        raise _RefusedError(UNKNOWN)
    if not has_calls(file.language):
        raise _RefusedError(NO_CALLS)
    try:
        decoded, content_hash = read_document(folder, path)
    except OSError as error:
        raise _RefusedError(EDITED) from error
    if content_hash != file.content_hash:
        raise _RefusedError(EDITED)
    if document.text and document.text.replace("\r\n", "\n") != decoded.text.replace("\r\n", "\n"):
        raise _RefusedError(OTHER_STATE)
    return Fitting(file, decoded.text.encode(), _names(document, decoded.text))


def _names(document: Document, text: str) -> Sequence[Name]:
    """The names of a document.

    Raises:
        _RefusedError: one is not where the index says, or a range is none.
    """
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()) + 1)
    try:
        names = [
            _name(one, lines[one.line], starts[one.line], document.encoding) if one.line < len(lines) else None
            for one in document.occurrences()
            if one.start != one.end
        ]
    except ScipError as error:
        raise _RefusedError(DAMAGED) from error
    if None in names:
        raise _RefusedError(OTHER_STATE)
    return [name for name in names if name is not None]


def _name(one: Occurrence, line: str, starts_at: int, encoding: int) -> Name | None:
    """A name by its bytes; None where the line has no such name."""
    data = line.encode()
    start, end = (byte_column(line, column, encoding) for column in (one.start, one.end))
    if start is None or end is None or end <= start:
        return None
    written = data[start:end].decode("utf-8", "replace")
    before, after = data[:start].decode("utf-8", "replace")[-1:], data[end:].decode("utf-8", "replace")[:1]
    if _cuts(before, written[0]) or _cuts(written[-1], after) or (one.is_definition and _misses(written, one.symbol)):
        return None
    return Name(starts_at + start, starts_at + end, one.line + 1, written, one.symbol, one.is_definition)


def _cuts(before: str, after: str) -> bool:
    """Whether a word goes on from one character to the next."""
    return bool(_WORD.match(before) and _WORD.match(after))


def _misses(written: str, symbol: str) -> bool:
    """Whether a definition has another name than the function or class that it is to define."""
    found = parse(symbol)
    if found is None or found.descriptors[-1].suffix not in _NAMED_AS_WRITTEN or not _PLAIN.fullmatch(found.name):
        return False
    return written.strip(_SIGNS) != found.name
