"""Publication: the three stores take one source's rows, are verified, and go live together by one file replacement."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster import tables
from docindex_dagster.embedding.verify import verify_embeddings
from docindex_dagster.errors import StoreError, VerificationError, first_line
from docindex_dagster.events import Progress, emit
from docindex_dagster.hashing import digest_parts
from docindex_dagster.layout import Layout
from docindex_dagster.stores import graph_files, lance_table, tantivy_index
from docindex_dagster.stores.difference import Difference, disagreement
from docindex_dagster.stores.generation import SCHEMA_VERSION, Generation, PublishedSource, read_generation
from docindex_dagster.stores.staging import Model, Staged
from docindex_dagster.stores.triples import Graph, build_graph

AGREE, PROVED = "stores_agree", "edges_have_their_chunk"
STORE_RULES = {
    AGREE: "LanceDB and Tantivy hold exactly the chunks of the source, row for row, each with its vector.",
    PROVED: "No edge of the graph is without the chunk that proves it.",
}
# Raise it when the same chunks give another graph.
GRAPH_VERSION = "1"
# What LanceDB, Tantivy and the file system raise for a store that is damaged.
_DAMAGE = (OSError, ValueError, RuntimeError)


@dataclass(frozen=True, slots=True)
class SourceRows:
    """All that is published of one source: its rows, and which revision of the source they are."""

    key: str
    chunks: pa.Table
    embeddings: pa.Table
    revision: str | None = None


@dataclass(frozen=True, slots=True)
class Publication:
    """What a publication did. `lance` and `tantivy` are None where nothing had to be looked at."""

    generation: Generation
    source: PublishedSource
    lance: Difference | None = None
    tantivy: Difference | None = None
    warnings: tuple[str, ...] = ()
    graph_problem: str = ""

    @property
    def is_new(self) -> bool:
        """A generation was published, not found as it should be."""
        return self.lance is not None


@dataclass(frozen=True, slots=True)
class _Written:
    """What staging one source did."""

    rows: SourceRows
    entry: PublishedSource
    graph: Graph | None
    lance: Difference
    tantivy: Difference
    graph_problem: str


def publish(
    layout: Layout, rows: SourceRows, model: Model, *, with_graph: bool = True, force: bool = False
) -> Publication:
    """Make the published stores hold exactly these rows of a source. The caller holds the publication lock.

    Nothing is opened when the published version is the one asked for. With `force`, rows are compared all the same, and
    stores that are damaged are built anew from the tables of all sources.

    Raises:
        VerificationError: inputs or staged stores break a rule; the published generation stays as it was.
        StoreError: what is published cannot be read or written.
    """
    _verify_inputs(rows, model)
    base, warnings = _base(layout, model)
    version = _version(rows, model, with_graph=with_graph)
    published = base.sources.get(rows.key) if base else None
    if base and published and published.version == version and not force:
        return Publication(base, published)
    try:
        return _publish(layout, rows, model, base, warnings, with_graph=with_graph)
    except _DAMAGE as error:
        problem = f"the stores cannot be read or written ({first_line(error)})"
        if base is None or not force:
            raise StoreError(f"{problem}; if they are damaged, `docindex index --full` builds them anew") from error
        return _publish(layout, rows, model, None, (*warnings, f"{problem}: built anew"), with_graph=with_graph)


def withdraw(layout: Layout, key: str) -> Generation | None:
    """Publish a generation without a source; None where nothing is published. The caller holds the publication lock.

    Raises:
        StoreError: what is published cannot be read.
    """
    base = read_generation(layout)
    if base is None or key not in base.sources:
        return base
    staged = Staged.open(layout, Model(base.model, 0), base)
    try:
        lance_table.remove(staged.table, key)
        tantivy_index.remove(staged.index, key)
        return staged.go_live({key: None}, base.optimized_version)
    except BaseException:
        staged.discard()
        raise


def _base(layout: Layout, model: Model) -> tuple[Generation | None, tuple[str, ...]]:
    """The generation to start from; None, and why, where the stores must be built anew."""
    try:
        generation = read_generation(layout)
    except StoreError as error:
        return None, (f"the index is built anew: {error}",)
    if generation and generation.model != model.name:
        return None, (f"the index is built anew: its model was {generation.model}, now it is {model.name}",)
    return generation, ()


def _publish(
    layout: Layout,
    rows: SourceRows,
    model: Model,
    base: Generation | None,
    warnings: tuple[str, ...],
    *,
    with_graph: bool,
) -> Publication:
    emit(Progress(rows.key, "stores", 0, 3, "stores"))
    staged = Staged.open(layout, model, base)
    try:
        entries: dict[str, PublishedSource | None] = {}
        is_rebuild = base is None and bool(warnings)
        for other in _others(layout, rows.key, model) if is_rebuild else ():
            rebuilt = _stage(staged, other, with_graph=with_graph)
            _verify(staged, rebuilt)
            entries[other.key] = rebuilt.entry
        written = _stage(staged, rows, with_graph=with_graph)
        published = base.sources.get(rows.key) if base else None
        if base and published and _is_same(written, published):
            staged.discard()
            return Publication(base, published, warnings=warnings, graph_problem=written.graph_problem)
        optimized = staged.maintain()
        _verify(staged, written)
        generation = staged.go_live({**entries, rows.key: written.entry}, optimized)
    except BaseException:
        staged.discard()
        raise
    emit(Progress(rows.key, "stores", 3, 3, "stores"))
    return Publication(generation, written.entry, written.lance, written.tantivy, warnings, written.graph_problem)


def _stage(staged: Staged, rows: SourceRows, *, with_graph: bool) -> _Written:
    """Write one source's rows into the staged stores."""
    graph, problem = _graph(rows.chunks) if with_graph else (None, "")
    lance = lance_table.reconcile(staged.table, rows.key, rows.chunks, rows.embeddings)
    emit(Progress(rows.key, "stores", 1, 3, "stores"))
    tantivy = tantivy_index.reconcile(staged.index, rows.key, rows.chunks)
    emit(Progress(rows.key, "stores", 2, 3, "stores"))
    entry = _entry(rows, _version(rows, staged.model, with_graph=with_graph), graph)
    if graph:
        entry = replace(entry, graph=graph_files.write(staged.layout, rows.key, graph))
    return _Written(rows, entry, graph, lance, tantivy, problem)


def _is_same(written: _Written, published: PublishedSource) -> bool:
    nothing_written = written.lance.is_empty and written.tantivy.is_empty
    return nothing_written and replace(written.entry, changed_at=published.changed_at) == published


def _others(layout: Layout, key: str, model: Model) -> Iterator[SourceRows]:
    """The rows of all other sources that were made with this model, from their tables."""
    for path in layout.tables("chunks"):
        chunks = tables.read(path)
        if chunks is None or not chunks.num_rows or (other := chunks["source"][0].as_py()) == key:
            continue
        embeddings = tables.read(layout.table("embeddings", other))
        if embeddings is None:
            continue
        rows = SourceRows(other, chunks, embeddings)
        try:
            _verify_inputs(rows, model)
        except (VerificationError, KeyError):
            continue  # its next run makes them anew and publishes them
        yield rows


def _verify_inputs(rows: SourceRows, model: Model) -> None:
    """Chunks and vectors must be of one run and one model."""
    try:
        verify_embeddings(rows.embeddings, rows.chunks, model.dimension)
    except VerificationError as error:
        text = "; ".join(f"{name}: {reason}" for name, reason in error.failures.items())
        raise VerificationError("publication", {AGREE: text}) from error
    other = pc.unique(rows.embeddings["model"].filter(pc.not_equal(rows.embeddings["model"], model.name)))
    if len(other):
        raise VerificationError("publication", {AGREE: f"vectors are of {other[0].as_py()}, not of {model.name}"})


def _graph(chunks: pa.Table) -> tuple[Graph, str]:
    """A graph extractor that fails costs the graph of this source, not its publication."""
    try:
        return build_graph(chunks), ""
    except Exception as error:  # noqa: BLE001 it is reported as a failed check
        return build_graph(chunks.slice(0, 0)), f"the graph could not be extracted: {type(error).__name__}: {error}"


def _verify(staged: Staged, written: _Written) -> None:
    """Read back what was staged and compare it with what it should be."""
    rows, index = written.rows, staged.index
    in_lance = lance_table.held(staged.table, rows.key)
    in_tantivy = tantivy_index.held(index.searcher(), index.schema, rows.key)
    differences = {
        "LanceDB": disagreement(in_lance, lance_table.expected(rows.chunks, rows.embeddings)),
        "Tantivy": disagreement(in_tantivy, rows.chunks),
    }
    failures = {AGREE: "; ".join(f"{store}: {text}" for store, text in differences.items() if text)}
    failures[PROVED] = graph_files.stray_edges(written.graph, rows.chunks) if written.graph else ""
    broken = {name: text for name, text in failures.items() if text}
    if broken:
        raise VerificationError("publication", broken)


def _version(rows: SourceRows, model: Model, *, with_graph: bool) -> str:
    """Equal inputs give an equal version."""
    hashes = tables.column_version(rows.chunks, "row_hash"), tables.data_version(rows.embeddings)
    made_with = str(SCHEMA_VERSION), GRAPH_VERSION, str(with_graph), model.name
    return digest_parts(*made_with, rows.revision or "", *hashes)


def _entry(rows: SourceRows, version: str, graph: Graph | None) -> PublishedSource:
    languages = pc.value_counts(pc.fill_null(rows.chunks["language"], "text"))
    counts = zip(languages.field("values").to_pylist(), languages.field("counts").to_pylist(), strict=True)
    return PublishedSource(
        version=version,
        revision=rows.revision,
        graph=None,
        files=len(pc.unique(rows.chunks["path"])),
        chunks=rows.chunks.num_rows,
        text_bytes=pc.sum(pc.binary_length(rows.chunks["text"]), min_count=0).as_py() or 0,
        nodes=graph.nodes.num_rows if graph else 0,
        edges=graph.triples.num_rows if graph else 0,
        languages=dict(sorted(counts)),
        changed_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
