"""Publication: the three stores take one source's rows, are verified, and go live together by one file replacement."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.embedding.verify import verify_embeddings
from docindex_dagster.errors import VerificationError
from docindex_dagster.events import Progress, emit
from docindex_dagster.files import sync
from docindex_dagster.hashing import digest_parts
from docindex_dagster.layout import Layout
from docindex_dagster.stores import clean_up, graph_files, lance_table, tantivy_index
from docindex_dagster.stores.difference import Difference, disagreement
from docindex_dagster.stores.generation import (
    SCHEMA_VERSION,
    Generation,
    GraphFiles,
    PublishedSource,
    read_generation,
    write_generation,
)
from docindex_dagster.stores.triples import Graph, build_graph
from docindex_dagster.tables import column_version

if TYPE_CHECKING:
    from lancedb.table import LanceTable
    from tantivy import Index

AGREE, PROVED = "stores_agree", "edges_have_their_chunk"
STORE_RULES = {
    AGREE: "LanceDB and Tantivy hold exactly the chunks of the source, row for row, each with its vector.",
    PROVED: "No edge of the graph is without the chunk that proves it.",
}
# Raise it when the same chunks give another graph.
GRAPH_VERSION = "1"


@dataclass(frozen=True, slots=True)
class Model:
    """The model whose vectors are published: its name and the number of values of a vector."""

    name: str
    dimension: int


@dataclass(frozen=True, slots=True)
class Publication:
    """What a publication did. `lance` and `tantivy` are None where nothing had to be looked at."""

    generation: Generation
    source: PublishedSource | None
    lance: Difference | None = None
    tantivy: Difference | None = None
    graph: Graph | None = None
    warnings: tuple[str, ...] = ()

    @property
    def is_new(self) -> bool:
        """A generation was published, not found as it should be."""
        return self.lance is not None


def source_version(chunks: pa.Table, embeddings: pa.Table, model: str, *, with_graph: bool) -> str:
    """The version of what the stores hold of a source: equal inputs give an equal version."""
    hashes = column_version(chunks, "row_hash"), column_version(embeddings, "embed_text_hash")
    return digest_parts(str(SCHEMA_VERSION), GRAPH_VERSION, model, str(with_graph), *hashes)


def publish(
    layout: Layout,
    source: str,
    chunks: pa.Table,
    embeddings: pa.Table,
    model: Model,
    *,
    with_graph: bool = True,
    force: bool = False,
) -> Publication:
    """Make the published stores hold exactly these rows of `source`. The caller holds the publication lock.

    Nothing is opened when the published version is the one asked for, unless `force` asks for a comparison.

    Raises:
        VerificationError: inputs or staged stores break a rule; the published generation stays as it was.
        StoreError: what is published cannot be read.
    """
    verify_embeddings(embeddings, chunks, model.dimension)
    base = published(layout, model)
    version = source_version(chunks, embeddings, model.name, with_graph=with_graph)
    if base and not force and source in base.sources and base.sources[source].version == version:
        return Publication(base, base.sources[source])
    graph, warnings = _graph(chunks) if with_graph else (None, ())
    emit(Progress(source, "stores", 0, 3, "stores"))
    staged = _Staged.open(layout, model, base)
    try:
        lance = lance_table.reconcile(staged.table, source, chunks, embeddings)
        emit(Progress(source, "stores", 1, 3, "stores"))
        tantivy = tantivy_index.reconcile(staged.index, source, chunks)
        emit(Progress(source, "stores", 2, 3, "stores"))
        written = graph_files.write(layout, source, graph) if graph else None
        _verify(staged, source, chunks, graph)
        entry = _entry(version, chunks, graph, written)
        generation = staged.go_live(source, entry)
    except BaseException:
        staged.discard()
        raise
    emit(Progress(source, "stores", 3, 3, "stores"))
    return Publication(generation, entry, lance, tantivy, graph, warnings)


def withdraw(layout: Layout, source: str, model: Model) -> Generation | None:
    """Publish a generation without `source`; None where it was not published. The caller holds the publication lock."""
    base = published(layout, model)
    if base is None or source not in base.sources:
        return base
    staged = _Staged.open(layout, model, base)
    try:
        lance_table.remove(staged.table, source)
        tantivy_index.remove(staged.index, source)
        return staged.go_live(source, None)
    except BaseException:
        staged.discard()
        raise


def published(layout: Layout, model: Model) -> Generation | None:
    """The published generation, if it was written by this version of the stores and with this model."""
    generation = read_generation(layout)
    if generation and generation.schema_version == SCHEMA_VERSION and generation.model == model.name:
        return generation
    return None


@dataclass(frozen=True, slots=True)
class _Staged:
    """Stores that are being written and that no reader sees yet."""

    layout: Layout
    model: Model
    base: Generation | None
    table: "LanceTable"
    index: "Index"
    folder: Path
    files_before: set[Path]

    @classmethod
    def open(cls, layout: Layout, model: Model, base: Generation | None) -> "_Staged":
        files_before = lance_table.files(layout)
        pinned = base.table_version if base else None
        table = lance_table.open_for_writing(layout, model.name, model.dimension, pinned)
        folder = layout.tantivy / f"{clean_up.next_number(layout):08d}"
        create: Callable[[], Index] = (
            (lambda: tantivy_index.clone(layout.tantivy / base.tantivy, folder))
            if base
            else (lambda: tantivy_index.create(folder))
        )
        return cls(layout, model, base, table, create(), folder, files_before)

    def go_live(self, source: str, entry: PublishedSource | None) -> Generation:
        """Sync what was written and replace `CURRENT`."""
        base = self.base or Generation(0, self.model.name, self.table.name, 0, "")
        previous_version = base.table_version or None
        optimized = lance_table.maintain(self.table, base.optimized_version, previous_version)
        generation = replace(
            base,
            number=int(self.folder.name),
            table_version=self.table.version,
            tantivy=self.folder.name,
            optimized_version=optimized,
        ).with_source(source, entry)
        written = lance_table.files(self.layout) - self.files_before
        sync([*written, *{file.parent for file in written}])
        write_generation(self.layout, generation)
        clean_up.remove_old_generations(self.layout)
        return generation

    def discard(self) -> None:
        """Undo what can be undone at once; the next writer reverts the table to its published version."""
        clean_up.remove_old_generations(self.layout)


def _graph(chunks: pa.Table) -> tuple[Graph, tuple[str, ...]]:
    """A graph extractor that fails costs the graph of this source, not its publication."""
    try:
        return build_graph(chunks), ()
    except Exception as error:  # noqa: BLE001 the warning stands in the metadata and as a failed check
        warning = f"the graph could not be extracted: {type(error).__name__}: {error}"
        return build_graph(chunks.slice(0, 0)), (warning,)


def _verify(staged: _Staged, source: str, chunks: pa.Table, graph: Graph | None) -> None:
    """Read back what was staged and compare it with what it should be."""
    index = staged.index
    differences = {
        "LanceDB": disagreement(lance_table.held(staged.table, source), chunks),
        "Tantivy": disagreement(tantivy_index.held(index.searcher(), index.schema, source), chunks),
    }
    failures = {AGREE: "; ".join(f"{store}: {text}" for store, text in differences.items() if text)}
    failures[PROVED] = graph_files.stray_edges(graph, chunks) if graph else ""
    broken = {name: text for name, text in failures.items() if text}
    if broken:
        raise VerificationError("publication", broken)


def _entry(version: str, chunks: pa.Table, graph: Graph | None, files: GraphFiles | None) -> PublishedSource:
    languages = pc.value_counts(pc.fill_null(chunks["language"], "text"))
    counts = zip(languages.field("values").to_pylist(), languages.field("counts").to_pylist(), strict=True)
    return PublishedSource(
        version=version,
        graph=files,
        files=len(pc.unique(chunks["path"])),
        chunks=chunks.num_rows,
        text_bytes=pc.sum(pc.binary_length(chunks["text"]), min_count=0).as_py() or 0,
        nodes=graph.nodes.num_rows if graph else 0,
        edges=graph.triples.num_rows if graph else 0,
        languages=dict(sorted(counts)),
        changed_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
