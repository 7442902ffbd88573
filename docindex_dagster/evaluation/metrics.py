"""How well a ranking answers a question, by the ranks of what answers it.

A target's rank is that of the first hit that is of its file, and overlaps its lines where it has any: the definition of
`benchmarks/files.py`.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

DEPTH = 10  # hits that are looked at


class Scores(NamedTuple):
    """The metrics of one question, each from 0 to 1; of several, their means."""

    hit_1: float
    hit_5: float
    hit_10: float
    mrr: float
    ndcg_10: float


NAMES = Scores._fields
LABELS = ("Hit@1", "Hit@5", "Hit@10", "MRR", "NDCG@10")


def scores(ranks: Sequence[int | None]) -> Scores:
    """The metrics of a question.

    Args:
        ranks: of each target, from 1; None where it is not found.

    Raises:
        ValueError: there are no targets.
    """
    if not ranks:
        raise ValueError("a question without targets has no metrics")
    found = [rank for rank in ranks if rank is not None and rank <= DEPTH]
    first = min(found, default=None)
    ideal = sum(map(_gain, range(1, min(DEPTH, len(ranks)) + 1)))
    return Scores(
        hit_1=float(first == 1),
        hit_5=float(first is not None and first <= 5),  # noqa: PLR2004 the 5 of Hit@5
        hit_10=float(first is not None),
        mrr=0.0 if first is None else 1 / first,
        # Two targets with lines may be met by one hit, which counts for both.
        ndcg_10=min(1.0, sum(map(_gain, found)) / ideal),
    )


def _gain(rank: int) -> float:
    """What a target is worth at a rank."""
    return 1 / math.log2(rank + 1)
