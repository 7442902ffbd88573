"""Tokens of all pairs, in the arrays that training reads."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from docindex_dagster.embedding.static import Bags, StaticModel

QUERY_TOKENS, PASSAGE_TOKENS = 100, 300
_BATCH = 4000  # texts


def tokenize(texts: pa.ChunkedArray, vocabulary: Sequence[str], most: int) -> Bags:
    """Return the first `most` tokens of each text."""
    model = StaticModel(vocabulary, np.empty((len(vocabulary), 0), np.float32))
    tokens, weights, begins = [], [], [np.zeros(1, np.int64)]
    for start in range(0, len(texts), _BATCH):
        found = model.bags(texts.slice(start, _BATCH).to_pylist(), most)
        tokens.append(found.tokens.astype(np.int32))
        weights.append(found.weights.astype(np.float16))
        begins.append(found.begins[1:] + begins[-1][-1])
    return Bags(np.concatenate(tokens), np.concatenate(weights), np.concatenate(begins))


def chosen(bags: Bags, rows: NDArray[np.int64]) -> Bags:
    """Return the tokens of some of the texts."""
    counts = bags.begins[rows + 1] - bags.begins[rows]
    begins = np.cumsum(counts) - counts
    places = np.arange(counts.sum()) - np.repeat(begins, counts) + np.repeat(bags.begins[rows], counts)
    return Bags(bags.tokens[places].astype(np.int64), bags.weights[places].astype(np.float32), begins)


def save(bags: Bags, path: Path) -> None:
    """Write the tokens of texts to a file."""
    np.savez(path, tokens=bags.tokens, weights=bags.weights, begins=bags.begins)


def load(path: Path) -> Bags:
    """Read a file that `save` wrote."""
    with np.load(path) as arrays:
        return Bags(arrays["tokens"], arrays["weights"], arrays["begins"])
