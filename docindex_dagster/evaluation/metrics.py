"""How well a ranking answers a question, by the ranks of what answers it.

A target's rank is that of the first hit that is of its file, and overlaps its lines where it has any: the definition of
`benchmarks/files.py`.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DEPTH = 10  # hits that are looked at
_DRAWS = 2000
_SEED = 20_261_126  # any number will do
_LEVEL = 0.95
_VALUES_A_BLOCK = 4_000_000  # counts in memory


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


class Interval(NamedTuple):
    """A mean and the ends of its interval."""

    mean: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of zero."""
        return self.low > 0 or self.high < 0


def intervals(values: Sequence[Sequence[float]]) -> list[Interval]:
    """The mean of each column of values, a row a question, with its interval; none where there are no rows.

    The interval holds the middle 95 % of the means of questions that are drawn anew with replacement, by a fixed seed
    (B. Efron, "Bootstrap methods", 1979). Of a difference, both rankings of a question are drawn together.
    """
    if not values:
        return []
    rows = np.asarray(values, np.float64)
    means = _means(rows)
    tail = 100 * (1 - _LEVEL) / 2
    low, high = np.percentile(means, [tail, 100 - tail], axis=0)
    return [Interval(*map(_rounded, each)) for each in zip(rows.mean(axis=0), low, high, strict=True)]


def _means(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The means of each draw, shape (draws, metrics), float64, of rows of shape (questions, metrics)."""
    random = np.random.default_rng(_SEED)
    count = len(rows)
    step = max(1, _VALUES_A_BLOCK // count)
    shares = np.full(count, 1 / count)
    # How often each question is drawn says all of a draw.
    blocks = [
        random.multinomial(count, shares, size=min(step, _DRAWS - start)) @ rows for start in range(0, _DRAWS, step)
    ]
    return np.concatenate(blocks) / count


def _rounded(value: float) -> float:
    """To what is printed, so that the order in which a machine adds up is not seen."""
    return round(float(value), 4) + 0.0
