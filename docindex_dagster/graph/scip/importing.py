"""Import of SCIP files: what they know about the call sites of a source.

Documents that do not match the indexed files are refused, with a reason.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from docindex_dagster.callgraph.languages import has_calls
from docindex_dagster.core.errors import ScipError
from docindex_dagster.graph.scip.format import (
    MACRO,
    METHOD,
    NAMESPACE,
    TYPE,
    Document,
    Index,
    Occurrence,
    Symbol,
    byte_column,
    parse_symbol,
)
from docindex_dagster.graph.scip.sites import File, Site, Sites, files_of
from docindex_dagster.graph.scip.table import PRECISE
from docindex_dagster.graph.source_graph import EXTERNAL
from docindex_dagster.sources.paths import path_to_name
from docindex_dagster.sources.text import read_document

OUTSIDE = "outside the source"
UNKNOWN = "not indexed by docindex"
REPEATED = "duplicate document"
NO_CALLS = "cut as text, or in a language without call resolution"
EDITED = "changed since it was indexed: run `docindex index`"
OTHER_STATE = "made from another version of the file: create the SCIP file again"
DAMAGED = "damaged"
"""Why a document is refused."""

_WORD = re.compile(r"\w")
_PLAIN = re.compile(r"\w+")
_QUOTES = ":'\"`@"  # around names, for example in strings
_NAMED_AS_WRITTEN = frozenset({TYPE, METHOD, MACRO})
_MAX_LISTED = 3
_CONSTRUCTORS = frozenset({"<constructor>", "<init>", "__init__", "constructor"})
_EXPLICIT_CONSTRUCTORS = _CONSTRUCTORS | {"super", "this", "self"}  # names that call a constructor explicitly
_BUILTINS = "builtins"
_FILE_EXTENSIONS = (".ts", ".js", ".tsx", ".jsx", ".mts", ".cts")


class Name(NamedTuple):
    """Name in a document, with its bytes in the text."""

    start: int
    end: int
    line: int  # from 1
    text: str
    symbol: str
    is_definition: bool


@dataclass(frozen=True, slots=True)
class MatchedDocument:
    """Document that matches its file."""

    file: File
    data: bytes  # the file's text as UTF-8
    names: Sequence[Name]


@dataclass(frozen=True, slots=True)
class Checked:
    """Documents of an index: those that match, and the paths of the others by reason."""

    fitting: Sequence[MatchedDocument]
    refused: Mapping[str, Sequence[str]] = field(default_factory=dict)


class _RefusedError(Exception):
    """Refusal of a document; its argument is the reason."""


def check_documents(index: Index, folder: Path, chunks: pa.Table) -> Checked:
    """Compare the documents of an index with the files and the chunks of a source."""
    before = _path_prefix(index.root, folder)
    paths = [_to_source_path(document.path, before) for document in index.documents]
    files = files_of(chunks, {path for path in paths if path is not None})
    fitting: dict[str, MatchedDocument] = {}
    refused: dict[str, list[str]] = defaultdict(list)
    for document, path in zip(index.documents, paths, strict=True):
        try:
            found = _match_document(document, path, files, folder)
            fitting.setdefault(found.file.path, found)
            if fitting[found.file.path] is not found:
                refused[REPEATED].append(found.file.path)
        except _RefusedError as error:
            refused[str(error)].append(path or document.path)
    return Checked([*fitting.values()], refused)


def _path_prefix(root: Path | None, folder: Path) -> str:
    """Return the prefix for the paths of an index that was made in a subfolder of the source."""
    is_part = root is not None and root != folder and ".." not in root.parts and root.is_relative_to(folder)
    return f"{root.relative_to(folder).as_posix()}/" if is_part and root is not None else ""


def _to_source_path(written: str, before: str) -> str | None:
    """Return the path in docindex form, or None if it is invalid or leads outside the source."""
    parts = written.split("/")
    if "\0" in written or "\\" in written or any(part in {"", ".", ".."} for part in parts):
        return None
    return path_to_name(f"{before}{written}".encode())


def _match_document(document: Document, path: str | None, files: Mapping[str, File], folder: Path) -> MatchedDocument:
    """Match a document with its file.

    Raises:
        _RefusedError: The document does not match.
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
    return MatchedDocument(file, decoded.text.encode(), _names(document, decoded.text))


def _names(document: Document, text: str) -> Sequence[Name]:
    """Return the names of a document.

    Raises:
        _RefusedError: A name is not where the index says, or a range is invalid.
    """
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()) + 1)
    try:
        names = [
            _name(occurrence, lines[occurrence.line], starts[occurrence.line], document.encoding)
            if occurrence.line < len(lines)
            else None
            for occurrence in document.occurrences()
            if occurrence.start != occurrence.end
        ]
    except ScipError as error:
        raise _RefusedError(DAMAGED) from error
    if None in names:
        raise _RefusedError(OTHER_STATE)
    return [name for name in names if name is not None]


def _name(occurrence: Occurrence, line: str, starts_at: int, encoding: int) -> Name | None:
    """Return a name with its bytes, or None if the line has no such name."""
    data = line.encode()
    start, end = (byte_column(line, column, encoding) for column in (occurrence.start, occurrence.end))
    if start is None or end is None or end <= start:
        return None
    written = data[start:end].decode("utf-8", "replace")
    before, after = data[:start].decode("utf-8", "replace")[-1:], data[end:].decode("utf-8", "replace")[:1]
    if (
        _is_inside_word(before, written[0])
        or _is_inside_word(written[-1], after)
        or (occurrence.is_definition and _has_other_name(written, occurrence.symbol))
    ):
        return None
    return Name(
        starts_at + start, starts_at + end, occurrence.line + 1, written, occurrence.symbol, occurrence.is_definition
    )


def _is_inside_word(before: str, after: str) -> bool:
    """Return whether a word continues from one character to the next."""
    return bool(_WORD.match(before) and _WORD.match(after))


def _has_other_name(written: str, symbol: str) -> bool:
    """Return whether a definition has a different name from the function or class it should define."""
    found = parse_symbol(symbol)
    if found is None or found.descriptors[-1].suffix not in _NAMED_AS_WRITTEN or not _PLAIN.fullmatch(found.name):
        return False
    return written.strip(_QUOTES) != found.name


class _Target(NamedTuple):
    """Target of a symbol: nodes of one file, or an external name; empty if unknown."""

    nodes: tuple[str, ...] = ()
    kind: str | None = None
    file: File | None = None


@dataclass(frozen=True, slots=True)
class ImportResult:
    """Result of importing an index for a source."""

    tool: str
    table: pa.Table
    files: Sequence[str]  # paths of the documents that match
    refused: Mapping[str, Sequence[str]]  # paths of refused documents by reason

    @property
    def known(self) -> int:
        """Number of call sites with known targets."""
        return sum(bool(targets) for targets in self.table["targets"].to_pylist())

    def refusals(self) -> Iterator[str]:
        """Yield a sentence for each reason."""
        for reason, paths in self.refused.items():
            more = f" and {len(paths) - _MAX_LISTED:,} more" if len(paths) > _MAX_LISTED else ""
            yield f"{len(paths):,} refused ({reason}): {', '.join(paths[:_MAX_LISTED])}{more}"


def import_calls(index: Index, folder: Path, chunks: pa.Table) -> ImportResult:
    """Read what an index says about the calls of a source.

    Args:
        index: The SCIP index.
        folder: The folder with the files of the source.
        chunks: The indexed chunks, sorted by path and position.

    Raises:
        ScipError: No document matches.
    """
    found = check_documents(index, folder, chunks)
    result = ImportResult(
        index.tool, _table(found, index.tool), [one.file.path for one in found.fitting], found.refused
    )
    if not found.fitting:
        raise ScipError("; ".join(["no document of the SCIP file matches the source", *result.refusals()]))
    return result


def _table(found: Checked, tool: str) -> pa.Table:
    known = _Known.of(found.fitting)
    rows = [row for document in found.fitting for row in _rows(document, known, tool)]
    columns = zip(*rows, strict=True) if rows else ((),) * len(PRECISE)
    arrays = [pa.array(values, one.type) for values, one in zip(columns, PRECISE, strict=True)]
    return pa.Table.from_arrays(arrays, schema=PRECISE)


def _rows(document: MatchedDocument, known: "_Known", tool: str) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each call site of a document."""
    file = document.file
    sites = Sites(document.data, file.language)
    targets: dict[Site, list[_Target]] = {site: [] for site in sites.all}
    for name in document.names:
        for site in sites.called(name.start, name.end, name.text):
            target = known.target(document, name.symbol, site.name)
            if target is not None and target not in targets[site]:
                targets[site].append(target)
    for site, several in targets.items():
        caller = file.node(site.scope)
        for target in several or [_Target()]:
            called = (*target[:2], *((target.file.path, target.file.content_hash) if target.file else (None, None)))
            yield (file.path, file.content_hash, site.line, site.byte, site.name, *caller, *called, tool)


@dataclass(frozen=True, slots=True)
class _Known:
    """Definitions of all documents."""

    places: Mapping[str, Sequence[tuple[File, Name]]]  # definitions of global symbols
    packages: frozenset[str]  # packages of global symbols
    local: Mapping[tuple[str, str], Sequence[tuple[File, Name]]] = field(default_factory=dict)  # by path and symbol

    @classmethod
    def of(cls, documents: Iterable[MatchedDocument]) -> "_Known":
        """Collect the definitions."""
        places: dict[str, list[tuple[File, Name]]] = {}
        local: dict[tuple[str, str], list[tuple[File, Name]]] = {}
        packages = set()
        for document in documents:
            for name in document.names:
                if not name.is_definition:
                    continue
                if (symbol := parse_symbol(name.symbol)) is None:
                    local.setdefault((document.file.path, name.symbol), []).append((document.file, name))
                else:
                    packages.add(symbol.package)
                    places.setdefault(name.symbol, []).append((document.file, name))
        return cls(places, frozenset(packages), local)

    def target(self, document: MatchedDocument, symbol: str, called: str) -> _Target | None:
        """Return the target of a symbol when called by a name, or None if it is neither function nor class."""
        found = parse_symbol(symbol)
        places = self.places.get(symbol, ()) if found else self.local.get((document.file.path, symbol), ())
        if not places:
            is_outside = found is not None and found.package not in self.packages and found.is_callable
            return _Target((f"{EXTERNAL}:{_external_name(found)}",), EXTERNAL) if is_outside and found else None
        file = places[-1][0]
        defined = [one for where, name in places if where is file and (one := file.called(name.text, name.line))]
        if found is not None and found.name in _CONSTRUCTORS and called not in _EXPLICIT_CONSTRUCTORS:
            defined = [cls for one in defined if (cls := file.class_around(one))]
        if found is not None:  # an index has one symbol for all overloads, and sometimes marks only one of them
            defined = [other for one in defined for other in file.namesakes(one)]
        nodes = tuple(dict.fromkeys(file.node(one.id)[0] for one in defined))
        return _Target(nodes, defined[-1].kind, file) if nodes else None


def _external_name(symbol: Symbol) -> str:
    """Return the name of an external symbol as the graph writes it."""
    modules = [one.name for one in symbol.descriptors if one.suffix == NAMESPACE]
    if any(name.endswith(_FILE_EXTENSIONS) for name in modules) or modules[:1] == [_BUILTINS]:
        modules = []
    named = [one.name for one in symbol.descriptors if one.suffix != NAMESPACE]
    if len(named) > 1 and named[-1] in _CONSTRUCTORS:
        named.pop()
    return ".".join([*modules, *named])
