"""The graph's part in a search: what hangs together with what was found, found as well or counted more."""

from collections.abc import Sequence

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.traces import spanned
from docindex_dagster.graph.walk import walk
from docindex_dagster.search import candidates
from docindex_dagster.search.candidates import Pool, Ranking
from docindex_dagster.search.model import Scored
from docindex_dagster.stores.reader import Reader

SIGNAL = "graph"
_SEEDS = 20  # of the best that were found: walks begin there


@spanned("retrieve graph")
def reached(pool: Pool, found: Ranking) -> Ranking:
    """The chunks to which the graph leads from the best of those found, of which some may be among them.

    Raises:
        QueryError: no source has a graph.
        DamagedStoreError: a graph is missing or damaged.
    """
    if not any(source.graph for source in pool.reader.generation.sources.values()):
        raise QueryError("nothing here has a graph: set graph.enabled, run `docindex index`, or use another mode")
    shares = walk(pool.reader.links, _seeds(found))
    return candidates.meeting(pool, shares)


@spanned("lift by graph")
def lifted(reader: Reader, found: Sequence[Scored], weight: float) -> list[Scored]:
    """Chunks by their scores, best first, with what the graph adds to those to which the others lead.

    The one where most arrives gains `weight` of the best score, the others less. No further chunk is found.

    Raises:
        DamagedStoreError: a graph is missing or damaged.
    """
    shares = walk(reader.links, {item.chunk_id: item.score for item in found})
    gains = {item.chunk_id: shares.get(item.chunk_id, 0.0) for item in found}
    most = max(gains.values(), default=0.0)
    if not most:
        return [*found]
    share = weight * found[0].score / most
    lifted = [item.plus(SIGNAL, share * gains[item.chunk_id]) for item in found]
    return sorted(lifted, key=lambda item: (-item.score, item.chunk_id))


def _seeds(found: Ranking) -> dict[str, float]:
    """By how much each of the best is better than the first that is not: cosines alone hardly differ."""
    floor = found[_SEEDS][1] if len(found) > _SEEDS else 0.0
    return {chunk_id: max(score - floor, 0.0) for chunk_id, score in found[:_SEEDS]}
