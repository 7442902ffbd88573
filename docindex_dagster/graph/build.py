"""The graph of a source: nodes and triples, made from its chunks and references alone.

Node ids: a file is its path; a symbol `path::qualified.name`, with `~2` for a second one of that name; a section
`path#Heading > Subheading`; what lies outside the source `external:NAME`; what could not be found `unresolved:NAME`.

Each file is resolved on its own, and leaves with its node what it looked at. So after an edit those files are resolved
again that looked at what changed, and the result is that of a build from nothing.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.chunk_symbols import definitions_of
from docindex_dagster.callgraph.dependencies.tabling import TIME_OUT, Limits, OverLimitError, Table
from docindex_dagster.callgraph.ir import FileIR
from docindex_dagster.callgraph.languages import has_calls
from docindex_dagster.callgraph.modules import Modules, is_configuration
from docindex_dagster.callgraph.program import Index, Program, Units
from docindex_dagster.callgraph.resolver.queries import Queries
from docindex_dagster.callgraph.resolver.resolver import resolver as resolver_of
from docindex_dagster.callgraph.table_reading import References
from docindex_dagster.callgraph.units import Chunks, Unit
from docindex_dagster.core.errors import first_line
from docindex_dagster.core.events import ignore, reporter
from docindex_dagster.core.garbage import gc_disabled
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.replacing import by_path, replaced
from docindex_dagster.core.schemas import COMMIT
from docindex_dagster.graph.concepts.edges import concept_edges
from docindex_dagster.graph.concepts.extractor import Found
from docindex_dagster.graph.concepts.findings import NOTHING, Findings
from docindex_dagster.graph.documents import DOCUMENT, document_edges
from docindex_dagster.graph.file_edges import FileEdges
from docindex_dagster.graph.known_files import KnownFiles, keys_of, news_of
from docindex_dagster.graph.recent_units import RecentUnits
from docindex_dagster.graph.sections import anchors, read_document, section_edges
from docindex_dagster.graph.source_graph import Graph
from docindex_dagster.graph.triple import Node, Triple, node_table, outside_nodes, triple_table

_NEEDED = (
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


@dataclass(frozen=True, slots=True)
class Content:
    """What goes into a graph beside files and sections."""

    code: bool = True  # what code defines, imports, calls
    concepts: Findings = NOTHING
    most_concepts: int = 10  # a chunk, and as many relations between them
    found_by: str = "none"  # who found the concepts
    limits: Limits = field(default_factory=Limits)


_ALL_BUT_CONCEPTS = Content()
_MOST_TRIPLES = 20_000  # that wait for their table
_recent = RecentUnits()


@gc_disabled()
def build_graph(chunks: pa.Table, references: pa.Table, content: Content = _ALL_BUT_CONCEPTS) -> Graph:
    """The graph of a source with these chunks, which are sorted by path, and these references.

    Rows are sorted by path; nodes outside the source come last.

    Raises:
        ValueError: what should be references is another table.
    """
    files, irs = _of_files(chunks), References(references)
    units = _units(files, _spans(files), irs)
    index = Index.of([*units], *keys_of({at: units.offers(path).fingerprints for at, path in enumerate(units)}))
    new = _extracted(_resolver(units, files, index, content), files, irs, [*units], content)
    return _with_outside(by_path(new.nodes), by_path(new.triples))


@gc_disabled()
def update_graph(
    previous: Graph, chunks: pa.Table, references: pa.Table, content: Content = _ALL_BUT_CONCEPTS
) -> Graph:
    """The same graph as `build_graph` gives, with the rows of files that look at nothing new taken over.

    Args:
        previous: the graph of what the source held before.
        chunks: what it holds now.
        references: of its files now.
        content: of the same kind as that of `previous`.

    Raises:
        ValueError: what should be references is another table.
    """
    files, irs = _of_files(chunks), References(references)
    spans = _spans(files)
    made_from = _made_from(files, spans, irs)
    units = _recent.units(made_from, _maker(files, spans, irs))
    known = KnownFiles.of(previous)
    changed = {path for path in units if known.made_from.get(path) != made_from[path]}
    seen = {path: units.offers(path).fingerprints for path in changed}
    gone = {path for path in known.rows if path not in units}
    news = news_of(seen, known, gone)
    if any(is_configuration(path) for path in news.paths):
        return build_graph(chunks, references, content)
    again = sorted({*changed, *(path for path in known.looking(news.keys) if path in units)})
    index = known.index([*units], seen)
    new = _extracted(_resolver(units, files, index, content), files, irs, again, content)
    inside = previous.nodes.slice(0, previous.nodes.num_rows - previous.nodes["path"].null_count)
    out = sorted({*again, *gone})
    nodes = replaced(inside, out, by_path(new.nodes))
    return _with_outside(nodes, replaced(previous.triples, out, by_path(new.triples)))


# What a unit is made of, beside what its file says.
_OF_UNITS = ("path", "chunk_id", "language", "source_type", "symbols", "start_line", "start_byte")


def _spans(files: pa.Table) -> dict[str, tuple[int, int]]:
    """The first row and the end of each file in a table of chunks, which is sorted by path and position."""
    paths = files["path"].combine_chunks().dictionary_encode()
    codes = paths.indices.to_numpy(zero_copy_only=False)
    begins = np.flatnonzero(np.diff(codes, prepend=-1))
    ends = np.append(begins, len(codes))[1:]
    names = paths.dictionary.take(pa.array(codes[begins])).to_pylist()
    return dict(zip(names, zip(begins.tolist(), ends.tolist(), strict=True), strict=True))


def _units(files: pa.Table, spans: Mapping[str, tuple[int, int]], irs: References) -> Units:
    """The units of the files of a table of chunks."""
    return Units(spans, _maker(files, spans, irs))


def _maker(files: pa.Table, spans: Mapping[str, tuple[int, int]], irs: References) -> Callable[[str], Unit]:
    """What makes the unit of a file."""
    columns = files.select(list(_OF_UNITS))

    def make(path: str) -> Unit:
        begin, end = spans[path]
        rows = columns.slice(begin, end - begin)
        language, source_type = (rows[name][0].as_py() for name in ("language", "source_type"))
        found = irs.get(path)
        if found is None:
            found = FileIR(tuple(definitions_of(rows.to_pylist())))
        starts = [rows[name].to_pylist() for name in ("start_line", "start_byte")]
        chunks = Chunks(rows["chunk_id"].to_pylist(), *starts)
        return Unit(path, language or "", found, is_test=source_type == "test", chunks=chunks)

    return make


def _resolver(units: Units, files: pa.Table, index: Index, content: Content) -> Queries:
    """The resolver of all files, which are found by an index."""
    table = Table(content.limits)
    return resolver_of(Program(units, _modules(files), index, table), table)


def _of_files(chunks: pa.Table) -> pa.Table:
    is_file = pc.not_equal(chunks["source_type"], COMMIT)
    return chunks if pc.all(is_file).as_py() else chunks.filter(is_file)  # all texts would be copied


def versions_of(chunks: pa.Table, references: pa.Table) -> dict[str, str]:
    """By path, what the node of a file says that it was made from.

    Raises:
        ValueError: what should be references is another table.
    """
    files = _of_files(chunks)
    return _made_from(files, _spans(files), References(references))


def _made_from(files: pa.Table, spans: Mapping[str, tuple[int, int]], irs: References) -> dict[str, str]:
    """A hash of the chunks and references of each file, by its path."""
    hashes = files["row_hash"].to_pylist()
    return {path: digest_parts(irs.version_of(path), *hashes[begin:end]) for path, (begin, end) in spans.items()}


def _modules(files: pa.Table) -> Modules:
    paths = pc.unique(files["path"]).to_pylist()
    wanted = pa.array([path for path in paths if is_configuration(path)], pa.string())
    texts: dict[str, str] = {}
    for row in files.filter(pc.is_in(files["path"], wanted)).select(["path", "text"]).to_pylist():
        texts[row["path"]] = texts.get(row["path"], "") + row["text"]
    return Modules(frozenset(paths), texts)


def _extracted(resolver: Queries, files: pa.Table, irs: References, paths: Sequence[str], content: Content) -> Graph:
    """The nodes and triples of some files, without the nodes that lie outside the source."""
    wanted = (
        files
        if len(paths) == len(resolver.program.units)
        else files.filter(pc.is_in(files["path"], pa.array(paths, pa.string())))
    )
    with closing(resolver):
        parts = [*_parts(resolver, wanted, irs, content)]
    return Graph(pa.concat_tables([part.nodes for part in parts]), pa.concat_tables([part.triples for part in parts]))


def _parts(resolver: Queries, wanted: pa.Table, irs: References, content: Content) -> Iterator[Graph]:
    """The graph in parts, since many rows take much more memory as objects than in a table."""
    nodes: list[Node] = []
    triples: list[Triple] = []
    is_document = pc.equal(wanted["source_type"], DOCUMENT)
    concepts = content.concepts.of(wanted["embed_text_hash"].filter(is_document))
    ends_at = time.monotonic() + content.limits.source_s
    count = len(pc.unique(wanted["path"]))
    announce = reporter(wanted["source"][0].as_py(), "knowledge_graph", "files") if count else ignore
    announce(0, count)
    for done, (path, group) in enumerate(groupby(_rows(wanted, is_document), key=itemgetter("path")), start=1):
        file = _File(resolver, path, [*group], irs.version_of(path), content, concepts)
        try:
            of_file = file.extracted(ends_at)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 it costs the file its edges, and is reported with its name
            of_file = file.defined(_as_problem(error))
        announce(done, count)
        nodes += of_file[0]
        triples += of_file[1]
        if len(triples) > _MOST_TRIPLES:
            yield Graph(node_table(nodes), triple_table(triples))
            nodes, triples = [], []
    yield Graph(node_table(nodes), triple_table(triples))


def _as_problem(error: Exception) -> str:
    return str(error) if isinstance(error, OverLimitError) else f"error: {type(error).__name__}: {first_line(error)}"


@dataclass(frozen=True, slots=True)
class _File:
    """A file of which nodes and edges are wanted.

    Attributes:
        resolver: of its source.
        path: of the file.
        rows: its chunks.
        references: a hash of what the file says about names.
        content: what is wanted.
        concepts: what is in texts, by their hashes.
    """

    resolver: Queries
    path: str
    rows: Sequence[dict[str, Any]]
    references: str
    content: Content
    concepts: Mapping[str, Found]

    def extracted(self, ends_at: float) -> tuple[list[Node], list[Triple]]:
        """All that it says.

        Raises:
            OverLimitError: it takes too much, or the source took until `ends_at`, of `time.monotonic`, before.
        """
        if time.monotonic() > ends_at:
            raise OverLimitError(f"{TIME_OUT}the files before it took over {self.content.limits.source_s:g} s")
        edges, first = self._start(), self.rows[0]
        if self.content.code and has_calls(edges.unit.language):
            edges.collect()
        elif self.content.code:
            edges.define()
            edges.import_as_written(first["imports"] or (), first["start_line"])
        if first["source_type"] != DOCUMENT:
            for row in self.rows:
                edges.sections(row)
            return [self._about(), *edges.nodes.values()], [*edges.triples.values()]
        chunks = read_document(self.rows)
        sections, of_sections = section_edges(chunks)
        of_concepts = concept_edges(chunks, self.concepts, self.content.most_concepts, self.content.found_by)
        return (
            [self._about(), *edges.nodes.values(), *sections, *anchors(chunks)],
            [*edges.triples.values(), *of_sections, *document_edges(chunks), *of_concepts],
        )

    def defined(self, problem: str) -> tuple[list[Node], list[Triple]]:
        """What it defines, which edges of other files may reach, where the rest is not to be had."""
        edges = self._start()
        if self.content.code:
            edges.define()
        return [self._about(problem), *edges.nodes.values()], [*edges.triples.values()]

    def _start(self) -> FileEdges:
        self.resolver.start()
        return FileEdges(self.resolver, self.resolver.program.units[self.path], self.rows[0]["source"])

    def _about(self, problem: str | None = None) -> Node:
        """The node of the file, with what was looked at so far."""
        source, chunk = self.rows[0]["source"], self.rows[0]["chunk_id"]
        seen = self.resolver.program.units.offers(self.path).fingerprints
        keys = [*seen], [*seen.values()], self.resolver.looked()
        made_from = digest_parts(self.references, *(row["row_hash"] for row in self.rows))
        return Node(self.path, "file", self.path, source, self.path, chunk, made_from, *keys, problem)


def _with_outside(nodes: pa.Table, triples: pa.Table) -> Graph:
    """The graph of all files, which are sorted by path, with the nodes that lie outside the source."""
    return Graph(pa.concat_tables([nodes, outside_nodes(triples)]).combine_chunks(), triples.combine_chunks())


def _rows(chunks: pa.Table, is_document: pa.ChunkedArray) -> Iterator[dict[str, Any]]:
    """Chunks as dictionaries, the text and pointers of documents alone."""
    needed = chunks.select(list(_NEEDED))
    for name in ("text", "pointers"):
        of_documents = pc.if_else(is_document, chunks[name], pa.scalar(None, pa.string()))
        needed = needed.set_column(needed.schema.get_field_index(name), name, of_documents)
    for batch in needed.to_batches(max_chunksize=4096):
        yield from batch.to_pylist()
