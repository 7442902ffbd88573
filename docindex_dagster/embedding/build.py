"""The `embeddings` table of a source: reuse vectors by the hash of the embedded text, compute the rest.

Texts are embedded in batches, concurrently if the model supports it, and each batch is kept as it arrives. Every rule
checked here is also an asset check.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from docindex_dagster.chunking.embedding_text import COLUMNS as TEXT_COLUMNS
from docindex_dagster.chunking.embedding_text import embed_texts
from docindex_dagster.core.errors import EmbeddingError, PartialEmbeddingError, VerificationError
from docindex_dagster.core.events import Progress, emit
from docindex_dagster.core.schemas import embeddings_schema
from docindex_dagster.core.tables import data_version, stamp
from docindex_dagster.embedding.concurrency import concurrently
from docindex_dagster.embedding.protocol import Batched, Embedder, Vectors

# The columns a table needs for its vectors to be reused.
COLUMNS = ("embed_text_hash", "model", "vector")
_BATCH = 256  # texts per call if the embedder does not set a batch size
Keep = Callable[[pa.Table], None]
COMPLETE, FINITE = "one_vector_a_chunk", "vectors_are_finite"
UNIT, DIMENSION = "vectors_are_unit_length", "dimension_is_right"
EMBEDDING_RULES = {
    COMPLETE: "Every chunk has exactly one vector, computed from its current text.",
    FINITE: "No vector contains NaN or infinity.",
    UNIT: "Every vector has length 1, so that a dot product is a cosine.",
    DIMENSION: "Vectors have the dimension of the model.",
}
# float16 has an 11-bit significand: for 256 to 3072 values, the length of a unit vector is off by less than this.
_LENGTH_TOLERANCE = 5e-3


def is_valid_vector(vectors: NDArray[np.float16 | np.float32]) -> NDArray[np.bool_]:
    """Return which rows of shape (n, d) are finite unit vectors: shape (n,).

    Stored vectors are float16, vectors from a model are float32.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(vectors.astype(np.float32), axis=1)
    is_unit: NDArray[np.bool_] = np.abs(lengths - 1) <= _LENGTH_TOLERANCE  # False for NaN
    return is_unit


def verify_embeddings(embeddings: pa.Table, chunks: pa.Table, dimension: int) -> None:
    """Check vectors against their chunks.

    Raises:
        VerificationError: a rule is broken; the error has one entry per broken rule.
    """
    failures = {}
    for column in ("chunk_id", "embed_text_hash"):
        if not embeddings[column].combine_chunks().equals(chunks[column].combine_chunks()):
            failures[COMPLETE] = f"{column} differs between {embeddings.num_rows} vectors and {chunks.num_rows} chunks"
    size = embeddings.schema.field("vector").type.list_size
    if size != dimension:
        failures[DIMENSION] = f"expected vectors of {dimension} values, got {size}"
    lengths = np.linalg.norm(matrix(embeddings["vector"]).astype(np.float32), axis=1)
    finite = np.isfinite(lengths)
    if not finite.all():
        failures[FINITE] = f"{_describe_bad(embeddings, ~finite)} contains NaN or infinity"
    wrong = finite & (np.abs(lengths - 1) > _LENGTH_TOLERANCE)
    if wrong.any():
        failures[UNIT] = f"{_describe_bad(embeddings, wrong)} has length {lengths[wrong][0]:.4f}"
    if failures:
        raise VerificationError("embeddings", failures)


def _describe_bad(embeddings: pa.Table, bad: NDArray[np.bool_]) -> str:
    """Return how many vectors are bad, from a mask of shape (n,), and the first of them."""
    first = embeddings["chunk_id"][int(np.argmax(bad))].as_py()
    return f"{int(bad.sum())} of {len(bad)} vectors; chunk {first}"


def discard_rows(_rows: pa.Table) -> None:
    """Discard the rows: embedded texts are lost if the run fails."""


@dataclass(frozen=True, slots=True)
class EmbeddingResult:
    """The new table, the number of distinct texts embedded, and the number of rows with a reused vector."""

    table: pa.Table
    embedded: int
    reused: int


def build_embeddings(
    chunks: pa.Table,
    previous: pa.Table | None,
    embedder: Embedder,
    source: str,
    elsewhere: Iterable[pa.Table] = (),
    *,
    keep: Keep = discard_rows,
) -> EmbeddingResult:
    """Assign a vector to every chunk.

    Args:
        chunks: the `chunks` of a source.
        previous: its `embeddings` from an earlier run, or None.
        embedder: the model.
        source: its key, for progress events.
        elsewhere: more tables to reuse vectors from, with the columns embed_text_hash, model and vector. A table is
            read only if a text is still missing.
        keep: called with each batch as it arrives, as a table with the same columns; called from several threads
            concurrently. After a failure, it has received everything that was embedded.

    Returns:
        The table in chunk order, stamped with its data version.

    Raises:
        EmbeddingError: the provider failed.
        VerificationError: a vector is invalid; the table must not be written.
    """
    schema = embeddings_schema(embedder.dimension)
    hashes = chunks["embed_text_hash"].combine_chunks()
    known = _add_missing(_known(previous, embedder.name, schema), hashes, embedder.name, schema, elsewhere)
    fresh = _embed(chunks, known, embedder, source, keep)
    keys = pa.concat_arrays([known["embed_text_hash"].combine_chunks(), fresh.hashes])
    vectors = np.concatenate([matrix(known["vector"]), fresh.vectors])
    rows = pc.index_in(hashes, keys).to_numpy(zero_copy_only=False)
    values = pa.array(vectors[rows].ravel(), pa.float16())
    table = pa.table(
        [
            chunks["chunk_id"].combine_chunks(),
            hashes,
            pa.repeat(pa.scalar(embedder.name, pa.string()), chunks.num_rows),
            pa.FixedSizeListArray.from_arrays(values, type=schema.field("vector").type),
        ],
        schema=schema,
    )
    verify_embeddings(table, chunks, embedder.dimension)
    stamped = stamp(table, data_version(table))
    reused = pc.sum(pc.is_in(hashes, known["embed_text_hash"]), min_count=0).as_py() or 0
    return EmbeddingResult(stamped, len(fresh.hashes), reused)


def _known(previous: pa.Table | None, model: str, schema: pa.Schema) -> pa.Table:
    """Return the hash, model and vector of each text in a table that this model embedded."""
    expected = _reusable_schema(schema)
    columns = None if previous is None else previous.select([name for name in COLUMNS if name in previous.column_names])
    if columns is None or not columns.schema.equals(expected):
        return expected.empty_table()
    bare, is_of_model = columns.replace_schema_metadata(None), pc.equal(columns["model"], model)
    return bare if pc.all(is_of_model).as_py() else bare.filter(is_of_model)  # avoid copying vectors


def _add_missing(
    known: pa.Table, hashes: pa.Array, model: str, schema: pa.Schema, elsewhere: Iterable[pa.Table]
) -> pa.Table:
    """Return the known rows plus rows from other tables for missing texts."""
    missing = pc.unique(hashes.filter(pc.invert(pc.is_in(hashes, known["embed_text_hash"]))))
    tables = iter(elsewhere)
    while len(missing) and (table := next(tables, None)) is not None:
        rows = _known(table, model, schema)
        known = pa.concat_tables([known, rows.filter(pc.is_in(rows["embed_text_hash"], missing))])
        missing = missing.filter(pc.invert(pc.is_in(missing, known["embed_text_hash"])))
    return known


@dataclass(frozen=True, slots=True)
class _Fresh:
    """The distinct texts of a source without a known vector, and the vectors computed so far."""

    embedder: Embedder
    keep: Keep
    hashes: pa.Array
    chunks: pa.Table
    rows: pa.Array  # in `chunks`: the first row with each text
    vectors: NDArray[np.float16]  # shape (texts, dimension)

    def embed(self, start: int, size: int) -> PartialEmbeddingError | None:
        """Embed and keep `size` texts; return the error if only some of them failed.

        Raises:
            EmbeddingError: the provider failed; the texts embedded before that are kept.
        """
        batch = self.vectors[start : start + size]
        texts = embed_texts(self.chunks.take(self.rows.slice(start, size))).to_pylist()
        try:
            self._store(batch, start, self.embedder.embed_documents(texts))
        except PartialEmbeddingError as error:
            self._store(batch, start, error.vectors)
            if not error.go_on:
                raise
            return error
        return None

    def _store(self, batch: NDArray[np.float16], start: int, vectors: Vectors) -> None:
        """Copy vectors into a batch of the same shape (texts, dimension) and keep them."""
        if vectors.shape != batch.shape:
            raise EmbeddingError(f"{self.embedder.name}: expected vectors of shape {batch.shape}, got {vectors.shape}")
        batch[:] = vectors
        # Verification fails this run on an invalid vector. Keeping it would fail later runs too.
        good = is_valid_vector(vectors)
        if good.any():
            schema = _reusable_schema(embeddings_schema(self.embedder.dimension))
            values = pa.array((batch if good.all() else batch[good]).ravel(), pa.float16())
            column = pa.FixedSizeListArray.from_arrays(values, type=schema.field("vector").type)
            hashes = self.hashes.slice(start, len(batch)).filter(pa.array(good))
            self.keep(pa.table([hashes, [self.embedder.name] * len(hashes), column], schema=schema))


def _embed(chunks: pa.Table, known: pa.Table, embedder: Embedder, source: str, keep: Keep) -> _Fresh:
    """Embed each text without a known vector once.

    Raises:
        EmbeddingError: the first failure, raised once no call is in flight.
    """
    hashes = chunks["embed_text_hash"].combine_chunks()
    missing = pc.unique(hashes.filter(pc.invert(pc.is_in(hashes, known["embed_text_hash"]))))
    total = len(missing)
    vectors = np.full((total, embedder.dimension), np.nan, np.float16)
    rows = pc.index_in(missing, hashes)
    fresh = _Fresh(embedder, keep, missing, chunks.select(list(TEXT_COLUMNS)), rows, vectors)
    size, threads = (embedder.batch_size, embedder.concurrency) if isinstance(embedder, Batched) else (_BATCH, 1)
    refused: list[PartialEmbeddingError] = []
    emit(Progress(source, "embeddings", 0, total, "texts"))
    try:
        batches = concurrently(lambda start: fresh.embed(start, size), range(0, total, size), threads)
        for number, error in enumerate(batches, start=1):
            emit(Progress(source, "embeddings", min(number * size, total), total, "texts"))
            refused += [error] if error else []
        if refused:
            raise refused[0]
    except EmbeddingError as error:
        if done := int(np.isfinite(vectors[:, 0]).sum()):
            raise EmbeddingError(
                f"{error}. {done:,} of {total:,} texts are embedded and kept: the next run continues from there"
            ) from error
        raise
    return fresh


def _reusable_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([schema.field(name) for name in COLUMNS])


def matrix(vectors: pa.ChunkedArray) -> NDArray[np.float16]:
    """Return a column of vectors as one array: shape (rows, dimension)."""
    values: NDArray[np.float16] = vectors.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return values.reshape(-1, vectors.type.list_size)
