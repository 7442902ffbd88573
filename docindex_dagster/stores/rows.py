"""What is published of a source: its chunks, vectors and graph, from a run, or from the tables that earlier runs wrote.

What a store holds of them is not here.
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
# Stores that are built anew take so many bytes of rows at once: a commit of each costs more than its rows, where
# sources are small.
_BATCH_BYTES = 32 << 20
_BATCH_SOURCES = 500


@dataclass(frozen=True, slots=True)
class SourceRows:
    """All that is published of one source: its rows, and which revision of it they are."""

    key: str
    chunks: pa.Table
    embeddings: pa.Table
    extraction: Extraction  # its graph
    revision: str | None = None

    def verify(self, model: Model) -> None:
        """Check that chunks and vectors are of one run, and the vectors of one model.

        Raises:
            VerificationError: they are not.
        """
        try:
            verify_embeddings(self.embeddings, self.chunks, model.dimension)
        except VerificationError as error:
            text = "; ".join(f"{name}: {reason}" for name, reason in error.failures.items())
            raise VerificationError("publication", {AGREE: text}) from error
        other = pc.unique(self.embeddings["model"].filter(pc.not_equal(self.embeddings["model"], model.name)))
        if len(other):
            raise VerificationError("publication", {AGREE: f"vectors are of {other[0].as_py()}, not of {model.name}"})

    def verify_graph(self) -> None:
        """Check that the graph is of these chunks.

        Raises:
            VerificationError: it is not.
        """
        graph = self.extraction.graph
        # One of these very chunks was verified when it was made.
        is_of_these = self.extraction.chunks == tables.stamped_version(self.chunks.schema.metadata)
        if strays := stray_edges(graph, self.chunks) if graph and not is_of_these else "":
            raise VerificationError("publication", {AGREE: f"the graph is not of these chunks: {strays}"})


def rows_of_others(
    layout: Layout, key: str, model: Model, known: Generation | None, warnings: list[str], *, plan: GraphPlan
) -> Iterator[SourceRows]:
    """The rows of all other sources, from their tables; one that cannot be reused is named in `warnings`.

    A graph whose tables are missing, or of other chunks or another plan, is extracted from chunks and references.
    """
    for path in layout.tables("chunks"):
        chunks = tables.read(path)
        if chunks is None or not chunks.schema.equals(CHUNKS):
            warnings.append(f"{path.name} cannot be taken over: `docindex index` makes it anew")
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
            made, own = extraction.read(layout, other), plan.of(layout, other)
            if made is None or (made.plan, made.chunks) != (own.fingerprint, extraction.version_of(chunks)):
                references = tables.read(layout.table("references", other))
                made = extraction.extract(layout, other, chunks, references, plan=own, previous=made)
            rows = SourceRows(other, chunks, embeddings, made, before.revision if before else head)
            rows.verify(model)
            rows.verify_graph()
        except VerificationError as error:
            again = command("docindex", "index", other)
            warnings.append(f"{other} cannot be taken over ({first_line(error)}): run {again}")
            continue
        yield rows


def in_batches(rows: Iterable[SourceRows]) -> Iterator[list[SourceRows]]:
    """Rows of sources by some megabytes, in their order; a source is never cut."""
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
