"""The vectors of a source's chunks."""

import time
from collections.abc import Iterator

import dagster as dg
import pyarrow as pa

from docindex_dagster import tables
from docindex_dagster.defs import metadata
from docindex_dagster.defs.partitions import SOURCES
from docindex_dagster.defs.resources import EmbeddingModel, SourceRun
from docindex_dagster.embedding.reuse import embed
from docindex_dagster.embedding.verify import EMBEDDING_RULES
from docindex_dagster.errors import VerificationError


@dg.asset(
    partitions_def=SOURCES,
    group_name="embedding",
    kinds={"model2vec", "parquet"},
    code_version="1",
    io_manager_key="parquet",
    output_required=False,
    check_specs=metadata.rule_specs("embeddings", EMBEDDING_RULES),
)
def embeddings(
    context: dg.AssetExecutionContext, run: SourceRun, embedding_model: EmbeddingModel, chunks: pa.Table
) -> Iterator[dg.MaterializeResult[pa.Table] | dg.AssetCheckResult]:
    """One unit vector a chunk; a text that was embedded before, on any branch of the repository, keeps its vector."""
    started = time.perf_counter()
    embedder = embedding_model.load()
    try:
        previous = run.previous("embeddings")
        result = embed(run.layout, context.partition_key, chunks, previous, embedder, full=run.is_full)
    except VerificationError as error:
        yield from metadata.failed("embeddings", EMBEDDING_RULES, error)
        return
    yield dg.MaterializeResult(
        value=result.table,
        data_version=dg.DataVersion(tables.stamped_version(result.table.schema.metadata) or ""),
        metadata={
            **metadata.of_table(result.table, ("chunk_id", "embed_text_hash", "model")),
            "model": embedder.name,
            "dimension": embedder.dimension,
            **metadata.changes(result.table, previous, "chunk_id", "embed_text_hash"),
            "embedded": result.embedded,
            "reused": result.reused,
            "languages": metadata.counts(chunks["language"], "language", "vectors"),
            "seconds": time.perf_counter() - started,
        },
        check_results=metadata.passed("embeddings", EMBEDDING_RULES),
    )
