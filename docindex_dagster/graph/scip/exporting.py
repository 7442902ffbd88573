"""The graph of a source as an index of SCIP: what its files define, what is called where, what is made from what.

The graph knows lines. Where in a line a name stands, the files say: those that changed since they were indexed, and
those in languages whose calls are not looked at, are left out.
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
    index_message,
    written_symbol,
)
from docindex_dagster.graph.scip.sites import RESULT, Defined, File, Site, Sites, files_of, last_of
from docindex_dagster.graph.source_graph import OUTSIDE
from docindex_dagster.sources.paths import name_to_path
from docindex_dagster.sources.text import read_document

_TOOL = "docindex"
# By the kind of a symbol: `SymbolInformation.Kind` of SCIP.
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
_MADE_FROM = frozenset({"inherits", "implements"})
_READ = 8  # the role of a name that is read


@dataclass(frozen=True, slots=True)
class Exported:
    """An index as bytes, how much is in it, and the files that are left out."""

    data: bytes
    documents: int
    occurrences: int
    left_out: Sequence[str]


def exported(graph: OpenGraph, source: str, folder: Path, chunks: pa.Table, version: str = "") -> Exported:
    """Write the graph of one source.

    Args:
        graph: in which it is.
        source: its key.
        folder: where its files are.
        chunks: what is indexed of it, sorted by path and position.
        version: of docindex, which the index names.
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
    return Exported(data, len(index.documents), occurrences, left_out)


def _text(folder: Path, file: File) -> bytes | None:
    """The text of a file as UTF-8; None where it is not what was indexed."""
    try:
        decoded, content_hash = read_document(folder, file.path)
    except OSError:
        return None
    return decoded.text.encode() if content_hash == file.content_hash else None


@dataclass(frozen=True, slots=True)
class _Edges:
    """Of the edges of a source those that an index holds, by the node that they leave."""

    calls: Mapping[tuple[str, int], Sequence[tuple[str, bool]]]  # by line: nodes, and whether they are in the source
    bases: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, graph: OpenGraph, source: str) -> "_Edges":
        """Collect them."""
        calls: dict[tuple[str, int], list[tuple[str, bool]]] = {}
        bases: dict[str, list[str]] = {}
        nodes, owners = graph.nodes["node"].to_pylist(), graph.nodes["source"].to_pylist()
        for row in graph.edges.select(["subject", "predicate", "object", "source", "line"]).to_pylist():
            if row["source"] != source:
                continue
            subject, target = nodes[row["subject"]], row["object"]
            is_inside = owners[target] == source and graph.types[target] not in {*OUTSIDE, "file"}
            if row["predicate"] == "calls":
                calls.setdefault((subject, row["line"]), []).append((nodes[target], is_inside))
            elif row["predicate"] in _MADE_FROM and is_inside:
                bases.setdefault(subject, []).append(nodes[target])
        return cls(calls, bases)


@dataclass(frozen=True)
class _Document:
    """A file that is written."""

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
        """The names that are called, where edges tell what they stand for."""
        by_place: dict[tuple[str, int], list[Site]] = {}
        for site in self.sites.all:
            by_place.setdefault((self.file.node(site.scope)[0], site.line), []).append(site)
        for place, there in by_place.items():
            for site, node in _meant(there, edges.calls.get(place, ())):
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
        """The name of what a file defines: behind its path, and all that is around it."""
        folders = [Descriptor(part, NAMESPACE) for part in file.path.split("/")]
        return written_symbol(_TOOL, "", self.source, "", [*folders, *_descriptors(file, file.defined[identifier])])


def _meant(sites: Sequence[Site], reached: Sequence[tuple[str, bool]]) -> Iterator[tuple[Site, str]]:
    """The sites of one caller in one line, each with what it calls, where that is in the source without a doubt."""
    by_name: dict[str, list[tuple[str, bool]]] = {}
    for node, is_inside in reached:
        by_name.setdefault(last_of(node), []).append((node, is_inside))
    names = {site.name.removesuffix(RESULT) for site in sites}
    under_others = [one for name, those in by_name.items() if name not in names for one in those]
    without = [site for site in sites if site.name.removesuffix(RESULT) not in by_name]
    for site in sites:
        # A name that nothing has which is reached is an alias, where one of either is left.
        found = under_others if without == [site] and len(under_others) == 1 else by_name.get(site.name, ())
        # Of `a.get(b.get())` one edge may be left out, since the same was found before.
        is_clear = not site.is_path or [one.name for one in sites].count(site.name) == 1
        if is_clear and all(is_inside for _, is_inside in found):
            yield from ((site, node) for node, _ in found)


def _descriptors(file: File, one: Defined) -> list[Descriptor]:
    around = file.defined.get(one.parent)
    outer = [Descriptor(one.parent, TYPE)] if one.parent else []
    before = outer if around is None else _descriptors(file, around)
    number = one.id.partition("~")[2]
    suffix = _SUFFIXES.get(one.kind, TERM)
    if number and suffix == METHOD:
        return [*before, Descriptor(one.name, f"(+{number}).")]
    return [*before, Descriptor(f"{one.name}~{number}" if number else one.name, suffix)]
