"""Hard negatives: the passages of the same repository that BM25 takes for the answer to a query, and that are not."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from docindex_dagster.embedding.static import Bags
from training.tokens import chosen

COUNT = 8  # of a pair
_K1, _B = 1.2, 0.75
_QUERIES = 512  # at a time: their scores are in memory for all passages of the repository


def neighbours(
    queries: Bags,
    passages: Bags,
    repositories: NDArray[np.int64],
    query_hashes: NDArray[np.int64],
    passage_hashes: NDArray[np.int64],
    vocabulary: int,
) -> NDArray[np.int32]:
    """The pairs whose passages score best for the query of each, best first: shape (pairs, 8), -1 where there are fewer.

    None has the same query or the same passage as the pair itself.
    """
    found = np.full((len(repositories), COUNT), -1, np.int32)
    order = np.argsort(repositories, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(repositories[order])) + 1):
        scored = _scored(_binary(queries, rows, vocabulary), _weighted(passages, rows, vocabulary))
        for start, scores in scored:
            of = rows[start : start + len(scores)]
            scores[query_hashes[of][:, None] == query_hashes[rows]] = 0
            scores[passage_hashes[of][:, None] == passage_hashes[rows]] = 0
            count = min(COUNT, scores.shape[1])
            best = np.argpartition(-scores, count - 1, axis=1)[:, :count]
            values = np.take_along_axis(scores, best, axis=1)
            ranked = np.argsort(-values, axis=1, kind="stable")
            best, values = np.take_along_axis(best, ranked, axis=1), np.take_along_axis(values, ranked, axis=1)
            found[of, :count] = np.where(values > 0, rows[best], -1)
    return found


def _binary(bags: Bags, rows: NDArray[np.int64], vocabulary: int) -> csr_array:
    of_rows = chosen(bags, rows)
    ends = np.append(of_rows.begins, len(of_rows.tokens))
    return csr_array((np.ones(len(of_rows.tokens), np.float32), of_rows.tokens, ends), (len(rows), vocabulary))


def _weighted(bags: Bags, rows: NDArray[np.int64], vocabulary: int) -> csr_array:
    """BM25 of each token of each passage."""
    of_rows = chosen(bags, rows)
    counts = of_rows.weights**2  # a bag has the square root
    ends = np.append(of_rows.begins, len(counts))
    texts = np.repeat(np.arange(len(rows)), np.diff(ends))
    length = np.bincount(texts, counts, minlength=len(rows))
    frequency = np.bincount(of_rows.tokens, minlength=vocabulary)
    rarity = np.log1p((len(rows) - frequency + 0.5) / (frequency + 0.5))
    norm = _K1 * (1 - _B + _B * length / max(length.mean(), 1))
    weights = rarity[of_rows.tokens] * counts * (_K1 + 1) / (counts + norm[texts])
    return csr_array((weights.astype(np.float32), of_rows.tokens, ends), (len(rows), vocabulary))


def _scored(queries: csr_array, passages: csr_array) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """The scores of some queries for all passages, from the first of those on."""
    turned = passages.T.tocsr()
    for start in range(0, queries.shape[0], _QUERIES):
        yield start, (queries[start : start + _QUERIES] @ turned).toarray()
