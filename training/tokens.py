"""The tokens of all pairs, as the arrays that training reads."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from docindex_dagster.embedding.static import Bags, StaticModel

QUERY_TOKENS, PASSAGE_TOKENS = 100, 300
_BATCH = 4000  # texts


def tokenize(texts: pa.ChunkedArray, vocabulary: Sequence[str], most: int) -> Bags:
    """The tokens of texts, of each the first `most`."""
    model = StaticModel(vocabulary, np.empty((len(vocabulary), 0), np.float32))
    tokens, weights, begins = [], [], [np.zeros(1, np.int64)]
    for start in range(0, len(texts), _BATCH):
        found = model.bags(texts.slice(start, _BATCH).to_pylist(), most)
        tokens.append(found.tokens.astype(np.int32))
        weights.append(found.weights.astype(np.float16))
        begins.append(found.begins[1:] + begins[-1][-1])
    return Bags(np.concatenate(tokens), np.concatenate(weights), np.concatenate(begins))


def chosen(bags: Bags, rows: NDArray[np.int64]) -> Bags:
    """The tokens of some texts."""
    counts = bags.begins[rows + 1] - bags.begins[rows]
    begins = np.cumsum(counts) - counts
    places = np.arange(counts.sum()) - np.repeat(begins, counts) + np.repeat(bags.begins[rows], counts)
    return Bags(bags.tokens[places].astype(np.int64), bags.weights[places].astype(np.float32), begins)


def save(bags: Bags, path: Path) -> None:
    """Write the tokens of texts."""
    np.savez(path, tokens=bags.tokens, weights=bags.weights, begins=bags.begins)


def load(path: Path) -> Bags:
    """Read what `save` wrote."""
    with np.load(path) as arrays:
        return Bags(arrays["tokens"], arrays["weights"], arrays["begins"])
