"""Confidence intervals of means over questions, by the bootstrap.

Questions are drawn anew with replacement, thousands of times, and the mean of each draw is taken; the interval is what
holds the middle 95 % of these means (B. Efron, "Bootstrap methods", 1979: the percentile interval). The draws have a
fixed seed, so the same questions give the same interval. Of a difference, both rankings of a question are drawn
together: that is what makes small differences visible (the paired bootstrap).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_DRAWS = 2000
_SEED = 20_261_126  # any number will do
_LEVEL = 0.95
_VALUES_A_BLOCK = 4_000_000  # counts in memory


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
    """The mean of each column of values, a row a question, with its interval; none where there are no rows."""
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
