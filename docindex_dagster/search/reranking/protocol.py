"""What a reranker is, and how its opinion is blended with the first one."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from docindex_dagster.core.errors import RerankError, first_line
from docindex_dagster.core.traces import spanned
from docindex_dagster.search.model import Scored


def ignore_warning(_message: str) -> None:
    """Take a warning for granted."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A candidate, and its text under a line that says where it stands."""

    scored: Scored
    text: str


class Reranker(Protocol):
    """Puts candidates in another order."""

    @property
    def candidates(self) -> int:
        """How many of the best to look at."""

    def rerank(self, query: str, passages: Sequence[Passage]) -> list[Scored]:
        """All of the passages, best first; the signals that it adds say what it changed.

        Raises:
            RerankError: it cannot order them.
        """


@spanned("rerank")
def reranked(reranker: Reranker, query: str, passages: Sequence[Passage], warn: Callable[[str], None]) -> list[Scored]:
    """The passages in a reranker's order; in their own where it fails, of which it warns."""
    first = [passage.scored for passage in passages]
    if len(first) <= 1:
        return first
    looked_at, others = passages[: reranker.candidates], first[reranker.candidates :]
    try:
        found = list(reranker.rerank(query, looked_at))
        _check_same(looked_at, found)
    except Exception as error:  # noqa: BLE001 it may be of another package
        problem = str(error) if isinstance(error, RerankError) else f"{type(error).__name__}: {first_line(error)}"
        warn(f"the results are not reranked: {problem}")
        return first
    return [*found, *others]


def _check_same(given: Sequence[Passage], found: Sequence[Scored]) -> None:
    if Counter(item.chunk_id for item in found) != Counter(passage.scored.chunk_id for passage in given):
        raise RerankError("it gave back other passages than it was given")


def blend(name: str, passages: Sequence[Passage], opinions: Sequence[float], weight: float) -> list[Scored]:
    """Order by the weighted mean of two scores: the first one, and a reranker's opinion.

    Each is taken from its worst to its best over the passages, since neither's unit means anything to the other. What
    the sum differs from the first score is a signal of the reranker's name.

    Args:
        name: of the signal.
        passages: best first.
        opinions: one a passage, higher for better.
        weight: of the opinion, from 0 to 1.

    Raises:
        RerankError: the opinions cannot be compared.
    """
    scores = [passage.scored.score for passage in passages]
    lowest, span = min(scores), max(scores) - min(scores)
    shares = _shares(opinions)
    if not all(map(math.isfinite, shares)):
        raise RerankError("it gave scores that are no numbers")
    found = [
        passage.scored.plus(name, weight * (lowest + span * share - passage.scored.score))
        for passage, share in zip(passages, shares, strict=True)
    ]
    return sorted(found, key=lambda item: -item.score)


def _shares(values: Sequence[float]) -> list[float]:
    """Values as shares of the way from the lowest to the highest; all of them the middle where they are equal."""
    low, high = min(values), max(values)
    return [(value - low) / (high - low) if high > low else 0.5 for value in values]
