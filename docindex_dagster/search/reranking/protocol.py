"""The `Reranker` protocol, and helpers that apply a reranker and blend its scores."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from docindex_dagster.core.errors import RerankError, first_line
from docindex_dagster.core.traces import spanned
from docindex_dagster.search.model import Scored


def ignore_warning(_message: str) -> None:
    """Ignore a warning."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A candidate and its text, preceded by a line with its location."""

    scored: Scored
    text: str


class Reranker(Protocol):
    """A component that reorders candidates."""

    @property
    def candidates(self) -> int:
        """How many of the best candidates to rerank."""

    def rerank(self, query: str, passages: Sequence[Passage]) -> list[Scored]:
        """Return all passages, best first; added signals record what the reranker changed.

        Raises:
            RerankError: it cannot order the passages.
        """


@spanned("rerank")
def apply_reranker(
    reranker: Reranker, query: str, passages: Sequence[Passage], warn: Callable[[str], None]
) -> list[Scored]:
    """Return the passages in the reranker's order; if it fails, warn and return them in their original order."""
    first = [passage.scored for passage in passages]
    if len(first) <= 1:
        return first
    candidates, others = passages[: reranker.candidates], first[reranker.candidates :]
    try:
        ordered = list(reranker.rerank(query, candidates))
        _check_same(candidates, ordered)
    except Exception as error:  # noqa: BLE001 rerankers from packages may raise anything
        problem = str(error) if isinstance(error, RerankError) else f"{type(error).__name__}: {first_line(error)}"
        warn(f"the results are not reranked: {problem}")
        return first
    return [*ordered, *others]


def _check_same(passages: Sequence[Passage], returned: Sequence[Scored]) -> None:
    if Counter(item.chunk_id for item in returned) != Counter(passage.scored.chunk_id for passage in passages):
        raise RerankError("it returned other passages than it received")


def blend(name: str, passages: Sequence[Passage], opinions: Sequence[float], weight: float) -> list[Scored]:
    """Order passages by the weighted mean of their score and the reranker's opinion.

    Opinions are rescaled to the range of the scores, since their units are not comparable. The difference between the
    mean and the original score is recorded as a signal.

    Args:
        name: of the signal.
        passages: best first.
        opinions: one per passage, higher is better.
        weight: of the opinion, from 0 to 1.

    Raises:
        RerankError: the opinions are not finite.
    """
    scores = [passage.scored.score for passage in passages]
    lowest, span = min(scores), max(scores) - min(scores)
    shares = _rescale(opinions)
    if not all(map(math.isfinite, shares)):
        raise RerankError("it returned scores that are not finite")
    blended = [
        passage.scored.plus(name, weight * (lowest + span * share - passage.scored.score))
        for passage, share in zip(passages, shares, strict=True)
    ]
    return sorted(blended, key=lambda item: -item.score)


def _rescale(values: Sequence[float]) -> list[float]:
    """Return values rescaled from their range to 0 to 1; all 0.5 if they are equal."""
    low, high = min(values), max(values)
    return [(value - low) / (high - low) if high > low else 0.5 for value in values]
