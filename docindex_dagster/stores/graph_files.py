"""The graph: one Parquet file of nodes and one of triples a source, opened together.

A reader maps the files of its generation when it opens it, and reads them when the graph is first asked. So a search
that never asks it pays at most some 0.1 ms a file, and one that does finds them, though they may be removed by then.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster import tables
from docindex_dagster.graph.build import GRAPH_VERSION, Graph
from docindex_dagster.hashing import digest_parts
from docindex_dagster.layout import Layout, file_name
from docindex_dagster.stores.damage import damaged
from docindex_dagster.stores.generation import Generation, GraphFiles

if TYPE_CHECKING:
    from docindex_dagster.graph.opened import OpenGraph

_VERSION_DIGITS = 16
# Which extractor made a graph, in the metadata of its files; absent from one that is not complete.
_MADE_BY = b"docindex.graph"


def write(layout: Layout, source: str, graph: Graph, made_from: str, made_by: str = GRAPH_VERSION) -> GraphFiles:
    """Write a source's graph, from which the next run may take rows, and leave files of an equal input alone.

    Args:
        layout: where the index lives.
        source: its key.
        graph: of the source.
        made_from: identifies its input.
        made_by: identifies the extractor and its settings.
    """
    marked = (table.replace_schema_metadata({_MADE_BY: made_by.encode()}) for table in (graph.nodes, graph.triples))
    # Where a file ran out of time, an equal input may give more.
    content = () if graph.is_settled else (tables.data_version(graph.nodes), tables.data_version(graph.triples))
    return _write(layout, source, Graph(*marked), digest_parts(GRAPH_VERSION, made_by, made_from, *content))


def write_incomplete(layout: Layout, source: str, graph: Graph, made_from: str) -> GraphFiles:
    """Write what could be extracted. The next run extracts the whole graph of the source again."""
    content = (tables.data_version(table) for table in (graph.nodes, graph.triples))
    return _write(layout, source, graph, digest_parts(GRAPH_VERSION, made_from, "incomplete", *content))


def _write(layout: Layout, source: str, graph: Graph, version: str) -> GraphFiles:
    names = {kind: f"{file_name(source)}.{version[:_VERSION_DIGITS]}.{kind}.parquet" for kind in ("nodes", "triples")}
    for name, table in zip(names.values(), (graph.nodes, graph.triples), strict=True):
        tables.write(layout.graph / name, tables.stamp(table, version))
    return GraphFiles(**names)


def read_complete(layout: Layout, files: GraphFiles, made_by: str = GRAPH_VERSION) -> Graph | None:
    """The graph of one source to take rows from; None where it is damaged, not complete, or made in another way."""
    graph = read(layout, files)
    if graph is None or any(
        (table.schema.metadata or {}).get(_MADE_BY) != made_by.encode() for table in (graph.nodes, graph.triples)
    ):
        return None
    return Graph(graph.nodes.replace_schema_metadata(None), graph.triples.replace_schema_metadata(None))


def read(layout: Layout, files: GraphFiles) -> Graph | None:
    """The graph of one source, or None where a file is missing or damaged."""
    nodes, triples = (tables.read(layout.graph / name) for name in (files.nodes, files.triples))
    return None if nodes is None or triples is None else Graph(nodes, triples)


def mapped(layout: Layout, generation: Generation) -> dict[str, pa.Buffer]:
    """The graph files of a generation by their names, as they lie on the disk; without those that are not there."""
    found = {}
    for name in generation.graph_files():
        with suppress(FileNotFoundError), pa.memory_map(str(layout.graph / name)) as file:
            found[name] = file.read_buffer()
    return found


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


def open_graph(generation: Generation, files: Mapping[str, pa.Buffer], keys: Iterable[str]) -> "OpenGraph":
    """The graph of some sources of a generation, whose mapped files are given, as one.

    Raises:
        DamagedStoreError: a file is missing or damaged.
    """
    from docindex_dagster.graph.opened import open_graphs

    wanted = {key: graph for key in keys if (graph := generation.sources[key].graph)}
    return open_graphs({key: _read_mapped(key, files, graph) for key, graph in wanted.items()})


def _read_mapped(key: str, files: Mapping[str, pa.Buffer], graph: GraphFiles) -> Graph:
    nodes, triples = (
        tables.read(pa.BufferReader(files[name])) if name in files else None for name in (graph.nodes, graph.triples)
    )
    if nodes is None or triples is None:
        raise damaged(f"the graph of {key} is missing or cannot be read")
    return Graph(nodes, triples)
