"""The rules that every `embeddings` table keeps; each is also an asset check."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from docindex_dagster.core.errors import VerificationError

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
    matrix = embeddings["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(-1, size)
    lengths = np.linalg.norm(matrix.astype(np.float32), axis=1)
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
