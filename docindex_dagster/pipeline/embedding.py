"""Stage that embeds the chunks of a source."""

from docindex_dagster.embedding.build import EMBEDDING_RULES
from docindex_dagster.embedding.cache import embed
from docindex_dagster.embedding.protocol import Embedder, Metered, cut_note
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.stage import (
    Inputs,
    Outcome,
    Product,
    Report,
    Stage,
    changes,
    counts,
    previous,
    table_storage,
)

_NAME = "embeddings"
_STORAGE = table_storage(_NAME)


def _embed(run: SourceRun, inputs: Inputs) -> Outcome:
    chunks, before, embedder = inputs["chunks"], previous(run, _STORAGE), run.load_embedder()
    result = embed(run.layout, run.key, chunks, before, embedder, full=run.is_full)
    if note := cut_note(embedder):
        run.notice(note)
    report = Report(
        version=_STORAGE.version_of(result.table),
        numbers={
            "embedded": result.embedded,
            **changes(result.table, before, "chunk_id", "embed_text_hash"),
            "reused": result.reused,
            "model": embedder.name,
            "dimension": embedder.dimension,
            **_paid(embedder),
        },
        rows=result.table,
        sample=result.table.select(["chunk_id", "embed_text_hash", "model"]),
        breakdowns={"languages": counts(chunks["language"], "language", "vectors")},
    )
    return Outcome(result.table, {_NAME: report})


def _paid(embedder: Embedder) -> dict[str, int | float]:
    """Return the run's usage of a paid provider, with the cost in dollars if the price is known."""
    if not isinstance(embedder, Metered):
        return {}
    used = embedder.usage()
    cost = {} if used.cost is None else {"cost": round(used.cost, 6)}
    return {"requests": used.requests, "tokens": used.tokens, **cost, "cut": used.cut}


EMBEDDINGS = Stage(
    name=_NAME,
    products=(
        Product(
            _NAME,
            "Embedding of each chunk as a vector of unit length, for semantic search.\n\nA text that was embedded "
            "before, on any branch of the repository, keeps its vector. See docs/explanation/freshness.md.",
            frozenset({"numpy", "parquet"}),
        ),
    ),
    group="embedding",
    version="1",
    inputs=("chunks",),
    run=_embed,
    storage=_STORAGE,
    rules=EMBEDDING_RULES,
)
