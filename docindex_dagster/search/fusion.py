"""Putting the answers of the retrievers together: reciprocal ranks and shares of the best score, weighted.

Reciprocal rank fusion is Cormack, Clarke and Büttcher, SIGIR 2009. It knows ranks alone, so that a retriever that is
sure of its first answer counts no more than one that has found fifty alike; the share of the best score says that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from docindex_dagster.core.traces import spanned
from docindex_dagster.search.model import Scored, Signal
from docindex_dagster.search.weights import Weights


@spanned("fuse")
def fuse(
    rankings: Mapping[str, Sequence[tuple[str, float]]],
    shares: Mapping[str, float],
    limit: int,
    weights: Weights,
    most: int | None = None,
) -> list[Scored]:
    """Rank by the weighted sums over retrievers; equal sums in the order of ids.

    A retriever that gave as many as it was asked for may have left a chunk out that is as good as its last one; so
    that is what the score of such a chunk is taken to be.

    Args:
        rankings: for each retriever, ids and scores, best first.
        shares: how much each retriever counts; only their proportions matter.
        limit: how many chunks each retriever was asked for.
        weights: their `score` says how much the share of the best score counts beside the reciprocal rank.
        most: how many to return; None for all.
    """
    total = sum(shares[name] for name in rankings) or 1.0
    opinions = [_Opinion.of(name, ranking, shares[name] / total, limit, weights) for name, ranking in rankings.items()]
    found = dict.fromkeys(chunk_id for ranking in rankings.values() for chunk_id, _ in ranking)
    sums = {
        chunk_id: sum([opinion.contributions.get(chunk_id, opinion.of_others) for opinion in opinions])
        for chunk_id in found
    }
    best = sorted(sums, key=lambda chunk_id: (-sums[chunk_id], chunk_id))[:most]
    return [Scored.of(chunk_id, [opinion.signal(chunk_id) for opinion in opinions]) for chunk_id in best]


@dataclass(frozen=True, slots=True)
class _Opinion:
    """What one retriever adds to the score of each chunk that it found, and of all that it did not."""

    name: str
    found: dict[str, tuple[int, float]]  # rank and score
    contributions: dict[str, float]
    of_others: float

    @classmethod
    def of(
        cls, name: str, ranking: Sequence[tuple[str, float]], share: float, limit: int, weights: Weights
    ) -> "_Opinion":
        best = max(ranking[0][1], 0.0) if ranking else 0.0
        of_score = share * weights.score / best if best else 0.0
        k = weights.rrf_k
        found = {chunk_id: (rank, score) for rank, (chunk_id, score) in enumerate(ranking, start=1)}
        contributions = {
            chunk_id: share * (k + 1) / (k + rank) + of_score * max(score, 0.0)
            for chunk_id, (rank, score) in found.items()
        }
        last = max(ranking[-1][1], 0.0) if len(ranking) >= limit else 0.0
        return cls(name, found, contributions, of_score * last)

    def signal(self, chunk_id: str) -> Signal:
        rank, score = self.found.get(chunk_id, (None, None))
        return Signal(self.name, self.contributions.get(chunk_id, self.of_others), rank, score)
