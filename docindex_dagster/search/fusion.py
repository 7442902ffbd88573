"""Putting the answers of the retrievers together: reciprocal ranks and shares of the best score, weighted.

Reciprocal rank fusion is Cormack, Clarke and Büttcher, SIGIR 2009. It knows ranks alone, so that a retriever that is
sure of its first answer counts no more than one that has found fifty alike; the share of the best score says that.
"""

from collections.abc import Mapping, Sequence

from docindex_dagster.search.model import Scored, Signal

RRF_K = 60


def fuse(
    rankings: Mapping[str, Sequence[tuple[str, float]]], shares: Mapping[str, float], limit: int, score_weight: float
) -> list[Scored]:
    """Rank by the weighted sums over retrievers; equal sums in the order of ids.

    A retriever that gave as many as it was asked for may have left a chunk out that is as good as its last one; so
    that is what the score of such a chunk is taken to be.

    Args:
        rankings: for each retriever, ids and scores, best first.
        shares: how much each retriever counts; only their proportions matter.
        limit: how many chunks each retriever was asked for.
        score_weight: how much the share of the best score counts beside the reciprocal rank.
    """
    total = sum(shares[name] for name in rankings) or 1.0
    signals: dict[str, list[Signal]] = {chunk_id: [] for ranking in rankings.values() for chunk_id, _ in ranking}
    for name, ranking in rankings.items():
        found = {chunk_id: (rank, score) for rank, (chunk_id, score) in enumerate(ranking, start=1)}
        best = max(ranking[0][1], 0.0) if ranking else 0.0
        last = max(ranking[-1][1], 0.0) if len(ranking) >= limit else 0.0
        for chunk_id, of_chunk in signals.items():
            rank, score = found.get(chunk_id, (None, last))
            share = max(score, 0.0) / best if best else 0.0
            reciprocal = (RRF_K + 1) / (RRF_K + rank) if rank else 0.0
            contribution = shares[name] / total * (reciprocal + score_weight * share)
            of_chunk.append(Signal(name, contribution, rank, score if rank else None))
    fused = [Scored.of(chunk_id, of_chunk) for chunk_id, of_chunk in signals.items()]
    return sorted(fused, key=lambda item: (-item.score, item.chunk_id))
