"""Reciprocal rank fusion: Cormack, Clarke and Büttcher, SIGIR 2009."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from docindex_dagster.search.model import Signal

RRF_K = 60


@dataclass(frozen=True, slots=True)
class Fused:
    """A chunk with the sum of its reciprocal ranks and the signals that it is made of."""

    chunk_id: str
    score: float
    signals: tuple[Signal, ...]


def fuse(rankings: Mapping[str, Sequence[tuple[str, float]]]) -> list[Fused]:
    """Rank by the sum over retrievers of 1 / (60 + rank); equal sums in the order of ids."""
    signals: dict[str, list[Signal]] = {}
    for retriever, ranking in rankings.items():
        for rank, (chunk_id, score) in enumerate(ranking, start=1):
            signals.setdefault(chunk_id, []).append(Signal(retriever, rank, score))
    fused = (
        Fused(chunk_id, sum(1 / (RRF_K + signal.rank) for signal in found), tuple(found))
        for chunk_id, found in signals.items()
    )
    return sorted(fused, key=lambda item: (-item.score, item.chunk_id))
