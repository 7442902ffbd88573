"""Graph files: a Parquet file of nodes and one of triples per source, opened together; small sources are in packs.

A reader maps the files of its generation when it opens it, and reads them when the graph is first used. A search that
does not use the graph thus pays at most about 0.1 ms per file, and others find the files even after their removal.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout, file_name
from docindex_dagster.graph.failures import sentence_unlinked
from docindex_dagster.graph.source_graph import NODES_TABLE, TRIPLES_TABLE, Graph
from docindex_dagster.stores import packs
from docindex_dagster.stores.damage import damaged
from docindex_dagster.stores.generation import Generation, GraphFiles

if TYPE_CHECKING:
    from docindex_dagster.graph.open_graph import OpenGraph

_VERSION_DIGITS = 16


def write(layout: Layout, source: str, graph: Graph, version: str, *, made: str = "") -> GraphFiles:
    """Write the graph of a source; existing files of the same version are left alone.

    Args:
        layout: of the home with the index.
        source: its key.
        graph: of the source.
        version: equal for equal graphs, and only for them.
        made: the version of its tables, whose files are copied if they match, since they hold the same rows; "" to
            write all rows.
    """
    names = {kind: f"{file_name(source)}.{version[:_VERSION_DIGITS]}.{kind}.parquet" for kind in ("nodes", "triples")}
    source_tables = (layout.table(table, source) for table in (NODES_TABLE, TRIPLES_TABLE))
    for name, table, rows in zip(names.values(), source_tables, (graph.nodes, graph.triples), strict=True):
        path = layout.graph / name
        if not (made and tables.copy(table, path, made)):
            tables.write(path, tables.stamp(rows, version))
    return GraphFiles(**names)


def read(files: Mapping[str, pa.Buffer], graph: GraphFiles) -> Graph | None:
    """Return the graph of a source from mapped files, or None if one is missing or damaged."""
    nodes, triples = (
        tables.read(pa.BufferReader(files[name])) if name in files else None for name in (graph.nodes, graph.triples)
    )
    return None if nodes is None or triples is None else Graph(nodes, triples)


def mapped(layout: Layout, generation: Generation) -> dict[str, pa.Buffer]:
    """Return the memory-mapped graph files of a generation by name, without missing files."""
    graph_names = generation.graph_files()
    found = {
        name: data
        for pack in packs.sources_by_pack(generation)
        for name, data in packs.graphs(layout, pack).items()
        if name in graph_names
    }
    for name in generation.loose_graph_files():
        with suppress(FileNotFoundError), pa.memory_map(str(layout.graph / name)) as file:
            found[name] = file.read_buffer()
    return found


def open_graph(generation: Generation, files: Mapping[str, pa.Buffer], keys: Iterable[str]) -> "OpenGraph":
    """Open the graphs of sources of a generation as a single graph, from mapped files.

    Raises:
        DamagedStoreError: a file is missing or damaged.
    """
    from docindex_dagster.graph.open_graph import open_graphs

    keys = list(keys)
    graphs_by_key = {key: graph for key in keys if (graph := generation.sources[key].graph)}
    found = {key: read(files, graph) for key, graph in graphs_by_key.items()}
    if missing := [key for key, graph in found.items() if graph is None]:
        raise damaged(f"the graph of {missing[0]} is missing or cannot be read")
    opened = open_graphs({key: graph for key, graph in found.items() if graph is not None})
    return replace(opened, unlinked_files=sentence_unlinked(*generation.count_unlinked(keys)))


def batches(files: Mapping[str, pa.Buffer], name: str, columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
    """Yield columns of a mapped file, up to `rows` rows at a time.

    Raises:
        DamagedStoreError: the file is missing or damaged.
    """
    try:
        with pq.ParquetFile(pa.BufferReader(files[name])) as file:
            for batch in file.iter_batches(rows, columns=list(columns)):
                yield pa.Table.from_batches([batch])
    except (KeyError, OSError, pa.ArrowException) as error:
        raise damaged(f"graph file {name} is missing or cannot be read") from error
