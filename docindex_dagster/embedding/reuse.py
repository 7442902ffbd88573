"""The vectors of a source, of which no text is embedded that was embedded before.

Looked up are the source's own table, the spill of earlier runs, the cache of its repository, and the other branches'
tables. Nothing is embedded twice after a branch switch, after another model was in use for a while, or after a run that
was killed.
"""

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import embeddings_schema
from docindex_dagster.embedding import cache
from docindex_dagster.embedding.build import COLUMNS, EmbeddingResult, build_embeddings
from docindex_dagster.embedding.protocol import Embedder


def embed(
    layout: Layout, key: str, chunks: pa.Table, previous: pa.Table | None, embedder: Embedder, *, full: bool = False
) -> EmbeddingResult:
    """Give every chunk of the source `key` its vector, and cache the vectors that it needs no more.

    Each batch is spilled to disk, and kept even if the run dies; the caller that publishes the table calls
    `cache.settle`. With `full`, nothing is reused, and what was cached of this model is removed. Other arguments and
    errors are those of `build_embeddings`.
    """
    cached, spill = cache.VectorCache(layout, key), cache.VectorSpill(layout, key)
    former = tables.read(layout.table("embeddings", key)) if full else previous
    former = former.select(list(COLUMNS)) if former is not None and set(COLUMNS) <= set(former.column_names) else None
    if full:
        former = None if former is None else former.filter(pc.not_equal(former["model"], embedder.name))
        cache.settle(layout, key, embeddings_schema(embedder.dimension).empty_table())
        cached.forget(embedder.name)
    tables_elsewhere = () if full else cache.elsewhere(layout, key, embedder.name)
    result = build_embeddings(chunks, None if full else previous, embedder, key, tables_elsewhere, keep=spill.add)
    if former is not None:
        cached.add(cache.left_out(former, result.table))
    return result
