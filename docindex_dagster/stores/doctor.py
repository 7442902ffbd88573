"""Checking that what is published is whole: the three stores agree with each other and with the tables."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from docindex_dagster import tables
from docindex_dagster.errors import StoreError
from docindex_dagster.layout import Layout
from docindex_dagster.stores import graph_files, lance_table, tantivy_index
from docindex_dagster.stores.difference import disagreement
from docindex_dagster.stores.generation import Generation, PublishedSource
from docindex_dagster.stores.reader import Reader, open_reader
from docindex_dagster.stores.triples import Graph


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: which source (None: the index as a whole), which store, and what."""

    source: str | None
    store: str
    problem: str


def examine(layout: Layout) -> Iterator[Finding]:
    """Everything that is wrong with the published generation; nothing when it is whole."""
    try:
        reader = open_reader(layout)
        table = reader.table
        table.count_rows()
    except (StoreError, ValueError, OSError, RuntimeError) as error:
        yield Finding(None, "generation", str(error))
        return
    for key, published in reader.generation.sources.items():
        yield from _source(layout, reader, key, published)
    yield from _strangers(reader)


def _source(layout: Layout, reader: Reader, key: str, published: PublishedSource) -> Iterator[Finding]:
    in_lance = lance_table.held(reader.table, key)
    in_tantivy = tantivy_index.held(reader.searcher, reader.index.schema, key)
    if in_lance.num_rows != published.chunks:
        yield Finding(key, "LanceDB", f"holds {in_lance.num_rows} chunks, {published.chunks} were published")
    if problem := disagreement(in_tantivy, in_lance):
        yield Finding(key, "Tantivy", f"differs from LanceDB: {problem}")
    chunks = tables.read(layout.table("chunks", key))
    if chunks is None:
        yield Finding(key, "chunks", "the table is missing or damaged")
    elif problem := disagreement(in_lance, chunks):
        yield Finding(key, "LanceDB", f"differs from the chunks table: {problem}")
    if published.graph:
        yield from _graph(layout, key, published, in_lance)


def _graph(layout: Layout, key: str, published: PublishedSource, in_lance: pa.Table) -> Iterator[Finding]:
    files = published.graph
    parts = [tables.read(layout.graph / name) for name in (files.nodes, files.triples)] if files else []
    nodes, triples = parts or (None, None)
    if nodes is None or triples is None:
        yield Finding(key, "graph", "its files are missing or damaged")
    elif problem := graph_files.stray_edges(Graph(nodes, triples), in_lance):
        yield Finding(key, "graph", problem)


def _strangers(reader: Reader) -> Iterator[Finding]:
    """Rows of sources that the generation does not name."""
    expected = sum(source.chunks for source in reader.generation.sources.values())
    for store, rows in (("LanceDB", reader.table.count_rows()), ("Tantivy", reader.searcher.num_docs)):
        if rows > expected:
            yield Finding(None, store, f"holds {rows - expected} rows of sources that are not published")


def sources_to_rebuild(findings: list[Finding], generation: Generation | None) -> list[str]:
    """The sources that must be indexed in full to mend the findings."""
    if any(finding.source is None for finding in findings):
        return list(generation.sources) if generation else []
    return sorted({finding.source for finding in findings if finding.source})
