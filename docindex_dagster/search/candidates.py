"""Retrievers: each returns chunk ids, best first, with the scores that rank them."""

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
_SEEDS = 20  # best results from which graph walks start


@dataclass(frozen=True, slots=True)
class Pool:
    """The candidates: chunks of a generation that match the filters, up to `limit` per retriever."""

    reader: Reader
    filters: Filters
    limit: int


_TYPOS = 1


@spanned("retrieve bm25")
def bm25(pool: Pool, query: Query, weights: Weights) -> Ranking:
    """Rank chunks with BM25 over text, symbols, headings and path.

    The query is built from analyzed terms, so users cannot inject syntax. Scores are sums over fields.
    """
    fields = {
        "body": 1.0,
        "symbols": weights.symbols,
        "headings": weights.headings,
        "path_terms": weights.path_terms,
    }
    return by_terms(pool, dict.fromkeys(query.terms, 1.0), fields)


def by_terms(pool: Pool, terms: Mapping[str, float], fields: Mapping[str, float]) -> Ranking:
    """Rank chunks with BM25 over weighted terms in weighted fields; a weight of 0 leaves out a field."""
    from tantivy import Query as Clause

    schema = pool.reader.index.schema
    of_stems: dict[str, float] = {}
    for stem, weight in zip(stems([*terms]), terms.values(), strict=True):
        of_stems[stem] = max(weight, of_stems.get(stem, 0.0))
    clauses = [
        Clause.boost_query(Clause.term_query(schema, field, term), of_field * weight)
        for field, of_field in fields.items()
        if of_field
        for term, weight in (of_stems if field in tantivy_index.STEM_FIELDS else terms).items()
    ]
    return _matching(pool, clauses) if clauses else []


@spanned("retrieve similar names")
def similar_names(pool: Pool, query: Query) -> Ranking:
    """Rank chunks with a symbol named like the query, allowing one typo."""
    return of_name(pool, query.name) if query.name is not None else []


def of_name(pool: Pool, name: str) -> Ranking:
    """Rank chunks with a symbol of this name, allowing one typo."""
    from tantivy import Query as Clause

    clause = Clause.fuzzy_term_query(pool.reader.index.schema, "symbols", name.lower(), distance=_TYPOS)
    return _matching(pool, [clause])


@spanned("retrieve vector")
def vector(pool: Pool, query: Vectors) -> Ranking:
    """Rank chunks by the cosine between their vectors and the query's, which has shape (dimension,)."""
    filters, limit = pool.filters, pool.limit
    return sorted(pool.reader.parts.nearest(query, filters, filters.to_mask, limit), key=_rank)[:limit]


def rank_by_scores(pool: Pool, scores: Mapping[str, float]) -> Ranking:
    """Return the chunks with the best scores that match the filters."""
    from tantivy import Occur
    from tantivy import Query as Clause

    if not scores:
        return []
    searcher, schema = pool.reader.searcher, pool.reader.index.schema
    by_id = Clause.term_set_query(schema, "chunk_id", [*scores])
    combined = Clause.boolean_query([(Occur.Must, by_id), *pool.filters.to_clauses(schema)])
    hits = searcher.search(combined, limit=len(scores), count=False).hits
    ids = tantivy_index.chunk_ids(searcher, [address for _, address in hits])
    return _sort(ids, [scores[chunk_id] for chunk_id in ids])[: pool.limit]


def merge_rankings(left: Ranking, right: Ranking) -> Ranking:
    """Merge the rankings of one retriever for one query from two pools."""
    found = dict([*left, *right])
    return _sort([*found], [*found.values()])


def _matching(pool: Pool, clauses: "Sequence[Clause]") -> Ranking:
    """Rank the chunks that match a clause and every filter."""
    from tantivy import Occur
    from tantivy import Query as Clause

    searcher = pool.reader.searcher
    any_clause = Clause.boolean_query([(Occur.Should, clause) for clause in clauses])
    combined = Clause.boolean_query([(Occur.Must, any_clause), *pool.filters.to_clauses(pool.reader.index.schema)])
    # Hits with equal scores are ordered by segment. Fetching more than needed allows cutting by id instead.
    limit = max(1, min(2 * pool.limit, searcher.num_docs))  # Tantivy preallocates memory for this many
    hits = searcher.search(combined, limit=limit, count=False).hits
    ids = tantivy_index.chunk_ids(searcher, [address for _, address in hits])
    return _sort(ids, [score for score, _ in hits])[: pool.limit]


def _sort(ids: Sequence[str], scores: Sequence[float]) -> Ranking:
    """Sort best first; equal scores are ordered by id, so that results are reproducible."""
    return sorted(zip(ids, scores, strict=True), key=_rank)


def _rank(item: tuple[str, float]) -> tuple[float, str]:
    return -item[1], item[0]


@spanned("retrieve graph")
def rank_by_graph(pool: Pool, found: Ranking) -> Ranking:
    """Rank the chunks that the graph reaches from the best of those found, possibly including these.

    Raises:
        QueryError: no source has a graph.
        DamagedStoreError: a graph is missing or damaged.
    """
    if not any(source.graph for source in pool.reader.generation.sources.values()):
        raise QueryError(
            "no indexed source has a graph. Set graph.enabled and run `docindex index`, or use another mode"
        )
    shares = walk(pool.reader.links, _seeds(found))
    return rank_by_scores(pool, shares)


@spanned("lift by graph")
def boost_by_graph(reader: Reader, found: Sequence[Scored], weight: float) -> list[Scored]:
    """Boost chunks that the graph reaches from the others; return all chunks, best first.

    The chunk reached most gains `weight` of the best score, the others proportionally less. Adds no chunks.

    Raises:
        DamagedStoreError: a graph is missing or damaged.
    """
    shares = walk(reader.links, {item.chunk_id: item.score for item in found})
    gains = {item.chunk_id: shares.get(item.chunk_id, 0.0) for item in found}
    largest = max(gains.values(), default=0.0)
    if not largest:
        return [*found]
    share = weight * found[0].score / largest
    boosted = [item.plus(GRAPH, share * gains[item.chunk_id]) for item in found]
    return sorted(boosted, key=lambda item: (-item.score, item.chunk_id))


def _seeds(found: Ranking) -> dict[str, float]:
    """Return how far each of the best exceeds the first chunk after them, since raw cosines hardly differ."""
    floor = found[_SEEDS][1] if len(found) > _SEEDS else 0.0
    return {chunk_id: max(score - floor, 0.0) for chunk_id, score in found[:_SEEDS]}
