"""What to read before an answer: the best hits, with what they call and who calls them.

A search orders chunks each by itself. An answer to a question about code needs what hangs together: a function with
those that it hands its work to, the class that it builds on, the test that shows its use.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from docindex_dagster.core.errors import DamagedStoreError
from docindex_dagster.core.traces import spanned
from docindex_dagster.graph.links import walk
from docindex_dagster.search import candidates, snippets
from docindex_dagster.search.candidates import GRAPH, Pool
from docindex_dagster.search.hits import hit_of, rows_of
from docindex_dagster.search.model import Hit, Scored, Signal
from docindex_dagster.search.query import understand
from docindex_dagster.search.reranking.protocol import ignore_warning
from docindex_dagster.stores.analysis import stems
from docindex_dagster.stores.damage import reading_stores

_LAST = "last"
_SEEDS = 10  # of the best: walks in the graph begin there
_FURTHER = 25  # chunks, at most, that no retriever found
_GAIN = 0.5  # of the best score, for the chunk to which most of these lead


@spanned("gather")
def gathered(pool: Pool, query: str, hits: Sequence[Hit], warn: Callable[[str], None] = ignore_warning) -> list[Hit]:
    """Hits, and what the graph leads to from the best of them, in the order in which they are worth reading.

    Args:
        pool: where they came from.
        query: what was asked.
        hits: best first.
        warn: called with why the graph has no part in it.
    """
    shares = _shares(pool, hits, warn)
    further = _further(pool, query, hits, shares)
    gain = _GAIN * hits[0].score / max(shares.values()) if shares else 0.0
    linked = [_plus(hit, gain * shares.get(hit.chunk_id, 0.0)) for hit in (*hits, *further)]
    return sorted(linked, key=lambda hit: -hit.score)


def _shares(pool: Pool, hits: Sequence[Hit], warn: Callable[[str], None]) -> dict[str, float]:
    """How much of what begins at the best hits arrives at each chunk that is near; nothing where there is no graph."""
    if not any(source.graph for source in pool.reader.generation.sources.values()):
        return {}
    floor = hits[_SEEDS].score if len(hits) > _SEEDS else 0.0  # the best are often little better than the next
    try:
        return walk(pool.reader.links, {hit.chunk_id: max(hit.score - floor, 0.0) for hit in hits[:_SEEDS]})
    except DamagedStoreError as error:
        warn(f"{error}; what is found is not followed in the graph")
        return {}


def _further(pool: Pool, query: str, hits: Sequence[Hit], shares: Mapping[str, float]) -> list[Hit]:
    """The chunks that only the graph found: each counts as the last hit, before it gains what the graph gives it."""
    known = {hit.chunk_id for hit in hits}
    with reading_stores():
        others = {one: share for one, share in shares.items() if one not in known}
        near = candidates.meeting(replace(pool, limit=_FURTHER), others)
        scored = [Scored.of(chunk_id, (Signal(_LAST, hits[-1].score),)) for chunk_id, _ in near]
        rows = rows_of(pool.reader, scored)
    find = snippets.of_words(frozenset(stems(understand(query).terms)))
    return [hit_of(rows[one.chunk_id], one, find, is_weak=hits[0].is_weak) for one in scored]


def _plus(hit: Hit, contribution: float) -> Hit:
    """A hit with what the graph adds to it, if it does."""
    if not contribution:
        return hit
    signals = (*hit.signals, Signal(GRAPH, contribution))
    return replace(hit, score=hit.score + contribution, signals=signals)
