"""The graph of a source: nodes and triples, made from its chunks alone.

Node ids: a file is its path; a symbol `path::qualified.name`, with `~2` for a second one of that name; a section
`path#Heading > Subheading`; what lies outside the source `external:NAME`; what could not be found `unresolved:NAME`.

Each file is resolved on its own, and leaves with its node what it looked at. So after an edit those files are resolved
again that looked at what changed, and the result is that of a build from nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.code.shapes import has_facts
from docindex_dagster.collection import without_collection
from docindex_dagster.graph.concepts.edges import concept_edges
from docindex_dagster.graph.concepts.findings import NOTHING, Findings
from docindex_dagster.graph.documents import DOCUMENT, document_edges
from docindex_dagster.graph.file_edges import FileEdges
from docindex_dagster.graph.modules import Modules, is_configuration, make_modules
from docindex_dagster.graph.program import Index, Program, Units
from docindex_dagster.graph.resolve import Resolver
from docindex_dagster.graph.sections import anchors, read_document, section_edges
from docindex_dagster.graph.triple import OUTSIDE, Node, Triple, node_table, triple_table
from docindex_dagster.schemas import COMMIT

# Raise it when the same chunks give another graph.
GRAPH_VERSION = "7"
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
    "facts",
)


@dataclass(frozen=True, slots=True)
class Graph:
    """What one source adds to the graph: tables of the schemas NODES and TRIPLES."""

    nodes: pa.Table
    triples: pa.Table


@dataclass(frozen=True, slots=True)
class Content:
    """What goes into a graph beside files and sections."""

    code: bool = True  # what code defines, imports, calls
    concepts: Findings = NOTHING
    most_concepts: int = 10  # a chunk, and as many relations between them
    found_by: str = "none"  # who found the concepts


_ALL_BUT_CONCEPTS = Content()
_MOST_TRIPLES = 20_000  # that wait for their table


@without_collection()
def build_graph(chunks: pa.Table, content: Content = _ALL_BUT_CONCEPTS) -> Graph:
    """The graph of a source with these chunks, which are sorted by path.

    Rows are sorted by path; nodes outside the source come last.
    """
    files = _of_files(chunks)
    units = Units(files)
    program = Program(units, _modules(files), Index.of({path: [*units.offers(path).looks] for path in units}))
    return _assembled(_extracted(program, files, [*units], content))


@without_collection()
def update_graph(
    previous: Graph, chunks: pa.Table, is_new: pa.ChunkedArray, content: Content = _ALL_BUT_CONCEPTS
) -> Graph:
    """The same graph as `build_graph(chunks, content)`, with the rows of files that look at nothing new taken over.

    Args:
        previous: the graph of what the source held before.
        chunks: what it holds now.
        is_new: one boolean a chunk: it was not held before in this form.
        content: of the same kind as that of `previous`.
    """
    files = _of_files(chunks)
    units = Units(files)
    known = {row["path"]: row for row in _file_nodes(previous)}
    changed = {path for path in pc.unique(chunks["path"].filter(is_new)).to_pylist() if path in units}
    changed.update(path for path in units if path not in known)
    seen = {path: units.offers(path).looks for path in changed}
    news = _news(seen, known, {path for path in known if path not in units})
    if any(is_configuration(path) for path in news.paths):
        return build_graph(chunks, content)
    stale = pa.array(sorted(news.keys), pa.uint32())
    again = sorted({*changed, *(path for path in _looking(previous, stale) if path in units)})
    keys = {path: [*seen[path]] if path in seen else known[path]["offers"] for path in units}
    program = Program(units, _modules(files), Index.of(keys))
    untouched = pa.array(sorted(set(units) - set(again)), pa.string())
    kept = Graph(*(table.filter(pc.is_in(table["path"], untouched)) for table in (previous.nodes, previous.triples)))
    return _assembled(kept, _extracted(program, files, again, content))


def _of_files(chunks: pa.Table) -> pa.Table:
    return chunks.filter(pc.not_equal(chunks["source_type"], COMMIT))


def _modules(files: pa.Table) -> Modules:
    paths = pc.unique(files["path"]).to_pylist()
    wanted = pa.array([path for path in paths if is_configuration(path)], pa.string())
    texts: dict[str, str] = {}
    for row in files.filter(pc.is_in(files["path"], wanted)).select(["path", "text"]).to_pylist():
        texts[row["path"]] = texts.get(row["path"], "") + row["text"]
    return make_modules(paths, texts)


@dataclass(frozen=True, slots=True)
class _News:
    """What looks different now: keys, and the files that changed or are gone."""

    keys: frozenset[int]
    paths: frozenset[str]


def _news(seen: Mapping[str, Mapping[int, int]], known: Mapping[str, Mapping[str, Any]], gone: set[str]) -> _News:
    keys: set[int] = set()
    for path in {*seen, *gone}:
        before = known.get(path)
        old = dict(zip(before["offers"], before["looks"], strict=True)) if before else {}
        new = seen.get(path, {})
        keys.update(key for key in {*old, *new} if old.get(key) != new.get(key))
    return _News(frozenset(keys), frozenset({*seen, *gone}))


def _file_nodes(graph: Graph) -> Iterator[dict[str, Any]]:
    files = graph.nodes.filter(pc.equal(graph.nodes["type"], "file"))
    rows: Iterator[dict[str, Any]] = iter(files.select(["path", "offers", "looks"]).to_pylist())
    return rows


def _looking(graph: Graph, keys: pa.Array) -> list[str]:
    """The files that looked at one of some keys."""
    files = graph.nodes.filter(pc.equal(graph.nodes["type"], "file")).combine_chunks()
    depends = files["depends"].combine_chunks()
    rows = pc.list_parent_indices(depends).filter(pc.is_in(pc.list_flatten(depends), keys))
    found: list[str] = pc.unique(files["path"].take(rows)).to_pylist()
    return found


def _extracted(program: Program, files: pa.Table, paths: Sequence[str], content: Content) -> Graph:
    """The nodes and triples of some files, without the nodes that lie outside the source."""
    wanted = (
        files
        if len(paths) == len(program.units)
        else files.filter(pc.is_in(files["path"], pa.array(paths, pa.string())))
    )
    parts = [*_parts(Resolver(program), wanted, content)]
    return Graph(pa.concat_tables([part.nodes for part in parts]), pa.concat_tables([part.triples for part in parts]))


def _parts(resolver: Resolver, wanted: pa.Table, content: Content) -> Iterator[Graph]:
    """The graph in parts, since many rows take much more memory as objects than in a table."""
    nodes: list[Node] = []
    triples: list[Triple] = []
    is_document = pc.equal(wanted["source_type"], DOCUMENT)
    found = content.concepts.of(wanted["embed_text_hash"].filter(is_document))
    for path, group in groupby(_rows(wanted, is_document), key=itemgetter("path")):
        rows = [*group]
        in_file, edges = _file(resolver, path, rows, with_code=content.code)
        nodes += in_file
        triples += edges
        if rows[0]["source_type"] == DOCUMENT:
            chunks = read_document(rows)
            sections, edges = section_edges(chunks)
            nodes += sections
            nodes += anchors(chunks)
            triples += edges
            triples += document_edges(chunks)
            triples += concept_edges(chunks, found, content.most_concepts, content.found_by)
        if len(triples) > _MOST_TRIPLES:
            yield Graph(node_table(nodes), triple_table(triples))
            nodes, triples = [], []
    yield Graph(node_table(nodes), triple_table(triples))


def _file(
    resolver: Resolver, path: str, rows: Sequence[dict[str, Any]], *, with_code: bool
) -> tuple[Iterable[Node], Iterable[Triple]]:
    first = rows[0]
    resolver.start()
    unit = resolver.program.units[path]
    edges = FileEdges(resolver, unit, first["source"])
    if with_code and has_facts(unit.language):
        edges.collect()
    elif with_code:
        edges.define()
        edges.import_as_written(first["imports"] or (), first["start_line"])
    if first["source_type"] != DOCUMENT:
        for row in rows:
            edges.sections(row)
    seen = resolver.program.units.offers(path).looks
    about = Node(
        path,
        "file",
        path,
        first["source"],
        path,
        first["chunk_id"],
        [*seen],
        [*seen.values()],
        resolver.looked(),
    )
    return [about, *edges.nodes.values()], edges.triples.values()


def _assembled(*parts: Graph) -> Graph:
    """Parts without a common file as one graph, sorted by path, with the nodes that lie outside the source."""
    nodes, triples = (
        _by_path(pa.concat_tables(tables))
        for tables in zip(*((part.nodes, part.triples) for part in parts), strict=True)
    )
    ends = (triples.select([end, f"{end}_type"]).rename_columns(["node", "type"]) for end in ("object", "subject"))
    outside = pa.concat_tables([table.filter(pc.is_in(table["type"], pa.array(OUTSIDE))) for table in ends])
    outside = outside.group_by(["node", "type"]).aggregate([]).sort_by("node")
    source = triples["source"][0].as_py() if outside.num_rows else ""
    of_outside = [
        Node(row["node"], row["type"], row["node"].partition(":")[2] or row["node"], source)
        for row in outside.to_pylist()
    ]
    return Graph(pa.concat_tables([nodes, node_table(of_outside)]).combine_chunks(), triples.combine_chunks())


def _by_path(table: pa.Table) -> pa.Table:
    """Sorted by path, the rows of a file in the order in which they were found."""
    paths = table["path"].combine_chunks().dictionary_encode()
    ranks = np.empty(len(paths.dictionary), np.int64)
    ranks[pc.sort_indices(paths.dictionary).to_numpy()] = np.arange(len(ranks))
    return table.take(pa.array(np.argsort(ranks[paths.indices.to_numpy()], kind="stable")))


def _rows(chunks: pa.Table, is_document: pa.ChunkedArray) -> Iterator[dict[str, Any]]:
    """Chunks as dictionaries, the text and facts of documents alone."""
    needed = chunks.select(list(_NEEDED))
    for name in ("text", "facts"):
        of_documents = pc.if_else(is_document, chunks[name], pa.scalar(None, pa.string()))
        needed = needed.set_column(needed.schema.get_field_index(name), name, of_documents)
    for batch in needed.to_batches(max_chunksize=4096):
        yield from batch.to_pylist()
