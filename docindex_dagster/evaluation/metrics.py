"""Metrics of a ranking: how well it answers a question, computed from the ranks of the targets.

A target's rank is the rank of the first hit in its file that overlaps its lines, if it has any. This is the definition
of `benchmarks/files.py`.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DEPTH = 10  # hits considered
_SAMPLES = 2000
_SEED = 20_261_126  # arbitrary
_LEVEL = 0.95
_VALUES_A_BLOCK = 4_000_000  # counts held in memory


class Scores(NamedTuple):
    """The metrics of a question, or their means over several questions, each from 0 to 1."""

    hit_1: float
    hit_5: float
    hit_10: float
    mrr: float
    ndcg_10: float


NAMES = Scores._fields
LABELS = ("Hit@1", "Hit@5", "Hit@10", "MRR", "NDCG@10")


def scores(ranks: Sequence[int | None]) -> Scores:
    """Return the metrics of a question.

    Args:
        ranks: the rank of each target, from 1; None if it is not found.

    Raises:
        ValueError: There are no targets.
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
        # A hit may overlap two targets with lines. It counts for both.
        ndcg_10=min(1.0, sum(map(_gain, found)) / ideal),
    )


def _gain(rank: int) -> float:
    """Return the gain of a target at a rank."""
    return 1 / math.log2(rank + 1)


class Interval(NamedTuple):
    """A mean and the bounds of its interval."""

    mean: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval does not contain zero."""
        return self.low > 0 or self.high < 0


def intervals(values: Sequence[Sequence[float]]) -> list[Interval]:
    """Return the mean of each column, with its interval; empty if there are no rows. Each row is a question.

    The interval contains the middle 95 % of the means of bootstrap samples, drawn with a fixed seed (B. Efron,
    "Bootstrap methods", 1979). For a difference, both rankings of a question are drawn together.
    """
    if not values:
        return []
    rows = np.asarray(values, np.float64)
    means = _means(rows)
    tail = 100 * (1 - _LEVEL) / 2
    low, high = np.percentile(means, [tail, 100 - tail], axis=0)
    return [Interval(*map(_rounded, each)) for each in zip(rows.mean(axis=0), low, high, strict=True)]


def _means(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means of each draw, shape (draws, metrics), float64, from rows of shape (questions, metrics)."""
    random = np.random.default_rng(_SEED)
    count = len(rows)
    step = max(1, _VALUES_A_BLOCK // count)
    shares = np.full(count, 1 / count)
    # A draw is determined by how often each question occurs in it.
    blocks = [
        random.multinomial(count, shares, size=min(step, _SAMPLES - start)) @ rows for start in range(0, _SAMPLES, step)
    ]
    return np.concatenate(blocks) / count


def _rounded(value: float) -> float:
    """Round to the printed precision, which hides the machine's order of summation."""
    return round(float(value), 4) + 0.0
