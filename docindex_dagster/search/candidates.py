"""The retrievers: each gives chunk ids, best first, with the score by which it ranked them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.traces import spanned
from docindex_dagster.embedding.protocol import Vectors
from docindex_dagster.graph.links import walk
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.model import Scored
from docindex_dagster.search.query import Query
from docindex_dagster.search.weights import Weights
from docindex_dagster.stores import tantivy_index
from docindex_dagster.stores.analysis import stems
from docindex_dagster.stores.reader import Reader

if TYPE_CHECKING:
    from tantivy import Query as Clause

Ranking = list[tuple[str, float]]
GRAPH = "graph"
_SEEDS = 20  # of the best that were found: walks begin there


@dataclass(frozen=True, slots=True)
class Pool:
    """Where candidates come from: the chunks of a generation that meet the filters, so many from each retriever."""

    reader: Reader
    filters: Filters
    limit: int


_TYPOS = 1


@spanned("retrieve bm25")
def bm25(pool: Pool, query: Query, weights: Weights) -> Ranking:
    """Chunks by BM25 over text, symbols, headings and path.

    The query is built from analysed terms, so nothing that a user types is syntax. Scores are sums over fields.
    """
    from tantivy import Query as Clause

    if not query.terms:
        return []
    fields = {
        "body": 1.0,
        "symbols": weights.symbols,
        "headings": weights.headings,
        "path_terms": weights.path_terms,
    }
    schema = pool.reader.index.schema
    of_stems = list(dict.fromkeys(stems(query.terms)))
    clauses = [
        Clause.boost_query(Clause.term_query(schema, field, term), weight)
        for field, weight in fields.items()
        if weight
        for term in (of_stems if field in tantivy_index.STEM_FIELDS else query.terms)
    ]
    return _matching(pool, clauses)


@spanned("retrieve similar names")
def similar_names(pool: Pool, query: Query) -> Ranking:
    """Chunks whose symbols are named as the query is, but for one typing error."""
    return of_name(pool, query.name) if query.name is not None else []


def of_name(pool: Pool, name: str) -> Ranking:
    """Chunks with a symbol of a name, or of one that becomes it by one typing error."""
    from tantivy import Query as Clause

    clause = Clause.fuzzy_term_query(pool.reader.index.schema, "symbols", name.lower(), distance=_TYPOS)
    return _matching(pool, [clause])


@spanned("retrieve vector")
def vector(pool: Pool, query: Vectors) -> Ranking:
    """Chunks by the cosine between their vectors and the query's, which has shape (dimension,)."""
    filters, limit = pool.filters, pool.limit
    return sorted(pool.reader.parts.nearest(query, filters, filters.to_mask, limit), key=_rank)[:limit]


def meeting(pool: Pool, scores: Mapping[str, float]) -> Ranking:
    """The chunks with the best scores among those that meet the filters."""
    from tantivy import Occur
    from tantivy import Query as Clause

    if not scores:
        return []
    searcher, schema = pool.reader.searcher, pool.reader.index.schema
    wanted = Clause.term_set_query(schema, "chunk_id", [*scores])
    whole = Clause.boolean_query([(Occur.Must, wanted), *pool.filters.to_clauses(schema)])
    hits = searcher.search(whole, limit=len(scores), count=False).hits
    ids = tantivy_index.chunk_ids(searcher, [address for _, address in hits])
    return _ordered(ids, [scores[chunk_id] for chunk_id in ids])[: pool.limit]


def merged(left: Ranking, right: Ranking) -> Ranking:
    """What one retriever gave for one query from two pools."""
    found = dict([*left, *right])
    return _ordered([*found], [*found.values()])


def _matching(pool: Pool, clauses: "Sequence[Clause]") -> Ranking:
    """Chunks that meet one of the clauses, and every filter."""
    from tantivy import Occur
    from tantivy import Query as Clause

    searcher = pool.reader.searcher
    anything = Clause.boolean_query([(Occur.Should, clause) for clause in clauses])
    whole = Clause.boolean_query([(Occur.Must, anything), *pool.filters.to_clauses(pool.reader.index.schema)])
    # Hits of equal score come in the order of segments: with more than are wanted, the cut can follow the ids.
    most = max(1, min(2 * pool.limit, searcher.num_docs))  # Tantivy reserves memory for so many
    hits = searcher.search(whole, limit=most, count=False).hits
    ids = tantivy_index.chunk_ids(searcher, [address for _, address in hits])
    return _ordered(ids, [score for score, _ in hits])[: pool.limit]


def _ordered(ids: Sequence[str], scores: Sequence[float]) -> Ranking:
    """Best first; equal scores in the order of ids, so that the same index always answers the same."""
    return sorted(zip(ids, scores, strict=True), key=_rank)


def _rank(item: tuple[str, float]) -> tuple[float, str]:
    return -item[1], item[0]


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
    return meeting(pool, shares)


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
    lifted = [item.plus(GRAPH, share * gains[item.chunk_id]) for item in found]
    return sorted(lifted, key=lambda item: (-item.score, item.chunk_id))


def _seeds(found: Ranking) -> dict[str, float]:
    """By how much each of the best is better than the first that is not: cosines alone hardly differ."""
    floor = found[_SEEDS][1] if len(found) > _SEEDS else 0.0
    return {chunk_id: max(score - floor, 0.0) for chunk_id, score in found[:_SEEDS]}
