"""The `embeddings` table of a source: vectors are reused by the hash of the embedded text, the others are computed."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.chunking.embed_text import embed_texts
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.verify import verify_embeddings
from docindex_dagster.events import Progress, emit
from docindex_dagster.schemas import embeddings_schema
from docindex_dagster.tables import data_version, stamp, stamped_version

# What a table needs so that vectors can be taken from it.
COLUMNS = ("embed_text_hash", "model", "vector")
# The key under which the metadata of an `embeddings` table hold the data version of its chunks.
CHUNKS_VERSION = b"docindex.chunks"
_BATCH = 256


@dataclass(frozen=True, slots=True)
class EmbeddingResult:
    """The new table, how many distinct texts were embedded, and how many rows took a vector that was there.

    `lost` are the rows of the previous table whose text no chunk has any more.
    """

    table: pa.Table
    embedded: int
    reused: int
    lost: pa.Table


def build_embeddings(
    chunks: pa.Table,
    previous: pa.Table | None,
    embedder: Embedder,
    source: str,
    elsewhere: Iterable[pa.Table] = (),
) -> EmbeddingResult:
    """Give every chunk its vector.

    Args:
        chunks: the `chunks` of a source.
        previous: its `embeddings` of an earlier run, or None.
        embedder: the model.
        source: its key, for progress.
        elsewhere: tables with the columns embed_text_hash, model and vector, to look for texts that `previous` does not
            have; one is asked for only while a text is missing.

    Returns:
        The table in the order of the chunks, stamped with its data version.

    Raises:
        EmbeddingError: the provider failed.
        VerificationError: a vector cannot be used; nothing may be written.
    """
    schema = embeddings_schema(embedder.dimension)
    hashes = chunks["embed_text_hash"].combine_chunks()
    before = _known(previous, embedder.name, schema)
    is_wanted = pc.is_in(before["embed_text_hash"], hashes)
    known = _found(before.filter(is_wanted), hashes, embedder.name, schema, elsewhere)
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
    of_chunks = stamped_version(chunks.schema.metadata)
    about = {CHUNKS_VERSION: of_chunks.encode()} if of_chunks else {}
    stamped = stamp(table.replace_schema_metadata(about), data_version(table))
    reused = pc.sum(pc.is_in(hashes, known["embed_text_hash"]), min_count=0).as_py() or 0
    return EmbeddingResult(stamped, len(fresh.hashes), reused, before.filter(pc.invert(is_wanted)))


@dataclass(frozen=True, slots=True)
class _Fresh:
    hashes: pa.Array
    vectors: np.ndarray


def _known(previous: pa.Table | None, model: str, schema: pa.Schema) -> pa.Table:
    """The hash, model and vector of each text of a table, once, if the same model made it."""
    wanted = pa.schema([schema.field(name) for name in COLUMNS])
    columns = None if previous is None else previous.select([name for name in COLUMNS if name in previous.column_names])
    if columns is None or not columns.schema.equals(wanted):
        return wanted.empty_table()
    of_model = columns.replace_schema_metadata(None).filter(pc.equal(columns["model"], model))
    first = pc.index_in(pc.unique(of_model["embed_text_hash"]), of_model["embed_text_hash"])
    return of_model.take(first)


def _found(known: pa.Table, hashes: pa.Array, model: str, schema: pa.Schema, elsewhere: Iterable[pa.Table]) -> pa.Table:
    """The known rows, and those of other tables for texts that are missing."""
    missing = pc.unique(hashes.filter(pc.invert(pc.is_in(hashes, known["embed_text_hash"]))))
    tables = iter(elsewhere)
    while len(missing) and (table := next(tables, None)) is not None:
        rows = _known(table, model, schema)
        known = pa.concat_tables([known, rows.filter(pc.is_in(rows["embed_text_hash"], missing))])
        missing = missing.filter(pc.invert(pc.is_in(missing, known["embed_text_hash"])))
    return known


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
