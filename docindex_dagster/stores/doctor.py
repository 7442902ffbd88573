"""Consistency checks: the stores of a generation agree with each other, and the published one with the tables.

A rollback publishes the previous generation only if it passes these checks.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa

from docindex_dagster.core import tables
from docindex_dagster.core.errors import DamagedStoreError, StoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import CHUNKS
from docindex_dagster.graph.extraction import Extraction
from docindex_dagster.graph.links import links
from docindex_dagster.graph.source_graph import stray_edges
from docindex_dagster.stores import cleanup, graph_files, lance_table, link_files, row_files, takeover, tantivy_index
from docindex_dagster.stores.damage import damaged, reading_stores
from docindex_dagster.stores.difference import disagreement
from docindex_dagster.stores.generation import (
    SCHEMA_VERSION,
    Generation,
    PublishedSource,
    read_generation,
    read_next,
    write_generation,
)
from docindex_dagster.stores.publish import rows_version
from docindex_dagster.stores.reader import Reader, open_generation, open_reader
from docindex_dagster.stores.rows import SourceRows

_CANDIDATE = "of the pending index"


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem: the source (None for the index in general), the store, and a description."""

    source: str | None
    store: str
    problem: str


def examine(layout: Layout, *, has_tables: bool = True) -> Iterator[Finding]:
    """Yield all problems of the published and the pending generation.

    Without tables, for example if another machine builds them, the stores are compared only with each other.
    """
    yield from _problems_of(layout, lambda: open_reader(layout), has_tables=has_tables)
    try:
        read_next(layout)
    except StoreError as error:
        yield Finding(None, f"generation ({_CANDIDATE})", _problem(error))
    candidate = takeover.pending(layout)
    if candidate is not None:
        for finding in _problems_of(layout, lambda: open_generation(layout, candidate), has_tables=has_tables):
            yield replace(finding, store=f"{finding.store} ({_CANDIDATE})")


def _problems_of(layout: Layout, open_stores: Callable[[], Reader], *, has_tables: bool) -> Iterator[Finding]:
    try:
        with reading_stores():
            reader = open_stores()
            reader.table.count_rows()
    except StoreError as error:
        yield Finding(None, "generation", _problem(error))
        return
    if reader.generation.schema_version != SCHEMA_VERSION:
        yield Finding(None, "generation", "another version of docindex built it")
    for key, published in reader.generation.sources.items():
        try:
            with reading_stores():
                yield from list(_source(layout, reader, key, published, has_tables=has_tables))
        except StoreError as error:
            yield Finding(key, "stores", _problem(error))
    yield from _links(layout, reader)
    yield from _unpublished_rows(reader)


def check(layout: Layout, generation: Generation) -> None:
    """Check that searches can use a generation, using only its stores: the tables may be newer.

    Raises:
        DamagedStoreError: a store cannot be read, or the stores disagree.
    """
    with reading_stores():
        reader = open_generation(layout, generation)
        for key, published in generation.sources.items():
            in_lance = lance_table.held(reader.table, [key])
            in_tantivy = tantivy_index.held(reader.searcher, reader.index.schema, [key])
            for store, problem in _disagreements(reader, key, published, in_lance, in_tantivy).items():
                if problem:
                    raise damaged(f"{key}: {store}: {problem}")


def _problem(error: StoreError) -> str:
    """Return the message of an error without its advice to run the doctor."""
    return error.problem if isinstance(error, DamagedStoreError) else str(error)


def _source(
    layout: Layout, reader: Reader, key: str, published: PublishedSource, *, has_tables: bool
) -> Iterator[Finding]:
    in_lance = lance_table.held(reader.table, [key])
    in_tantivy = tantivy_index.held(reader.searcher, reader.index.schema, [key])
    if not row_files.is_complete(layout, key, published):
        yield Finding(key, "row files", "a file is missing or damaged, so searches read the LanceDB table instead")
    if not has_tables:
        problems = _disagreements(reader, key, published, in_lance, in_tantivy)
        yield from (Finding(key, store, problem) for store, problem in problems.items() if problem)
        return
    chunks, embeddings = (tables.read(layout.table(asset, key)) for asset in ("chunks", "embeddings"))
    if chunks is None or embeddings is None:
        yield Finding(key, "tables", "the table of chunks or embeddings is missing or damaged")
        return
    if not chunks.schema.equals(CHUNKS):
        yield Finding(key, "tables", "the chunks have the schema of another version of docindex")
        return
    rows = SourceRows(key, chunks, embeddings, Extraction(None, published.graph_made_by), published.revision)
    if rows_version(rows, reader.generation.model, published.graph_made_by) == published.version:
        problems = {
            "LanceDB": disagreement(in_lance, lance_table.expected(chunks, embeddings)),
            "Tantivy": disagreement(in_tantivy, chunks),
            "vectors in row files": _vectors(reader, key, in_lance),
            "texts in row files": _texts(reader, key),
            "graph": _graph(reader, published, chunks),
        }
    else:  # a rollback, or a run stopped before publishing: the stores must still agree with each other
        problems = _disagreements(reader, key, published, in_lance, in_tantivy)
    yield from (Finding(key, store, problem) for store, problem in problems.items() if problem)


def _disagreements(
    reader: Reader, key: str, published: PublishedSource, in_lance: pa.Table, in_tantivy: pa.Table
) -> dict[str, str]:
    """Return the disagreements between the stores of a source, by store."""
    return {
        "stores": disagreement(lance_table.without_vectors(in_lance), in_tantivy),
        "vectors in row files": _vectors(reader, key, in_lance),
        "texts in row files": _texts(reader, key),
        "graph": _graph(reader, published, in_lance),
    }


def _vectors(reader: Reader, key: str, in_lance: pa.Table) -> str:
    """Return the problem with the vectors that searches use, or an empty string."""
    rows = reader.parts.of_source(key)
    problem = disagreement(lance_table.part_vector_hashes(rows), lance_table.with_vector_hashes(in_lance))
    return problem or ("" if all(part.has_own_signs(at) for part, at in rows) else "sign bits of other vectors")


def _texts(reader: Reader, key: str) -> str:
    """Return the problem with the texts that searches scan, or an empty string."""
    return row_files.disagreement(reader.parts.of_source(key), lance_table.texts(reader.table, key))


def _graph(reader: Reader, published: PublishedSource, chunks: pa.Table) -> str:
    if published.graph is None:
        return ""
    graph = graph_files.read(reader.graphs, published.graph)
    return "its files are missing or damaged" if graph is None else stray_edges(graph, chunks)


def _links(layout: Layout, reader: Reader) -> Iterator[Finding]:
    """Check the link file that contexts use; problems of a damaged graph are reported with its source."""
    if link_files.read(layout, reader.generation) is None:
        return
    with suppress(StoreError):
        if problem := link_files.problem(layout, reader.generation, links(reader.graph)):
            yield Finding(None, "link file", problem)


def _unpublished_rows(reader: Reader) -> Iterator[Finding]:
    """Check for rows of sources that the generation does not name."""
    expected = sum(source.chunks for source in reader.generation.sources.values())
    for store, rows in (("LanceDB", reader.table.count_rows()), ("Tantivy", reader.searcher.num_docs)):
        if rows > expected:
            yield Finding(None, store, f"holds {rows - expected} rows of unpublished sources")


def roll_back(layout: Layout) -> Generation:
    """Publish the previous generation; a second call undoes the first.

    If it is from another model, publications of the current model have to migrate again. The caller must hold the
    publication lock.

    Raises:
        StoreError: there is no previous generation, or it is damaged; the current one stays published.
    """
    previous = read_generation(layout, previous=True)
    if previous is None:
        raise StoreError("there is no previous generation")
    try:
        check(layout, previous)
    except DamagedStoreError as error:
        reason = f"cannot roll back to generation {previous.number}: {error.problem}"
        raise StoreError(f"{reason}. Searches continue to use the current generation") from error
    write_generation(layout, previous)
    if takeover.pending(layout) is None:
        takeover.drop(layout)  # it would have restored the model that searches now use again
    cleanup.remove_old_generations(layout)
    return previous
