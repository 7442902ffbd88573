"""Export of a source's graph as a SCIP index: definitions, calls and base classes.

The graph knows only lines, so columns are read from the files. Files that changed since they were indexed, and files in
languages without call resolution, are left out.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from docindex_dagster.callgraph.languages import has_calls
from docindex_dagster.graph.open_graph import OpenGraph
from docindex_dagster.graph.scip.format import (
    DEFINITION,
    METHOD,
    NAMESPACE,
    TERM,
    TYPE,
    UTF8,
    UTF8_TEXT,
    Descriptor,
    format_symbol,
    index_message,
)
from docindex_dagster.graph.scip.sites import RESULT, DefinedSymbol, File, Site, Sites, files_of, last_name_of
from docindex_dagster.graph.source_graph import OUTSIDE_TYPES
from docindex_dagster.sources.paths import name_to_path
from docindex_dagster.sources.text import read_document

_TOOL = "docindex"
# `SymbolInformation.Kind` of SCIP, by symbol kind.
_KINDS = {
    "class": 7,
    "constant": 8,
    "enum": 11,
    "function": 17,
    "interface": 21,
    "macro": 25,
    "method": 26,
    "module": 29,
    "property": 41,
    "struct": 49,
    "trait": 53,
    "type": 54,
    "union": 59,
    "variable": 61,
}
_SUFFIXES = {"function": METHOD, "method": METHOD, "macro": METHOD} | dict.fromkeys(
    ("class", "enum", "impl", "interface", "struct", "trait", "type", "union"), TYPE
)
_INHERITANCE = frozenset({"inherits", "implements"})
_READ = 8  # role of a name that is read


@dataclass(frozen=True, slots=True)
class ExportResult:
    """Serialized index, its size, and the files left out."""

    data: bytes
    documents: int
    occurrences: int
    left_out: Sequence[str]


def export_as_scip(graph: OpenGraph, source: str, folder: Path, chunks: pa.Table, version: str = "") -> ExportResult:
    """Export the graph of one source.

    Args:
        graph: The graph that contains the source.
        source: The key of the source.
        folder: The folder with its files.
        chunks: The indexed chunks of the source, sorted by path and position.
        version: The docindex version to record in the index.
    """
    edges = _Edges.of(graph, source)
    index = index_message()()
    index.metadata.tool_info.name, index.metadata.tool_info.version = _TOOL, version
    index.metadata.project_root, index.metadata.text_document_encoding = folder.as_uri(), UTF8_TEXT
    files = files_of(chunks, set(chunks["path"].to_pylist()))
    left_out = []
    for path, file in sorted(files.items()):
        if not has_calls(file.language):
            continue
        data = _text(folder, file)
        if data is None:
            left_out.append(path)
            continue
        document = index.documents.add(language=file.language, position_encoding=UTF8)
        document.relative_path = name_to_path(path).decode("utf-8", "replace")
        _Document(source, file, Sites(data, file.language), data, files).write(document, edges)
    occurrences = sum(len(document.occurrences) for document in index.documents)
    data = index.SerializeToString(deterministic=True)
    return ExportResult(data, len(index.documents), occurrences, left_out)


def _text(folder: Path, file: File) -> bytes | None:
    """Return the text of a file as UTF-8, or None if it differs from what was indexed."""
    try:
        decoded, content_hash = read_document(folder, file.path)
    except OSError:
        return None
    return decoded.text.encode() if content_hash == file.content_hash else None


@dataclass(frozen=True, slots=True)
class _Edges:
    """Edges of a source that the index contains, by subject."""

    calls: Mapping[tuple[str, int], Sequence[tuple[str, bool]]]  # by caller and line: callee, and whether it is inside
    bases: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, graph: OpenGraph, source: str) -> "_Edges":
        """Collect the edges."""
        calls: dict[tuple[str, int], list[tuple[str, bool]]] = {}
        bases: dict[str, list[str]] = {}
        nodes, owners = graph.nodes["node"].to_pylist(), graph.nodes["source"].to_pylist()
        for row in graph.edges.select(["subject", "predicate", "object", "source", "line"]).to_pylist():
            if row["source"] != source:
                continue
            subject, target = nodes[row["subject"]], row["object"]
            is_inside = owners[target] == source and graph.types[target] not in {*OUTSIDE_TYPES, "file"}
            if row["predicate"] == "calls":
                calls.setdefault((subject, row["line"]), []).append((nodes[target], is_inside))
            elif row["predicate"] in _INHERITANCE and is_inside:
                bases.setdefault(subject, []).append(nodes[target])
        return cls(calls, bases)


@dataclass(frozen=True)
class _Document:
    """File to write to the index."""

    source: str
    file: File
    sites: Sites
    data: bytes
    files: Mapping[str, File]
    starts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        starts = [0]
        starts += [at + 1 for at, byte in enumerate(self.data) if byte == ord("\n")]
        object.__setattr__(self, "starts", starts)

    def write(self, document: Any, edges: _Edges) -> None:
        """Fill in the message of the file."""
        occurrences = []
        for identifier, symbol, span in self.sites.definitions():
            name = self._symbol(self.file, identifier)
            occurrences.append((span, name, DEFINITION))
            information = document.symbols.add(symbol=name, display_name=symbol.name)
            information.kind = _KINDS.get(symbol.kind, 0)
            for base in edges.bases.get(f"{self.file.path}::{identifier}", ()):
                information.relationships.add(symbol=self._symbol_of(base), is_implementation=True)
        occurrences += self._calls(edges)
        for span, name, role in sorted(occurrences):
            document.occurrences.add(range=self._range(*span), symbol=name, symbol_roles=role)

    def _calls(self, edges: _Edges) -> Iterator[tuple[tuple[int, int], str, int]]:
        """Yield the called names that the edges resolve."""
        by_location: dict[tuple[str, int], list[Site]] = {}
        for site in self.sites.all:
            by_location.setdefault((self.file.node(site.scope)[0], site.line), []).append(site)
        for location, sites_there in by_location.items():
            for site, node in _match_callees(sites_there, edges.calls.get(location, ())):
                span = self.sites.name_of(site)
                if span is not None:
                    yield span, self._symbol_of(node), _READ

    def _range(self, start: int, end: int) -> list[int]:
        line = bisect_right(self.starts, start) - 1
        return [line, start - self.starts[line], end - self.starts[line]]

    def _symbol_of(self, node: str) -> str:
        path, _, identifier = node.partition("::")
        return self._symbol(self.files[path], identifier)

    def _symbol(self, file: File, identifier: str) -> str:
        """Return the symbol of a definition, qualified by its path and containers."""
        folders = [Descriptor(part, NAMESPACE) for part in file.path.split("/")]
        return format_symbol(_TOOL, "", self.source, "", [*folders, *_descriptors(file, file.defined[identifier])])


def _match_callees(sites: Sequence[Site], reached: Sequence[tuple[str, bool]]) -> Iterator[tuple[Site, str]]:
    """Yield the sites of one caller in one line, each with its callee, if that is unambiguous and in the source."""
    by_name: dict[str, list[tuple[str, bool]]] = {}
    for node, is_inside in reached:
        by_name.setdefault(last_name_of(node), []).append((node, is_inside))
    names = {site.name.removesuffix(RESULT) for site in sites}
    other_callees = [one for name, callees in by_name.items() if name not in names for one in callees]
    unmatched = [site for site in sites if site.name.removesuffix(RESULT) not in by_name]
    for site in sites:
        # If one site and one callee remain whose names match no other, the site is an alias of the callee.
        found = other_callees if unmatched == [site] and len(other_callees) == 1 else by_name.get(site.name, ())
        # For `a.get(b.get())`, the graph may lack one edge, because it keeps only the first of equal edges.
        is_clear = not site.is_path or [one.name for one in sites].count(site.name) == 1
        if is_clear and all(is_inside for _, is_inside in found):
            yield from ((site, node) for node, _ in found)


def _descriptors(file: File, definition: DefinedSymbol) -> list[Descriptor]:
    around = file.defined.get(definition.parent)
    outer = [Descriptor(definition.parent, TYPE)] if definition.parent else []
    before = outer if around is None else _descriptors(file, around)
    number = definition.id.partition("~")[2]
    suffix = _SUFFIXES.get(definition.kind, TERM)
    if number and suffix == METHOD:
        return [*before, Descriptor(definition.name, f"(+{number}).")]
    return [*before, Descriptor(f"{definition.name}~{number}" if number else definition.name, suffix)]
