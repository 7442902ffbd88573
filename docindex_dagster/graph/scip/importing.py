"""From a file of SCIP to what it knows of the call sites of a source.

Documents that do not fit the files that are indexed are refused, with the reason.
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
_MOST_NAMED = 3
_CONSTRUCTORS = frozenset({"<constructor>", "<init>", "__init__", "constructor"})
_OF_ITSELF = _CONSTRUCTORS | {"super", "this", "self"}  # which call a constructor as such
_BUILTINS = "builtins"
_FILE_ENDINGS = (".ts", ".js", ".tsx", ".jsx", ".mts", ".cts")


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


def check_documents(index: Index, folder: Path, chunks: pa.Table) -> Checked:
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
    found = parse_symbol(symbol)
    if found is None or found.descriptors[-1].suffix not in _NAMED_AS_WRITTEN or not _PLAIN.fullmatch(found.name):
        return False
    return written.strip(_SIGNS) != found.name


class _Target(NamedTuple):
    """What a symbol stands for: nodes of one file, or a name outside of the source; nothing where that is not known."""

    nodes: tuple[str, ...] = ()
    kind: str | None = None
    file: File | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """What an index knows of a source."""

    tool: str
    table: pa.Table
    files: Sequence[str]  # the paths of the documents that fit
    refused: Mapping[str, Sequence[str]]  # the paths of documents by the reason

    @property
    def known(self) -> int:
        """Of how many call sites it knows what they call."""
        return sum(bool(targets) for targets in self.table["targets"].to_pylist())

    def refusals(self) -> Iterator[str]:
        """A sentence for each reason."""
        for reason, paths in self.refused.items():
            more = f" and {len(paths) - _MOST_NAMED:,} more" if len(paths) > _MOST_NAMED else ""
            yield f"{len(paths):,} refused, since each {reason}: {', '.join(paths[:_MOST_NAMED])}{more}"


def imported(index: Index, folder: Path, chunks: pa.Table) -> Imported:
    """Read what an index says of the calls of a source.

    Args:
        index: the file of SCIP.
        folder: where the files of the source are.
        chunks: what is indexed of them, sorted by path and position.

    Raises:
        ScipError: none of its documents fits.
    """
    found = check_documents(index, folder, chunks)
    result = Imported(index.tool, _table(found, index.tool), [one.file.path for one in found.fitting], found.refused)
    if not found.fitting:
        raise ScipError("; ".join(["no document of the file fits the source", *result.refusals()]))
    return result


def _table(found: Checked, tool: str) -> pa.Table:
    known = _Known.of(found.fitting)
    rows = [row for document in found.fitting for row in _rows(document, known, tool)]
    columns = zip(*rows, strict=True) if rows else ((),) * len(PRECISE)
    arrays = [pa.array(values, one.type) for values, one in zip(columns, PRECISE, strict=True)]
    return pa.Table.from_arrays(arrays, schema=PRECISE)


def _rows(document: Fitting, known: "_Known", tool: str) -> Iterator[tuple[Any, ...]]:
    """A row for each call site of a document."""
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
    """The definitions of all documents."""

    places: Mapping[str, Sequence[tuple[File, Name]]]  # of global symbols
    packages: frozenset[str]  # of these
    local: Mapping[tuple[str, str], Sequence[tuple[File, Name]]] = field(default_factory=dict)  # by path and symbol

    @classmethod
    def of(cls, documents: Iterable[Fitting]) -> "_Known":
        """Collect them."""
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

    def target(self, document: Fitting, symbol: str, called: str) -> _Target | None:
        """What a symbol stands for where it is called by a name; None where that is no function or class."""
        found = parse_symbol(symbol)
        places = self.places.get(symbol, ()) if found else self.local.get((document.file.path, symbol), ())
        if not places:
            is_outside = found is not None and found.package not in self.packages and found.is_callable
            return _Target((f"{EXTERNAL}:{_outside(found)}",), EXTERNAL) if is_outside and found else None
        file = places[-1][0]
        defined = [one for where, name in places if where is file and (one := file.called(name.text, name.line))]
        if found is not None and found.name in _CONSTRUCTORS and called not in _OF_ITSELF:
            defined = [cls for one in defined if (cls := file.class_around(one))]
        if found is not None:  # an index has one symbol for all overloads, and marks one of them at times
            defined = [other for one in defined for other in file.namesakes(one)]
        nodes = tuple(dict.fromkeys(file.node(one.id)[0] for one in defined))
        return _Target(nodes, defined[-1].kind, file) if nodes else None


def _outside(symbol: Symbol) -> str:
    """The name of what lies outside of the source, as the graph has it."""
    modules = [one.name for one in symbol.descriptors if one.suffix == NAMESPACE]
    if any(name.endswith(_FILE_ENDINGS) for name in modules) or modules[:1] == [_BUILTINS]:
        modules = []
    named = [one.name for one in symbol.descriptors if one.suffix != NAMESPACE]
    if len(named) > 1 and named[-1] in _CONSTRUCTORS:
        named.pop()
    return ".".join([*modules, *named])
