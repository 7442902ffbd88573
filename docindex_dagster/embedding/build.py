"""The `embeddings` table of a source: vectors are reused by the hash of the embedded text, the others are computed."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.chunking.embed_text import embed_texts
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.verify import verify_embeddings
from docindex_dagster.events import Progress, emit
from docindex_dagster.schemas import embeddings_schema
from docindex_dagster.tables import data_version, stamp

_BATCH = 256


@dataclass(frozen=True, slots=True)
class EmbeddingResult:
    """The new table, how many distinct texts were embedded, and how many rows took a vector that was there."""

    table: pa.Table
    embedded: int
    reused: int


def build_embeddings(chunks: pa.Table, previous: pa.Table | None, embedder: Embedder, source: str) -> EmbeddingResult:
    """Give every chunk its vector.

    Args:
        chunks: the `chunks` of a source.
        previous: its `embeddings` of an earlier run, or None.
        embedder: the model.
        source: its key, for progress.

    Returns:
        The table in the order of the chunks, stamped with its data version.

    Raises:
        EmbeddingError: the provider failed.
        VerificationError: a vector cannot be used; nothing may be written.
    """
    schema = embeddings_schema(embedder.dimension)
    hashes = chunks["embed_text_hash"].combine_chunks()
    known = _known(previous, embedder.name, schema)
    known = known.filter(pc.is_in(known["embed_text_hash"], hashes))
    fresh = _embed(chunks, hashes, known, embedder, source)
    keys = pa.concat_arrays([known["embed_text_hash"].combine_chunks(), fresh.hashes])
    vectors = np.concatenate([_matrix(known["vector"], embedder.dimension), fresh.vectors])
    rows = pc.index_in(hashes, keys).to_numpy(zero_copy_only=False)
    values = pa.array(vectors[rows].ravel(), pa.float16())
    table = pa.table(
        [
            chunks["chunk_id"].combine_chunks(),
            hashes,
            pa.array([embedder.name] * chunks.num_rows, pa.string()),
            pa.FixedSizeListArray.from_arrays(values, type=schema.field("vector").type),
        ],
        schema=schema,
    )
    verify_embeddings(table, chunks, embedder.dimension)
    stamped = stamp(table, data_version(table))
    reused = pc.sum(pc.is_in(hashes, known["embed_text_hash"]), min_count=0).as_py() or 0
    return EmbeddingResult(stamped, len(fresh.hashes), reused)


@dataclass(frozen=True, slots=True)
class _Fresh:
    hashes: pa.Array
    vectors: np.ndarray


def _known(previous: pa.Table | None, model: str, schema: pa.Schema) -> pa.Table:
    """One row a text from the previous table, if the same model made it."""
    if previous is None or not previous.schema.equals(schema):
        return schema.empty_table()
    of_model = previous.filter(pc.equal(previous["model"], model))
    first = pc.index_in(pc.unique(of_model["embed_text_hash"]), of_model["embed_text_hash"])
    return of_model.take(first)


def _embed(chunks: pa.Table, hashes: pa.Array, known: pa.Table, embedder: Embedder, source: str) -> _Fresh:
    """Embed each text that no known row has, once."""
    missing = pc.unique(hashes.filter(pc.invert(pc.is_in(hashes, known["embed_text_hash"]))))
    total = len(missing)
    texts = chunks.take(pc.index_in(missing, hashes))
    vectors = np.empty((total, embedder.dimension), np.float16)
    emit(Progress(source, "embeddings", 0, total, "texts"))
    for start in range(0, total, _BATCH):
        batch = embed_texts(texts.slice(start, _BATCH)).to_pylist()
        vectors[start : start + len(batch)] = embedder.embed_documents(batch)
        emit(Progress(source, "embeddings", start + len(batch), total, "texts"))
    return _Fresh(missing, vectors)


def _matrix(vectors: pa.ChunkedArray, dimension: int) -> np.ndarray:
    values: np.ndarray = vectors.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return values.reshape(-1, dimension)
