"""Rows to publish for a source: its chunks, vectors and graph, from a run or from the tables of earlier runs.

This module does not depend on how the stores hold them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core import tables
from docindex_dagster.core.errors import VerificationError, first_line
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.schemas import CHUNKS, embeddings_schema
from docindex_dagster.embedding.build import verify_embeddings
from docindex_dagster.graph import extraction
from docindex_dagster.graph.extraction import Extraction, GraphPlan
from docindex_dagster.graph.source_graph import stray_edges
from docindex_dagster.sources.previous_listing import HEAD
from docindex_dagster.stores.generation import Generation
from docindex_dagster.stores.staging import Model

AGREE = "stores_agree"
# Rebuilt stores are written in batches of this size: with small sources, a commit costs more than its rows.
_BATCH_BYTES = 32 << 20
_BATCH_SOURCES = 500


@dataclass(frozen=True, slots=True)
class SourceRows:
    """Everything that is published of a source: its rows and their revision."""

    key: str
    chunks: pa.Table
    embeddings: pa.Table
    extraction: Extraction  # its graph
    revision: str | None = None

    def verify(self, model: Model) -> None:
        """Check that chunks and vectors belong together, and that the vectors are from one model.

        Raises:
            VerificationError: a check fails.
        """
        try:
            verify_embeddings(self.embeddings, self.chunks, model.dimension)
        except VerificationError as error:
            text = "; ".join(f"{name}: {reason}" for name, reason in error.failures.items())
            raise VerificationError("publication", {AGREE: text}) from error
        other = pc.unique(self.embeddings["model"].filter(pc.not_equal(self.embeddings["model"], model.name)))
        if len(other):
            raise VerificationError("publication", {AGREE: f"expected vectors of {model.name}, got {other[0].as_py()}"})

    def verify_graph(self) -> None:
        """Check that the graph belongs to these chunks.

        Raises:
            VerificationError: it does not.
        """
        graph = self.extraction.graph
        # A graph of exactly these chunks was verified when it was extracted.
        is_of_these = self.extraction.chunks == tables.stamped_version(self.chunks.schema.metadata)
        if strays := stray_edges(graph, self.chunks) if graph and not is_of_these else "":
            raise VerificationError("publication", {AGREE: f"the graph does not match these chunks: {strays}"})


def rows_of_others(
    layout: Layout, key: str, model: Model, known: Generation | None, warnings: list[str], *, plan: GraphPlan
) -> Iterator[SourceRows]:
    """Yield the rows of all other sources from their tables; add a warning for each source that cannot be reused.

    If the tables of a graph are missing, or belong to other chunks or another plan, the graph is extracted again.
    """
    for path in layout.tables("chunks"):
        chunks = tables.read(path)
        if chunks is None or not chunks.schema.equals(CHUNKS):
            warnings.append(f"cannot reuse {path.name}: `docindex index` rebuilds it")
            continue
        other = chunks["source"][0].as_py() if chunks.num_rows else key
        if other == key:
            continue
        embeddings = tables.read(layout.table("embeddings", other))
        if embeddings is None:
            embeddings = embeddings_schema(model.dimension).empty_table()
        before = known.sources.get(other) if known else None
        head = tables.metadata_value(layout.table("discovered_files", other), HEAD)
        try:
            stored, own = extraction.read(layout, other), plan.of(layout, other)
            if stored is None or (stored.plan, stored.chunks) != (own.fingerprint, extraction.version_of(chunks)):
                references = tables.read(layout.table("references", other))
                stored = extraction.extract(layout, other, chunks, references, plan=own, previous=stored)
            rows = SourceRows(other, chunks, embeddings, stored, before.revision if before else head)
            rows.verify(model)
            rows.verify_graph()
        except VerificationError as error:
            rebuild = command("docindex", "index", other)
            warnings.append(f"cannot reuse {other} ({first_line(error)}). Run {rebuild}")
            continue
        yield rows


def in_batches(rows: Iterable[SourceRows]) -> Iterator[list[SourceRows]]:
    """Group rows of sources into batches of about 32 MiB, in order; a source is never split."""
    batch: list[SourceRows] = []
    size = 0
    for each in rows:
        batch.append(each)
        size += each.chunks.nbytes + each.embeddings.nbytes
        if size >= _BATCH_BYTES or len(batch) == _BATCH_SOURCES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
