"""Maximal marginal relevance: each next result is good, and not what was shown before.

Carbonell and Goldstein, SIGIR 1998. How alike two passages are is the cosine between their sets of terms: near-equal
texts and overlapping windows share their words, whatever retriever found them, and no vectors need be read.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from docindex_dagster.search.model import Scored
from docindex_dagster.search.reranking.protocol import Passage
from docindex_dagster.stores.analysis import terms


@dataclass(frozen=True, slots=True)
class MarginalRelevance:
    """Orders by `relevance` times the score, less the rest times the likeness to what stands before."""

    candidates: int = 50
    relevance: float = 0.5  # lambda in the paper

    def rerank(self, query: str, passages: Sequence[Passage]) -> list[Scored]:  # noqa: ARG002 of the protocol
        """All of the passages, each next one by marginal relevance."""
        likeness = similarities([passage.text for passage in passages])
        scores = np.array([passage.scored.score for passage in passages])
        best = float(scores.max()) or 1.0
        relevance = self.relevance * scores / best
        repeats = np.zeros(len(passages))  # likeness to the most similar one that stands before
        left = np.ones(len(passages), bool)
        found = []
        for _ in passages:
            values = np.where(left, relevance - (1 - self.relevance) * repeats, -np.inf)
            chosen = int(values.argmax())
            left[chosen] = False
            repeats = np.maximum(repeats, likeness[chosen])
            item = passages[chosen].scored
            found.append(item.plus("mmr", float(values[chosen]) * best - item.score))
        return found


def similarities(texts: Sequence[str]) -> NDArray[np.float32]:
    """The cosine between the sets of terms of each two texts: float32 of shape (n, n), from 0 to 1."""
    sets = [set(terms(text)) for text in texts]
    columns = {term: at for at, term in enumerate(sorted(set().union(*sets)))}
    matrix = np.zeros((len(sets), max(1, len(columns))), np.float32)
    for row, words in enumerate(sets):
        matrix[row, [columns[word] for word in words]] = 1.0
    norms = np.sqrt(matrix.sum(axis=1, keepdims=True))
    unit = matrix / np.maximum(norms, 1.0)
    alike: NDArray[np.float32] = unit @ unit.T
    return alike
