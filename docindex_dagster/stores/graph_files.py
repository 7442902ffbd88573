"""The graph: one Parquet file of nodes and one of triples a source, opened together as a networkx graph."""

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster import tables
from docindex_dagster.errors import StoreError
from docindex_dagster.hashing import digest_parts
from docindex_dagster.layout import Layout, file_name
from docindex_dagster.stores.generation import Generation, GraphFiles
from docindex_dagster.stores.triples import GRAPH_VERSION, Graph

if TYPE_CHECKING:
    from networkx import MultiDiGraph

_VERSION_DIGITS = 16
# Which extractor made a graph, in the metadata of its files; absent from one that is not complete.
_MADE_BY = b"docindex.graph"


def write(layout: Layout, source: str, graph: Graph, made_from: str) -> GraphFiles:
    """Write a source's complete graph; `made_from` identifies its input, and files of an equal input are left alone."""
    marked = (
        table.replace_schema_metadata({_MADE_BY: GRAPH_VERSION.encode()}) for table in (graph.nodes, graph.triples)
    )
    return _write(layout, source, Graph(*marked), digest_parts(GRAPH_VERSION, made_from))


def write_incomplete(layout: Layout, source: str, graph: Graph, made_from: str) -> GraphFiles:
    """Write what could be extracted. The next change of the source extracts its whole graph again."""
    return _write(layout, source, graph, digest_parts(GRAPH_VERSION, made_from, "incomplete"))


def _write(layout: Layout, source: str, graph: Graph, version: str) -> GraphFiles:
    names = {kind: f"{file_name(source)}.{version[:_VERSION_DIGITS]}.{kind}.parquet" for kind in ("nodes", "triples")}
    for name, table in zip(names.values(), (graph.nodes, graph.triples), strict=True):
        tables.write(layout.graph / name, tables.stamp(table, version))
    return GraphFiles(**names)


def read_complete(layout: Layout, files: GraphFiles) -> Graph | None:
    """The graph of one source to take rows from; None where it is damaged, not complete, or of another extractor."""
    graph = read(layout, files)
    if graph is None or any(
        (table.schema.metadata or {}).get(_MADE_BY) != GRAPH_VERSION.encode() for table in (graph.nodes, graph.triples)
    ):
        return None
    return Graph(graph.nodes.replace_schema_metadata(None), graph.triples.replace_schema_metadata(None))


def read(layout: Layout, files: GraphFiles) -> Graph | None:
    """The graph of one source, or None where a file is missing or damaged."""
    nodes, triples = (tables.read(layout.graph / name) for name in (files.nodes, files.triples))
    return None if nodes is None or triples is None else Graph(nodes, triples)


def missing(layout: Layout, generation: Generation) -> set[str]:
    """The names of graph files of a generation that are not there."""
    wanted = generation.graph_files()
    return wanted - {file.name for file in layout.graph.glob("*")} if wanted else set()


def stray_edges(graph: Graph, chunks: pa.Table) -> str:
    """An empty string when every edge is proved by a chunk and joins known nodes, else what is wrong."""
    unproved = pc.invert(pc.is_in(graph.triples["chunk_id"], chunks["chunk_id"]))
    for column in ("subject", "object"):
        unproved = pc.or_(unproved, pc.invert(pc.is_in(graph.triples[column], graph.nodes["node"])))
    strays = graph.triples.filter(unproved)
    if not strays.num_rows:
        return ""
    first = strays.slice(0, 1).select(["subject", "predicate", "object"]).to_pylist()[0]
    return f"{strays.num_rows} edges without their chunk or node, first {' '.join(first.values())}"


def remove_unused(layout: Layout, used: set[str]) -> None:
    """Delete the files of generations that are gone, and what writers that were killed left half written."""
    for file in layout.graph.glob("*"):
        if file.name not in used:
            file.unlink(missing_ok=True)


def open_graph(layout: Layout, generation: Generation) -> "MultiDiGraph[str]":
    """The graph of a whole generation; nodes are named `source!node`, so that sources do not run into each other.

    Raises:
        StoreError: a file is missing or damaged.
    """
    from networkx import MultiDiGraph

    opened: MultiDiGraph[str] = MultiDiGraph()
    for key, source in generation.sources.items():
        if source.graph is None:
            continue
        graph = read(layout, source.graph)
        if graph is None:
            raise StoreError(f"the graph of {key} is missing or damaged; run `docindex doctor`")
        opened.add_nodes_from((f"{row['source']}!{row['node']}", row) for row in graph.nodes.to_pylist())
        for row in graph.triples.to_pylist():
            subject, target = (f"{row['source']}!{row[end]}" for end in ("subject", "object"))
            opened.add_edge(subject, target, key=row["predicate"], **row)
    return opened
