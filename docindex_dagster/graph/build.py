"""Graph of a source: nodes and triples, built only from its chunks and references.

Node ids: a file is its path; a symbol is `path::qualified.name`, with the suffix `~2` for the second one of that name;
a section is `path#Heading > Subheading`; an external name is `external:NAME`; an unresolved one is `unresolved:NAME`.

Each file is resolved on its own, and its node records what it looked at. After an edit, only files that looked at
something that changed are resolved again, and the result equals that of a full build.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from docindex_dagster.callgraph.extract.file import definitions_of_chunks
from docindex_dagster.callgraph.ir import FileIR
from docindex_dagster.callgraph.languages import has_calls, read_configurations, rules_of
from docindex_dagster.callgraph.modules import Modules, is_config_file
from docindex_dagster.callgraph.program import Index, Program, Units
from docindex_dagster.callgraph.resolver.queries import MOST_STATEMENTS, Queries
from docindex_dagster.callgraph.resolver.resolver import resolver as resolver_of
from docindex_dagster.callgraph.table import References
from docindex_dagster.callgraph.tabling import TIME_OUT, LimitExceededError, Limits, Table
from docindex_dagster.callgraph.units import Chunks, Unit
from docindex_dagster.code.languages import HOSTS, can_contain_symbols
from docindex_dagster.core.errors import first_line
from docindex_dagster.core.events import ignore, reporter
from docindex_dagster.core.garbage_collection import gc_disabled
from docindex_dagster.core.schemas import COMMIT
from docindex_dagster.core.tables import concat_sorted_by_path, replace_rows
from docindex_dagster.graph.concepts.extractor import Found
from docindex_dagster.graph.concepts.findings import NOTHING, Findings, concept_edges
from docindex_dagster.graph.document_text import anchors, read_document, section_edges
from docindex_dagster.graph.documents import DOCUMENT, document_edges
from docindex_dagster.graph.failures import CUT_AS_TEXT, OTHER_LANGUAGE
from docindex_dagster.graph.file_edges import FileEdges
from docindex_dagster.graph.reuse import KnownFiles, OfferedKeys, RecentUnits, find_changes
from docindex_dagster.graph.source_graph import (
    UNREADABLE,
    Graph,
    Node,
    Triple,
    made_from,
    node_table,
    outside_nodes,
    triple_table,
)

_CODE_TYPES = frozenset({"code", "test"})
_MOST_TRIPLES = 20_000  # buffered before they become a table
_recent = RecentUnits()
# Columns a unit needs in addition to the contents of its file.
_UNIT_COLUMNS = ("path", "chunk_id", "language", "source_type", "symbols", "start_line", "start_byte")
_REQUIRED_COLUMNS = (
    "chunk_id",
    "source",
    "source_type",
    "path",
    "start_line",
    "end_line",
    "text",
    "embed_text_hash",
    "imports",
    "heading_path",
    "chunk_type",
    "has_code",
    "part_number",
    "pointers",
    "row_hash",
)
_MOST_ROWS = 4096  # held as dictionaries at a time


@dataclass(frozen=True, slots=True)
class Content:
    """Contents of a graph in addition to files and sections."""

    code: bool = True  # definitions, imports and calls in code
    concepts: Findings = NOTHING
    most_concepts: int = 10  # per chunk, and as many relations between them
    found_by: str = "none"  # the extractor of the concepts
    limits: Limits = field(default_factory=Limits)


_ALL_BUT_CONCEPTS = Content()


@gc_disabled()
def build_graph(chunks: pa.Table, references: pa.Table, content: Content = _ALL_BUT_CONCEPTS) -> Graph:
    """Build the graph of a source from its chunks, which are sorted by path, and its references.

    Rows are sorted by path; nodes outside the source come last.

    Raises:
        ValueError: The table of references has another schema.
    """
    files, irs = _without_commits(chunks), References(references)
    spans = spans_of(files)
    units = _units(files, spans, irs)
    offered = OfferedKeys.of(units, units, MOST_STATEMENTS)
    index = Index.of([*units], *offered.keys_at({path: at for at, path in enumerate(units)}))
    modules = modules_of(files, spans)
    resolvers = _resolvers(units, modules, index, content)
    new = _extracted(_Source(files, irs, content, modules, resolvers, offered.__getitem__), [*units])
    return _with_outside(new.nodes, new.triples)


@gc_disabled()
def update_graph(
    previous: Graph, chunks: pa.Table, references: pa.Table, content: Content = _ALL_BUT_CONCEPTS
) -> Graph:
    """Build the same graph as `build_graph`, reusing the rows of files that look at nothing new.

    Args:
        previous: The graph of the previous state of the source.
        chunks: The current chunks.
        references: The current references.
        content: Content of the same kind as that of `previous`.

    Raises:
        ValueError: The table of references has another schema.
    """
    files, irs = _without_commits(chunks), References(references)
    spans = spans_of(files)
    versions = _versions(files, spans, irs)
    units = _recent.units(versions, _unit_factory(files, spans, irs))
    known = KnownFiles.of(previous)
    changed = {path for path in units if known.made_from.get(path) != versions[path]}
    seen = OfferedKeys.of(units, changed, MOST_STATEMENTS)
    deleted = {path for path in known.rows if path not in units}
    news = find_changes(seen, known, deleted)
    modules = modules_of(files, spans)
    if _are_configurations(news.paths, modules):
        return build_graph(chunks, references, content)
    to_resolve = sorted({*changed, *(path for path in known.dependents_of(news.keys) if path in units)})
    resolvers = _resolvers(units, modules, known.index([*units], seen), content)

    def offered(path: str) -> Mapping[int, int]:
        return seen[path] if path in seen else known.fingerprints(path)

    new = _extracted(_Source(files, irs, content, modules, resolvers, offered), to_resolve)
    inside = previous.nodes.slice(0, previous.nodes.num_rows - previous.nodes["path"].null_count)
    outdated = sorted({*to_resolve, *deleted})
    nodes = replace_rows(inside, outdated, new.nodes)
    return _with_outside(nodes, replace_rows(previous.triples, outdated, new.triples))


def _units(files: pa.Table, spans: Mapping[str, tuple[int, int]], irs: References) -> Units:
    """Return the units of the files in a table of chunks."""
    return Units(spans, _unit_factory(files, spans, irs))


def _unit_factory(files: pa.Table, spans: Mapping[str, tuple[int, int]], irs: References) -> Callable[[str], Unit]:
    """Return a function that makes the unit of a file."""
    columns = files.select(list(_UNIT_COLUMNS))

    def make(path: str) -> Unit:
        begin, end = spans[path]
        rows = columns.slice(begin, end - begin)
        language, source_type = (rows[name][0].as_py() for name in ("language", "source_type"))
        found = irs.get(path)
        if found is None:
            found = FileIR(tuple(definitions_of_chunks(rows.to_pylist())))
        starts = [rows[name].to_pylist() for name in ("start_line", "start_byte")]
        chunks = Chunks(rows["chunk_id"].to_pylist(), *starts)
        return Unit(path, language or "", found, is_test=source_type == "test", chunks=chunks)

    return make


def _are_configurations(paths: Iterable[str], modules: Modules) -> bool:
    """Return whether any of some paths configures imports, or did so before."""
    named = [path for path in paths if path.endswith((".json", ".mod", ".toml"))]
    return any(map(is_config_file, named)) or (bool(named) and not read_configurations(modules).isdisjoint(named))


def _resolvers(units: Units, modules: Modules, index: Index, content: Content) -> Callable[[], Queries]:
    """Return a function that makes a resolver for the files in an index."""

    def make() -> Queries:
        read_configurations(modules)  # here, so that it does not happen deep in a recursion
        table = Table(content.limits)
        return resolver_of(Program(units, modules, index, table), table)

    return make


def _without_commits(chunks: pa.Table) -> pa.Table:
    is_file = pc.not_equal(chunks["source_type"], COMMIT)
    return chunks if pc.all(is_file).as_py() else chunks.filter(is_file)  # a filter copies all texts


def versions_of(chunks: pa.Table, references: pa.Table) -> dict[str, str]:
    """Return, by path, the `made_from` of each file's node.

    Raises:
        ValueError: The table of references has another schema.
    """
    files = _without_commits(chunks)
    return _versions(files, spans_of(files), References(references))


def _versions(files: pa.Table, spans: Mapping[str, tuple[int, int]], irs: References) -> dict[str, str]:
    hashes = files["row_hash"].to_pylist()
    return {path: made_from(hashes[begin:end], irs.version_of(path)) for path, (begin, end) in spans.items()}


@dataclass(frozen=True, slots=True)
class _Source:
    """Source whose nodes and edges are extracted.

    Attributes:
        files: The chunks of its files.
        irs: What the files say about names.
        content: The content to extract.
        modules: The files; once a resolver is made, also the configurations that cannot be read.
        resolver: Makes a resolver of names.
        offered: Returns the keys that the file with a path offers, each with a fingerprint of its value.
    """

    files: pa.Table
    irs: References
    content: Content
    modules: Modules
    resolver: Callable[[], Queries]
    offered: Callable[[str], Mapping[int, int]]


def _extracted(source: _Source, paths: Sequence[str]) -> Graph:
    """Return the nodes and triples of some files, without the nodes outside the source."""
    wanted = source.files
    if len(paths) != len(pc.unique(wanted["path"])):
        wanted = wanted.filter(pc.is_in(wanted["path"], pa.array(paths, pa.string())))
    parts = [*_parts(source, wanted)]
    nodes, triples = [part.nodes for part in parts], [part.triples for part in parts]
    parts.clear()
    return Graph(concat_sorted_by_path(nodes), concat_sorted_by_path(triples))


def _parts(source: _Source, wanted: pa.Table) -> Iterator[Graph]:
    """Yield the graph of some chunks in parts, because rows take much more memory as objects than in a table."""
    nodes: list[Node] = []
    triples: list[Triple] = []
    is_document = pc.equal(wanted["source_type"], DOCUMENT)
    concepts = source.content.concepts.of(wanted["embed_text_hash"].filter(is_document))
    ends_at = time.monotonic() + source.content.limits.source_s
    count = len(pc.unique(wanted["path"]))
    announce = reporter(wanted["source"][0].as_py(), "knowledge_graph", "files") if count else ignore
    announce(0, count)
    for done, file in enumerate(_files(source, wanted, is_document, concepts), start=1):
        try:
            rows = file.extracted(ends_at)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 it costs only this file its edges, and is reported with its name
            rows = file.defined(_as_problem(error))
        announce(done, count)
        nodes += rows[0]
        triples += rows[1]
        if len(triples) > _MOST_TRIPLES:
            yield Graph(node_table(nodes), triple_table(triples))
            nodes, triples = [], []
    yield Graph(node_table(nodes), triple_table(triples))


def _files(
    source: _Source, wanted: pa.Table, is_document: pa.ChunkedArray, concepts: Mapping[str, Found]
) -> Iterator["_File"]:
    """Yield the files of some chunks. Names resolve only within a family of languages, so each has its own resolver."""
    columns = needed(wanted, is_document)
    for of_family in families(wanted):
        with closing(source.resolver()) as resolver:
            for path, rows in groupby(rows_of(columns, of_family), key=itemgetter("path")):
                yield _File(source, resolver, path, [*rows], concepts)


def _as_problem(error: Exception) -> str:
    return (
        str(error) if isinstance(error, LimitExceededError) else f"error: {type(error).__name__}: {first_line(error)}"
    )


@dataclass(frozen=True, slots=True)
class _File:
    """File whose nodes and edges are extracted.

    Attributes:
        source: The source of the file.
        resolver: Resolves its names.
        path: The path of the file.
        rows: The chunks of the file.
        concepts: The findings in texts, by hash.
    """

    source: _Source
    resolver: Queries
    path: str
    rows: Sequence[dict[str, Any]]
    concepts: Mapping[str, Found]

    def extracted(self, ends_at: float) -> tuple[list[Node], list[Triple]]:
        """Return all nodes and edges of the file.

        Raises:
            LimitExceededError: It exceeds a limit, or earlier files took until `ends_at` (`time.monotonic`).
        """
        content = self.source.content
        if time.monotonic() > ends_at:
            raise LimitExceededError(f"{TIME_OUT}the files before it took over {content.limits.source_s:g} s")
        edges, first = self._start_edges(), self.rows[0]
        if content.code and has_calls(edges.unit.language):
            edges.collect()
        elif content.code:
            edges.define()
            edges.import_as_written(first["imports"] or (), first["start_line"])
        if first["source_type"] != DOCUMENT:
            for row in self.rows:
                edges.sections(row)
            return [self._file_node(), *edges.nodes.values()], [*edges.triples.values()]
        chunks = read_document(self.rows)
        sections, of_sections = section_edges(chunks)
        of_concepts = concept_edges(chunks, self.concepts, content.most_concepts, content.found_by)
        return (
            [self._file_node(), *edges.nodes.values(), *sections, *anchors(chunks)],
            [*edges.triples.values(), *of_sections, *document_edges(chunks), *of_concepts],
        )

    def defined(self, problem: str) -> tuple[list[Node], list[Triple]]:
        """Return only the definitions of the file, which edges of other files may reach, if the rest failed."""
        edges = self._start_edges()
        if self.source.content.code:
            edges.define()
        return [self._file_node(problem), *edges.nodes.values()], [*edges.triples.values()]

    def _start_edges(self) -> FileEdges:
        self.resolver.start()
        return FileEdges(self.resolver, self.resolver.program.units[self.path], self.rows[0]["source"])

    def _file_node(self, problem: str | None = None) -> Node:
        """Return the node of the file, with the keys looked at so far."""
        source, chunk = self.rows[0]["source"], self.rows[0]["chunk_id"]
        seen = self.source.offered(self.path)
        keys = [*seen], [*seen.values()], self.resolver.looked()
        if problem is None and (reason := self.source.modules.unreadable.get(self.path)):
            problem = f"{UNREADABLE}{reason}"
        version = made_from((row["row_hash"] for row in self.rows), self.source.irs.version_of(self.path))
        return Node(self.path, "file", self.path, source, self.path, chunk, version, *keys, problem, self._unread())

    def _unread(self) -> str | None:
        """Return why the calls in the file are unknown, or None."""
        if not self.source.content.code:
            return None
        unit, source_type = self.resolver.program.units[self.path], self.rows[0]["source_type"]
        return _why_unread(unit.language, source_type, has_structure=self.path in self.source.irs)


def _why_unread(language: str, source_type: str, *, has_structure: bool) -> str | None:
    """Return why the calls in a file are unknown; None if they are known, or the file holds no code.

    Args:
        language: The language of the code in the file, or of the file if no code was found in it.
        source_type: The source type of the file.
        has_structure: Whether the file was parsed.
    """
    if source_type not in _CODE_TYPES and language not in HOSTS:
        return None
    if not has_structure:
        return CUT_AS_TEXT if can_contain_symbols(language) else OTHER_LANGUAGE
    return None if has_calls(language) or language in HOSTS else OTHER_LANGUAGE


def _with_outside(nodes: pa.Table, triples: pa.Table) -> Graph:
    """Combine nodes and triples of all files, sorted by path, and add the nodes outside the source."""
    return Graph(pa.concat_tables([nodes, outside_nodes(triples)]).combine_chunks(), triples.combine_chunks())


def spans_of(files: pa.Table) -> dict[str, tuple[int, int]]:
    """Return the first row and the end of each file in a table of chunks, which is sorted by path and position."""
    paths = files["path"].combine_chunks().dictionary_encode()
    codes = paths.indices.to_numpy(zero_copy_only=False)
    begins = np.flatnonzero(np.diff(codes, prepend=-1))
    ends = np.append(begins, len(codes))[1:]
    names = paths.dictionary.take(pa.array(codes[begins])).to_pylist()
    return dict(zip(names, zip(begins.tolist(), ends.tolist(), strict=True), strict=True))


def families(chunks: pa.Table) -> list[NDArray[np.int64]]:
    """Group the rows of a table by families of languages that share names; each group has shape (rows,), int64."""
    spans = spans_of(chunks)
    languages = chunks["language"].take(pa.array([begin for begin, _ in spans.values()], pa.int64())).to_pylist()
    rows: dict[str, list[NDArray[np.int64]]] = {}
    for (begin, end), language in zip(spans.values(), languages, strict=True):
        rows.setdefault(rules_of(language or "").family, []).append(np.arange(begin, end))
    return [np.concatenate(of_family) for of_family in rows.values()]


def needed(chunks: pa.Table, is_document: pa.ChunkedArray) -> pa.Table:
    """Select the needed columns of chunks, with text and pointers only for documents."""
    columns = chunks.select(list(_REQUIRED_COLUMNS))
    for name in ("text", "pointers"):
        only_documents = pc.if_else(is_document, chunks[name], pa.scalar(None, pa.string()))
        columns = columns.set_column(columns.schema.get_field_index(name), name, only_documents)
    return columns


def modules_of(chunks: pa.Table, spans: Mapping[str, tuple[int, int]]) -> Modules:
    """Return the files of a table of chunks, given their spans from `spans_of`."""
    texts = chunks["text"]

    def text(path: str) -> str:
        begin, end = spans[path]
        return "".join(texts.slice(begin, end - begin).to_pylist())

    return Modules(frozenset(spans), text)


def without_code(chunks: pa.Table) -> pa.Table:
    """Blank the text of code, which is most of it: graphs only read the text of documents and configurations."""
    modules = modules_of(chunks, spans_of(chunks))
    settings = [*filter(is_config_file, modules.paths), *read_configurations(modules)]
    is_setting = pc.is_in(chunks["path"], pa.array(settings, pa.string()))
    is_read = pc.or_(pc.equal(chunks["source_type"], DOCUMENT), is_setting)
    at = chunks.schema.get_field_index("text")
    return chunks.set_column(at, chunks.field(at), pc.if_else(is_read, chunks["text"], ""))


def rows_of(chunks: pa.Table, order: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    """Yield the rows at the given positions, of shape (rows,), int64, as dictionaries in this order."""
    for begin in range(0, len(order), _MOST_ROWS):
        yield from chunks.take(pa.array(order[begin : begin + _MOST_ROWS])).to_pylist()
