"""`search`: retrieve candidates, fuse their rankings, rank by code-aware signals, and return the rows to show."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from docindex_dagster.core.background import start_in_thread
from docindex_dagster.core.errors import EmbeddingError, QueryError
from docindex_dagster.core.safe_text import well_formed
from docindex_dagster.core.traces import span
from docindex_dagster.embedding.protocol import Embedder, Vectors, endpoint_of
from docindex_dagster.embedding.providers import embedder_named
from docindex_dagster.graph.failures import sentence_unlinked
from docindex_dagster.search import candidates, locate, query_hints, relevance, snippets, text_scan
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.hits import hit_of, rows_of
from docindex_dagster.search.lookup import meets_any
from docindex_dagster.search.model import RETRIEVING, Granularity, Hit, Intent, Mode, Scored, Signal, title
from docindex_dagster.search.query import Query, Wording, understand
from docindex_dagster.search.ranking import fuse, rank
from docindex_dagster.search.report import Report, is_report, parse_report
from docindex_dagster.search.reranking.protocol import Passage, Reranker, apply_reranker, ignore_warning
from docindex_dagster.search.weights import WEIGHTS, Weights, closeness_of, for_reports
from docindex_dagster.sources.classify import is_ending
from docindex_dagster.stores import takeover
from docindex_dagster.stores.analysis import stems
from docindex_dagster.stores.damage import reading_stores
from docindex_dagster.stores.generation import Generation
from docindex_dagster.stores.reader import Reader

_MAX_SCANNED = 500  # maximum number of chunks from a scan of all texts
# Maximum pool size for file granularity when all candidates come from few files, and the growth factor.
_MAX_POOL, _POOL_GROWTH = 10_000, 8
# Number of retrieved chunks to rank: more take longer without better results, see benchmarks/quality.
_RANKED = 75
_BY_MEANING = (Mode.HYBRID, Mode.VECTOR, Mode.GRAPH)


def search(
    reader: Reader,
    query: str,
    embedder: Callable[[], Embedder],
    *,
    mode: Mode = Mode.HYBRID,
    granularity: Granularity = Granularity.CHUNK,
    top_k: int = 10,
    filters: Filters | None = None,
    pool: int = 100,
    weights: Weights = WEIGHTS,
    reranker: Reranker | None = None,
    intent: Intent | None = None,
    former: Callable[[str], Embedder | None] = embedder_named,
    warn: Callable[[str], None] = ignore_warning,
) -> list[Hit]:
    """Return the best chunks for a query.

    Args:
        reader: an open generation.
        query: any text; nothing in it is syntax, except in the mode `regex`.
        embedder: returns the model; called only if the mode needs it.
        mode: how to search.
        granularity: chunks, or at most one chunk per file.
        top_k: maximum number of hits.
        filters: conditions for every hit.
        pool: minimum number of candidates per retriever.
        weights: of the ranking signals.
        reranker: reorders the best results.
        intent: of the query; None to decide by its form.
        former: returns the model of the index by name, if the settings name another model.
        warn: called with a message if the reranker failed and the original order is kept; if vectors are not used,
            since the index is from another model or the model failed; if the graph is used and some sources are not
            linked yet; or if nothing is close to the query, which the hits record as well (`is_weak`).

    Raises:
        QueryError: the query is empty or an invalid regular expression, or a filter is too complex. In the modes
            `vector` and `graph`, also if the index is from another model, or there is no graph.
        EmbeddingError: the mode is `vector` or `graph`, and the model failed.
        DamagedStoreError: a store cannot be read, or the mode is `graph` and a graph file is missing or damaged.
    """
    query = well_formed(query)  # a shell may pass bytes that are not valid text
    with span("search", mode=mode.value, granularity=granularity.value, top_k=top_k) as step:
        step.note(generation=reader.generation.number)
        step.quote(query=query)
        if not query.strip():
            raise QueryError("the query is empty: say what to search for")
        filters = filters or Filters()
        filters.check(reader.index.schema)
        plan = _Plan.of(reader, query, mode, intent, filters=filters, weights=weights)
        vector = None
        if mode in _BY_MEANING:
            vector = _embed_query(reader, plan.text, embedder, former, warn if mode is Mode.HYBRID else None)
        is_by_file = granularity is Granularity.FILE
        rerank_k = max(top_k, reranker.candidates) if reranker else top_k
        ranked = max(_RANKED, rerank_k)
        chunks = candidates.Pool(reader, filters, max(pool, ranked))
        if mode is Mode.GRAPH and (unlinked := _unlinked(reader.generation, filters)):
            warn(unlinked)
        most = chunks.limit if is_by_file else ranked
        while True:
            with reading_stores():
                retrieval = plan.retrieve(chunks, vector, most, is_by_file=is_by_file)
                rows = rows_of(reader, retrieval.found)
            found = retrieval.found
            if mode in RETRIEVING:
                found = query_hints.keep_one_translation(query, retrieval.query.intent, found, rows)
            kept = {item.chunk_id: rows[item.chunk_id] for item in found}
            best = rank(
                retrieval.query, found, kept, rerank_k, plan.weights, wording=retrieval.wording, is_by_file=is_by_file
            )
            is_crowded = is_by_file or len(found) < len(retrieval.found)
            if not is_crowded or len(best) >= top_k or len(retrieval.found) < most or chunks.limit >= _MAX_POOL:
                break
            # Few files, or translations of few pages, filled the pool.
            chunks = replace(chunks, limit=chunks.limit * _POOL_GROWTH)
            most = chunks.limit
        if reranker is not None:
            passages = [Passage(item, _with_header(rows[item.chunk_id])) for item in best]
            best = apply_reranker(reranker, query, passages, warn)
        if retrieval.doubt:
            warn(retrieval.doubt)
        intent = retrieval.query.intent if mode in RETRIEVING else None
        flags = {"is_weak": bool(retrieval.doubt), "is_scanned": mode not in RETRIEVING}
        with span("snippets", count=min(top_k, len(best))):
            return [hit_of(rows[item.chunk_id], item, retrieval.find, intent, **flags) for item in best[:top_k]]


def _unlinked(generation: Generation, filters: Filters) -> str:
    return sentence_unlinked(*generation.count_unlinked(filters.sources or generation.sources))


@dataclass(frozen=True, slots=True)
class _Retrieval:
    """An analyzed query, its weighted words, the chunks found (best first), a match finder, and a warning if weak."""

    query: Query
    wording: Wording
    found: Sequence[Scored]
    find: snippets.Finder
    doubt: str = ""

    @classmethod
    def of(
        cls, pool: candidates.Pool, query: Query, found: Sequence[Scored], nearest: candidates.Ranking
    ) -> "_Retrieval":
        """Weigh the words of a query, and judge from them and the nearest vector whether the result is weak."""
        wording = Wording.of(query, pool.reader)
        closeness = closeness_of(pool.reader.generation.model)
        doubt = relevance.explain_weakness(pool, query, wording, nearest[0][1] if nearest else None, closeness)
        return cls(query, wording, found, snippets.of_words(frozenset(stems(query.terms))), doubt)


def _has_ending(reader: Reader, ending: str) -> bool:
    return is_ending(ending) or meets_any(reader, Filters(path_glob=f"*.{ending}"))


@dataclass(frozen=True, slots=True)
class _Plan:
    """How to answer a query: as a report, by retrievers, or by a scan of all texts."""

    query: str
    mode: Mode
    intent: Intent | None
    choice: query_hints.NamedSource
    report: Report | None
    weights: Weights

    @classmethod
    def of(
        cls, reader: Reader, query: str, mode: Mode, intent: Intent | None, *, filters: Filters, weights: Weights
    ) -> "_Plan":
        """Decide by the form of the query, unless its intent is given."""
        is_wanted = intent is Intent.CHANGE or (intent is None and is_report(query))
        if is_wanted and mode in {Mode.HYBRID, Mode.BM25}:
            no_source = query_hints.NamedSource((), query)
            return cls(query, mode, intent, no_source, parse_report(query), for_reports(weights))
        if mode in RETRIEVING:
            choice = query_hints.find_named_source(reader, query, filters)
            return cls(query, mode, intent, choice, None, weights)
        return cls(query, mode, intent, query_hints.NamedSource((), query), None, weights)

    @property
    def text(self) -> str:
        """The text to embed."""
        return locate.embedded_text(self.report) if self.report else self.choice.query

    def retrieve(self, pool: candidates.Pool, vector: Vectors | None, most: int, *, is_by_file: bool) -> _Retrieval:
        """Return up to `most` chunks."""
        if self.report:
            wide = replace(pool, limit=max(pool.limit, locate.POOL))
            rankings = locate.rank_views(wide, self.query, self.report, vector)
            found = locate.locate(wide, self.report, rankings, self.weights, most, is_by_file=is_by_file)
            query = understand(self.query, intent=Intent.CHANGE)
            return _Retrieval.of(pool, query, found, rankings.get("prose", []))
        if self.mode in RETRIEVING:
            return self._retrieve(pool, vector, most)
        return self._scan(pool)

    def _scan(self, pool: candidates.Pool) -> _Retrieval:
        pattern = text_scan.Pattern(self.query, is_regex=self.mode is Mode.REGEX)
        matches = text_scan.find_matching_chunks(replace(pool, limit=max(pool.limit, _MAX_SCANNED)), pattern)
        signals = [Signal(self.mode.value, 1.0, rank, count) for rank, (_, count) in enumerate(matches, start=1)]
        found = [Scored.of(chunk_id, (signal,)) for (chunk_id, _), signal in zip(matches, signals, strict=True)]
        query = Query(Intent.TOPIC, ()) if pattern.is_regex else understand(self.query)
        return _Retrieval(query, Wording.of(query, pool.reader), found, snippets.of_pattern(pattern))

    def _retrieve(self, pool: candidates.Pool, vector: Vectors | None, most: int) -> _Retrieval:
        query = understand(self.choice.query, partial(_has_ending, pool.reader), self.intent)
        rankings = _rankings(pool, query, self.mode, vector, self.weights)
        named_rankings: Mapping[str, candidates.Ranking] = {}
        if self.choice.sources:
            within = replace(pool, filters=replace(pool.filters, sources=self.choice.sources))
            named_rankings = _rankings(within, query, self.mode, vector, self.weights)
            rankings = {
                name: candidates.merge_rankings(found, named_rankings[name]) for name, found in rankings.items()
            }
        shares = {"bm25": 1 - self.weights.vector, "vector": self.weights.vector}
        if self.mode is Mode.GRAPH:
            shares = {"vector": 1 - self.weights.reached, candidates.GRAPH: self.weights.reached}
        fused = fuse(rankings, shares, pool.limit, self.weights, None if named_rankings else most)
        if named_rankings:
            fused = query_hints.boost_named_source(fused, named_rankings.values(), self.weights.source)[:most]
        if self.weights.graph and self.mode is not Mode.GRAPH:
            fused = candidates.boost_by_graph(pool.reader, fused, self.weights.graph)
        return _Retrieval.of(pool, query, fused, rankings.get("vector", []))


def _rankings(
    pool: candidates.Pool, query: Query, mode: Mode, vector: Vectors | None, weights: Weights
) -> dict[str, candidates.Ranking]:
    """Return the ranking of each retriever of a mode."""

    def by_words() -> candidates.Ranking:
        return candidates.bm25(pool, query, weights) or candidates.similar_names(pool, query)

    rankings = {}
    if mode is Mode.HYBRID and vector is not None:
        words = start_in_thread(by_words)
        nearest = candidates.vector(pool, vector)
        return {"bm25": words(), "vector": nearest}
    if mode in {Mode.HYBRID, Mode.BM25}:
        rankings["bm25"] = by_words()
    if vector is not None:
        rankings["vector"] = candidates.vector(pool, vector)
    if mode is Mode.GRAPH:
        rankings[candidates.GRAPH] = candidates.rank_by_graph(pool, rankings["vector"])
    return rankings


def _embed_query(
    reader: Reader,
    query: str,
    embedder: Callable[[], Embedder],
    former: Callable[[str], Embedder | None],
    warn: Callable[[str], None] | None,
) -> Vectors | None:
    """Return the vector of a query from the model of the index, even if the settings name another.

    If the model is unavailable or fails: warn and return None, or raise an error if `warn` is None.
    """
    published = reader.generation
    try:
        model = embedder()
        query_model = model if model.name == published.model else former(published.model)
        if query_model is not None and endpoint_of(query_model) == published.endpoint:
            with span("embed query", model=query_model.name):
                return query_model.embed_query(query)
    except EmbeddingError as error:
        if warn is None:
            raise
        warn(f"{error}. Results use word search only")
        return None
    if model.name == published.model:
        indexed, named = (url or "no API" for url in (published.endpoint, endpoint_of(model)))
        state = f"the index has vectors of {published.model} from {indexed}, but the settings name {named}"
    else:
        state = str(takeover.progress_to(published, model.name, takeover.pending(reader.layout)))
    if warn is None:
        raise QueryError(f"{state}. Run `docindex index`, or search by words with mode bm25")
    warn(f"{state}. Until `docindex index` completes, results use word search only")
    return None


def _with_header(row: Mapping[str, Any]) -> str:
    """Return a chunk's text preceded by a line with its location and name, for models that read it."""
    name = title(row["qualified_name"], row["heading_path"])
    return "\n".join(filter(None, (f"{row['path']} {name}".rstrip(), row["text"])))
