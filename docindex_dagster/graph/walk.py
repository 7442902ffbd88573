"""Walks from chunk to chunk along the graph: from where a search has found something to what hangs together with it.

A walk that begins anew at what was found, again and again, arrives most often at what many of these chunks lead to:
personalised PageRank (Page, Brin, Motwani and Winograd, 1999).
"""

from collections.abc import Mapping

import numpy as np

from docindex_dagster.graph.links import Links

_GOES_ON = 0.5  # else the walk begins anew
_STEPS = 12  # after which what still moves is less than a thousandth


def walk(linked: Links, seeds: Mapping[str, float]) -> dict[str, float]:
    """How much of the walks that begin at some chunks arrives at each that is near: those, and what they lead to.

    Args:
        linked: the links of all chunks.
        seeds: how much begins at each chunk, of at least 0; only their proportions matter.

    Returns:
        Shares above 0, below 1 in sum. What only begins at a chunk does not count as arriving there.
    """
    whole = sum(seeds.values())
    known = linked.numbers(seeds) if whole else {}
    if not known:
        return {}
    begun = np.array([*known])
    near = np.union1d(begun, linked.leaving(begun)[1])
    begin = np.array([known.get(number, 0.0) for number in near.tolist()]) / whole
    start, target, weight = linked.leaving(near)
    end = np.searchsorted(near, target).clip(max=len(near) - 1)
    is_near = near[end] == target  # where a link leads further, it is not followed
    start, end, weight = start[is_near], end[is_near], weight[is_near]
    chance = weight / np.bincount(start, weight, len(near))[start]
    begin_again = (1 - _GOES_ON) * begin
    ranks = begin
    for _ in range(_STEPS):
        ranks = begin_again + _GOES_ON * np.bincount(end, ranks[start] * chance, len(near))
    reached = ranks - begin_again
    found = np.flatnonzero(reached > 0)
    return dict(zip(linked.chunk_ids.take(near[found]).to_pylist(), reached[found].tolist(), strict=True))
