"""The `embeddings` table of a source: vectors are reused by the hash of the embedded text, the others are computed.

Texts are embedded in batches, several at once where the model wants that, and each batch is kept as it arrives. Each
rule that every table keeps is also an asset check.
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

# What a table needs so that vectors can be taken from it.
COLUMNS = ("embed_text_hash", "model", "vector")
_BATCH = 256  # texts of a call, where the model does not say how many
Keep = Callable[[pa.Table], None]
COMPLETE, FINITE = "one_vector_a_chunk", "vectors_are_finite"
UNIT, DIMENSION = "vectors_are_unit_length", "dimension_is_right"
EMBEDDING_RULES = {
    COMPLETE: "Every chunk has one vector, made from its present text.",
    FINITE: "No vector holds an infinity or something that is not a number.",
    UNIT: "Every vector has length 1, so that a dot product is a cosine.",
    DIMENSION: "Vectors have as many values as the model says.",
}
# float16 keeps eleven bits: the length of a unit vector of 256 to 3072 values is off by less than this.
_LENGTH_TOLERANCE = 5e-3


def usable(vectors: NDArray[np.float16 | np.float32]) -> NDArray[np.bool_]:
    """Of each row of shape (n, d), whether it is a finite vector of unit length: shape (n,).

    They are float16 as they are stored, and float32 as a model gives them.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(vectors.astype(np.float32), axis=1)
    is_unit: NDArray[np.bool_] = np.abs(lengths - 1) <= _LENGTH_TOLERANCE  # so is nothing that is no number
    return is_unit


def verify_embeddings(embeddings: pa.Table, chunks: pa.Table, dimension: int) -> None:
    """Check vectors against the chunks that they belong to.

    Raises:
        VerificationError: with one entry for each broken rule.
    """
    failures = {}
    for column in ("chunk_id", "embed_text_hash"):
        if not embeddings[column].combine_chunks().equals(chunks[column].combine_chunks()):
            failures[COMPLETE] = f"{column} of {embeddings.num_rows} vectors and {chunks.num_rows} chunks differ"
    size = embeddings.schema.field("vector").type.list_size
    if size != dimension:
        failures[DIMENSION] = f"vectors have {size} values, the model has {dimension}"
    lengths = np.linalg.norm(matrix(embeddings["vector"]).astype(np.float32), axis=1)
    finite = np.isfinite(lengths)
    if not finite.all():
        failures[FINITE] = f"{_first(embeddings, ~finite)} has a value that is not finite"
    wrong = finite & (np.abs(lengths - 1) > _LENGTH_TOLERANCE)
    if wrong.any():
        failures[UNIT] = f"{_first(embeddings, wrong)} has length {lengths[wrong][0]:.4f}"
    if failures:
        raise VerificationError("embeddings", failures)


def _first(embeddings: pa.Table, bad: NDArray[np.bool_]) -> str:
    """How many of all vectors are bad, by a mask of shape (n,), and which is the first."""
    first = embeddings["chunk_id"][int(np.argmax(bad))].as_py()
    return f"{int(bad.sum())} of {len(bad)} vectors; chunk {first}"


def keep_nothing(_rows: pa.Table) -> None:
    """Spill nothing: what is embedded is lost with the run."""


@dataclass(frozen=True, slots=True)
class EmbeddingResult:
    """The new table, how many distinct texts were embedded, and how many rows took a vector that was there."""

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
    keep: Keep = keep_nothing,
) -> EmbeddingResult:
    """Give every chunk its vector.

    Args:
        chunks: the `chunks` of a source.
        previous: its `embeddings` of an earlier run, or None.
        embedder: the model.
        source: its key, for progress.
        elsewhere: tables with the columns embed_text_hash, model and vector, to look for texts that `previous` does not
            have; one is asked for only while a text is missing.
        keep: given each batch as it arrives, as a table with the same columns; from several threads at once. After a
            failure it has all that was embedded.

    Returns:
        The table in the order of the chunks, stamped with its data version.

    Raises:
        EmbeddingError: the provider failed.
        VerificationError: a vector cannot be used; nothing may be written.
    """
    schema = embeddings_schema(embedder.dimension)
    hashes = chunks["embed_text_hash"].combine_chunks()
    known = _found(_known(previous, embedder.name, schema), hashes, embedder.name, schema, elsewhere)
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
    """The hash, model and vector of each text of a table, if the same model made it."""
    wanted = _wanted(schema)
    columns = None if previous is None else previous.select([name for name in COLUMNS if name in previous.column_names])
    if columns is None or not columns.schema.equals(wanted):
        return wanted.empty_table()
    bare, is_of_model = columns.replace_schema_metadata(None), pc.equal(columns["model"], model)
    return bare if pc.all(is_of_model).as_py() else bare.filter(is_of_model)  # no vector is copied in vain


def _found(known: pa.Table, hashes: pa.Array, model: str, schema: pa.Schema, elsewhere: Iterable[pa.Table]) -> pa.Table:
    """The known rows, and those of other tables for texts that are missing."""
    missing = pc.unique(hashes.filter(pc.invert(pc.is_in(hashes, known["embed_text_hash"]))))
    tables = iter(elsewhere)
    while len(missing) and (table := next(tables, None)) is not None:
        rows = _known(table, model, schema)
        known = pa.concat_tables([known, rows.filter(pc.is_in(rows["embed_text_hash"], missing))])
        missing = missing.filter(pc.invert(pc.is_in(missing, known["embed_text_hash"])))
    return known


@dataclass(frozen=True, slots=True)
class _Fresh:
    """The texts of a source that no known row has, each once, and their vectors as far as they are made."""

    embedder: Embedder
    keep: Keep
    hashes: pa.Array
    chunks: pa.Table
    rows: pa.Array  # of chunks, the first with each of these texts
    vectors: NDArray[np.float16]  # shape (texts, dimension)

    def embed(self, start: int, size: int) -> PartialEmbeddingError | None:
        """Embed and keep so many texts; returns why some of them cannot be embedded, where others can.

        Raises:
            EmbeddingError: the provider failed; what it had embedded is kept.
        """
        batch = self.vectors[start : start + size]
        texts = embed_texts(self.chunks.take(self.rows.slice(start, size))).to_pylist()
        try:
            self._take(batch, start, self.embedder.embed_documents(texts))
        except PartialEmbeddingError as error:
            self._take(batch, start, error.vectors)
            if not error.go_on:
                raise
            return error
        return None

    def _take(self, batch: NDArray[np.float16], start: int, found: Vectors) -> None:
        """Put vectors into a batch, which has the same shape (texts, dimension), and keep them."""
        if found.shape != batch.shape:
            raise EmbeddingError(f"{self.embedder.name} gave vectors of shape {found.shape} instead of {batch.shape}")
        batch[:] = found
        # What cannot be used ends this run when it is verified, and must not end later ones.
        good = usable(found)
        if good.any():
            schema = _wanted(embeddings_schema(self.embedder.dimension))
            values = pa.array((batch if good.all() else batch[good]).ravel(), pa.float16())
            vectors = pa.FixedSizeListArray.from_arrays(values, type=schema.field("vector").type)
            hashes = self.hashes.slice(start, len(batch)).filter(pa.array(good))
            self.keep(pa.table([hashes, [self.embedder.name] * len(hashes), vectors], schema=schema))


def _embed(chunks: pa.Table, known: pa.Table, embedder: Embedder, source: str, keep: Keep) -> _Fresh:
    """Embed each text that no known row has, once.

    Raises:
        EmbeddingError: the first failure, once nothing is under way any more.
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
                f"{error}. {done:,} of {total:,} texts are embedded and kept: the next run goes on from there"
            ) from error
        raise
    return fresh


def _wanted(schema: pa.Schema) -> pa.Schema:
    return pa.schema([schema.field(name) for name in COLUMNS])


def matrix(vectors: pa.ChunkedArray) -> NDArray[np.float16]:
    """A column of vectors as one array: shape (rows, dimension)."""
    values: NDArray[np.float16] = vectors.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return values.reshape(-1, vectors.type.list_size)
