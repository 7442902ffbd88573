"""The retrievers: each gives chunk ids, best first, with the score by which it ranked them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from docindex_dagster.search.filters import Filters
from docindex_dagster.stores import tantivy_index
from docindex_dagster.stores.analysis import terms
from docindex_dagster.stores.lance_table import VECTOR
from docindex_dagster.stores.reader import Reader

if TYPE_CHECKING:
    from docindex_dagster.embedding.protocol import Vectors

Ranking = list[tuple[str, float]]

# How much a term counts in each field, relative to the text.
FIELD_WEIGHTS = {"body": 1.0, "symbols": 1.0, "headings": 1.0, "path_terms": 1.0}
# A pasted file is a query too; its first terms say what it is about.
_MOST_TERMS = 128
_PROBES = 20
_REFINE = 10


def bm25(reader: Reader, query: str, filters: Filters, limit: int) -> Ranking:
    """Chunks by BM25 over text, symbols, headings and path.

    The query is built from analysed terms, so nothing that a user types is syntax. Scores are sums over fields.
    """
    from tantivy import Occur, Query

    wanted = list(dict.fromkeys(terms(query)))[:_MOST_TERMS]
    if not wanted:
        return []
    schema = reader.index.schema
    clauses = [
        (Occur.Should, Query.boost_query(Query.term_query(schema, field, term), weight))
        for term in wanted
        for field, weight in FIELD_WEIGHTS.items()
    ]
    whole = Query.boolean_query([(Occur.Must, Query.boolean_query(clauses)), *filters.to_clauses(schema)])
    # Hits of equal score come in the order of segments: with more than are wanted, the cut can follow the ids.
    hits = reader.searcher.search(whole, limit=2 * limit, count=False).hits
    ids = tantivy_index.chunk_ids(reader.searcher, [address for _, address in hits])
    return _ordered(ids, [score for score, _ in hits])[:limit]


def vector(reader: Reader, query: "Vectors", filters: Filters, limit: int) -> Ranking:
    """Chunks by the cosine between their vectors and the query's."""
    search = reader.table.search(query, vector_column_name=VECTOR)
    search = search.distance_type("cosine")
    search = search.nprobes(_PROBES).refine_factor(_REFINE).select(["chunk_id", "_distance"]).limit(limit)
    found = search.where(filters.to_sql(), prefilter=True).to_arrow()
    return _ordered(found["chunk_id"].to_pylist(), [1 - distance for distance in found["_distance"].to_pylist()])


def _ordered(ids: Sequence[str], scores: Sequence[float]) -> Ranking:
    """Best first; equal scores in the order of ids, so that the same index always answers the same."""
    return sorted(zip(ids, scores, strict=True), key=lambda item: (-item[1], item[0]))
