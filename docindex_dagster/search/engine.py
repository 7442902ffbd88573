"""`search`: candidates from each retriever, fused, ranked by what is known of code, with the rows to show."""

from collections.abc import Callable
from typing import Any

from docindex_dagster.embedding.protocol import Embedder, Vectors
from docindex_dagster.errors import DamagedStoreError, QueryError
from docindex_dagster.search import candidates
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.fusion import fuse
from docindex_dagster.search.model import Hit, Mode, Signal
from docindex_dagster.search.query import understand
from docindex_dagster.search.ranking import rank
from docindex_dagster.search.weights import WEIGHTS, Weights
from docindex_dagster.stores import tantivy_index
from docindex_dagster.stores.damage import reading_stores
from docindex_dagster.stores.reader import Reader


def search(
    reader: Reader,
    query: str,
    embedder: Callable[[], Embedder],
    *,
    mode: Mode = Mode.HYBRID,
    top_k: int = 10,
    filters: Filters | None = None,
    pool: int = 50,
    weights: Weights = WEIGHTS,
) -> list[Hit]:
    """The best chunks for a query.

    Args:
        reader: an open generation.
        query: any text; nothing in it is syntax.
        embedder: gives the model; called only when the mode needs it.
        mode: hybrid, vector or bm25.
        top_k: how many hits at most.
        filters: what every hit must meet.
        pool: how many candidates each retriever gives, at least.
        weights: of the signals that make the order.

    Raises:
        QueryError: the query is empty, a filter is too complex, or the index was made with another model.
        DamagedStoreError: a store cannot be read.
    """
    query = query.encode("utf-8", "replace").decode()
    if not query.strip():
        raise QueryError("the query is empty: say what to search for")
    filters = filters or Filters()
    filters.check()
    limit = max(pool, top_k)
    asked = understand(query)
    rankings = {}
    with reading_stores():
        if mode is not Mode.VECTOR:
            found = candidates.bm25(reader, asked, filters, limit, weights)
            rankings["bm25"] = found or candidates.similar_names(reader, asked, filters, limit)
        if mode is not Mode.BM25:
            vector = _embedded(reader, query, embedder())
            rankings["vector"] = candidates.vector(reader, vector, filters, limit)
        shares = {"bm25": 1 - weights.vector, "vector": weights.vector}
        fused = fuse(rankings, shares, limit, weights.score)
        rows = tantivy_index.rows(reader.searcher, reader.index.schema, [item.chunk_id for item in fused])
    if lost := [item.chunk_id for item in fused if item.chunk_id not in rows]:
        raise DamagedStoreError(f"chunk {lost[0]} is in one store and not in another; run `docindex doctor --repair`")
    return [_hit(rows[item.chunk_id], item.score, item.signals) for item in rank(asked, fused, rows, top_k, weights)]


def _embedded(reader: Reader, query: str, model: Embedder) -> Vectors:
    if model.name != reader.generation.model:
        raise QueryError(
            f"the index was made with the model {reader.generation.model}, the settings name {model.name}; "
            "run `docindex index` to embed again"
        )
    return model.embed_query(query)


def _hit(row: dict[str, Any], score: float, signals: tuple[Signal, ...]) -> Hit:
    copied = {name: row[name] for name in _COPIED}
    return Hit(**copied, heading_path=tuple(row["heading_path"] or ()), score=score, signals=signals)


_COPIED = tuple(name for name in Hit.__dataclass_fields__ if name not in {"heading_path", "score", "signals"})
