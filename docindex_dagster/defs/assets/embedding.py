"""The vectors of a source's chunks."""

import time
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pyarrow as pa

from docindex_dagster import tables
from docindex_dagster.defs import metadata
from docindex_dagster.defs.failures import told
from docindex_dagster.defs.partitions import SOURCES
from docindex_dagster.defs.resources import EmbeddingModel, SourceRun
from docindex_dagster.embedding.protocol import Embedder, Metered, cut_note
from docindex_dagster.embedding.reuse import embed
from docindex_dagster.embedding.verify import EMBEDDING_RULES
from docindex_dagster.errors import VerificationError


@dg.asset(
    partitions_def=SOURCES,
    group_name="embedding",
    kinds={"numpy", "parquet"},
    code_version="1",
    io_manager_key="parquet",
    output_required=False,
    check_specs=metadata.rule_specs("embeddings", EMBEDDING_RULES),
)
@told
def embeddings(
    context: dg.AssetExecutionContext, run: SourceRun, embedding_model: EmbeddingModel, chunks: pa.Table
) -> Iterator[dg.MaterializeResult[pa.Table] | dg.AssetCheckResult]:
    """The meaning of each chunk as a vector of length one, for semantic search.

    A text that was embedded before, on any branch of the repository, keeps its vector. See docs/architecture.md,
    “What is reused”.
    """
    started = time.perf_counter()
    embedder = embedding_model.load()
    try:
        previous = run.previous("embeddings")
        result = embed(run.layout, context.partition_key, chunks, previous, embedder, full=run.is_full)
    except VerificationError as error:
        yield from metadata.failed("embeddings", EMBEDDING_RULES, error)
        return
    if note := cut_note(embedder):
        run.reporter(context.log)(note)
    yield dg.MaterializeResult(
        value=result.table,
        data_version=dg.DataVersion(tables.stamped_version(result.table.schema.metadata) or ""),
        metadata=metadata.of_table(
            result.table,
            {
                "embedded": result.embedded,
                **metadata.changes(result.table, previous, "chunk_id", "embed_text_hash"),
                "reused": result.reused,
                "model": embedder.name,
                "dimension": embedder.dimension,
                **_paid(embedder),
                "seconds": metadata.seconds_since(started),
            },
            sample=result.table.select(["chunk_id", "embed_text_hash", "model"]),
            languages=metadata.counts(chunks["language"], "language", "vectors"),
        ),
        check_results=metadata.passed("embeddings", EMBEDDING_RULES),
    )


def _paid(embedder: Embedder) -> dict[str, Any]:
    """What the run asked of a provider that is paid for; the cost in dollars, where a price is known."""
    if not isinstance(embedder, Metered):
        return {}
    used = embedder.usage()
    cost = {} if used.cost is None else {"cost": round(used.cost, 6)}
    return {"requests": used.requests, "tokens": used.tokens, **cost, "cut": used.cut}
