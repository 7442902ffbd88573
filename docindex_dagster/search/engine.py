"""`search`: candidates from each retriever, fused, ranked by what is known of code, with the rows to show."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from docindex_dagster.core.background import beside
from docindex_dagster.core.errors import EmbeddingError, QueryError
from docindex_dagster.core.safe_text import well_formed
from docindex_dagster.core.traces import span
from docindex_dagster.embedding.protocol import Embedder, Vectors, endpoint_of
from docindex_dagster.embedding.providers import embedder_named
from docindex_dagster.graph.failures import sentence_unlinked
from docindex_dagster.search import candidates, query_hints, relevance, snippets, text_scan
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.hits import hit_of, rows_of
from docindex_dagster.search.lookup import meets_any
from docindex_dagster.search.model import RETRIEVING, Granularity, Hit, Mode, Scored, Signal, title
from docindex_dagster.search.query import Kind, Query, Wording, understand
from docindex_dagster.search.ranking import fuse, rank
from docindex_dagster.search.reranking.protocol import Passage, Reranker, ignore_warning, reranked
from docindex_dagster.search.weights import WEIGHTS, Weights, closeness_of
from docindex_dagster.sources.classify import is_ending
from docindex_dagster.stores import takeover
from docindex_dagster.stores.analysis import stems
from docindex_dagster.stores.damage import reading_stores
from docindex_dagster.stores.generation import Generation
from docindex_dagster.stores.reader import Reader

_SCANNED = 500  # chunks that a reading of all texts may give, of which the best are shown
# How many candidates there are at most where files are asked for and few files have them all.
_LARGEST_POOL, _LARGER = 10_000, 8
# Of what the retrievers found, so many are ranked: more cost time and bring nothing, as benchmarks/quality shows.
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
    former: Callable[[str], Embedder | None] = embedder_named,
    warn: Callable[[str], None] = ignore_warning,
) -> list[Hit]:
    """The best chunks for a query.

    Args:
        reader: an open generation.
        query: any text; nothing in it is syntax, but in the mode `regex`.
        embedder: gives the model; called only when the mode needs it.
        mode: which retrievers answer.
        granularity: chunks, or no more than one chunk of each file.
        top_k: how many hits at most.
        filters: what every hit must meet.
        pool: how many candidates each retriever gives, at least.
        weights: of the signals that make the order.
        reranker: what looks at the best once more.
        former: gives the model of the index by its name, where the settings name another.
        warn: called with why the reranker failed, so that the order is what it was without; with why nothing is found
            by meaning: the index is of another model, or the model failed; with what is not linked yet, where the graph
            is asked; or with what says that nothing is close to the query, as the hits do as well (`is_weak`).

    Raises:
        QueryError: the query is empty or no regular expression, a filter is too complex, vectors or the graph alone
            were asked for and the index is of another model, or the graph and there is none.
        EmbeddingError: vectors or the graph alone were asked for, and the model failed.
        DamagedStoreError: a store cannot be read, or the graph is asked, and a file of it is missing or damaged.
    """
    query = well_formed(query)  # it may come from a shell, with bytes that are no text
    with span("search", mode=mode.value, granularity=granularity.value, top_k=top_k) as step:
        step.note(generation=reader.generation.number)
        step.quote(query=query)
        if not query.strip():
            raise QueryError("the query is empty: say what to search for")
        filters = filters or Filters()
        filters.check(reader.index.schema)
        choice = query_hints.named(reader, query, filters) if mode in RETRIEVING else query_hints.Named((), query)
        vector = None
        if mode in _BY_MEANING:
            words_alone = warn if mode is Mode.HYBRID else None
            vector = _meaning(reader, choice.query, embedder, former, words_alone)
        is_by_file = granularity is Granularity.FILE
        wanted = max(top_k, reranker.candidates) if reranker else top_k
        ranked = max(_RANKED, wanted)
        chunks = candidates.Pool(reader, filters, max(pool, ranked))
        if mode is Mode.GRAPH and (unlinked := _unlinked(reader.generation, filters)):
            warn(unlinked)
        most = chunks.limit if is_by_file else ranked
        while True:
            with reading_stores():
                if mode in RETRIEVING:
                    asked = _retrieved(chunks, choice, mode, vector, weights, most=most)
                else:
                    asked = _scanned(chunks, query, mode)
                rows = rows_of(reader, asked.found)
            found = asked.found
            if mode in RETRIEVING:
                found = query_hints.one_of_each(query, asked.query.kind, found, rows)
            kept = {item.chunk_id: rows[item.chunk_id] for item in found}
            best = rank(asked.query, found, kept, wanted, weights, wording=asked.wording, is_by_file=is_by_file)
            is_crowded = is_by_file or len(found) < len(asked.found)
            if not is_crowded or len(best) >= top_k or len(asked.found) < most or chunks.limit >= _LARGEST_POOL:
                break
            # The chunks of few files filled it, or translations of few pages.
            chunks = replace(chunks, limit=chunks.limit * _LARGER)
            most = chunks.limit
        if reranker is not None:
            passages = [Passage(item, _described(rows[item.chunk_id])) for item in best]
            best = reranked(reranker, query, passages, warn)
        if asked.doubt:
            warn(asked.doubt)
        about = {"is_weak": bool(asked.doubt), "is_scanned": mode not in RETRIEVING}
        with span("snippets", count=min(top_k, len(best))):
            return [hit_of(rows[item.chunk_id], item, asked.find, **about) for item in best[:top_k]]


def _unlinked(generation: Generation, filters: Filters) -> str:
    return sentence_unlinked(*generation.count_unlinked(filters.sources or generation.sources))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A query, its words weighed, what was found, best first, what finds its words in a text, and any doubt of it."""

    query: Query
    wording: Wording
    found: Sequence[Scored]
    find: snippets.Finder
    doubt: str = ""


def _scanned(pool: candidates.Pool, text: str, mode: Mode) -> _Asked:
    pattern = text_scan.Pattern(text, is_regex=mode is Mode.REGEX)
    matches = text_scan.holding(replace(pool, limit=max(pool.limit, _SCANNED)), pattern)
    signals = [Signal(mode.value, 1.0, rank, count) for rank, (_, count) in enumerate(matches, start=1)]
    found = [Scored.of(chunk_id, (signal,)) for (chunk_id, _), signal in zip(matches, signals, strict=True)]
    query = Query(Kind.TEXT, ()) if pattern.is_regex else understand(text)
    return _Asked(query, Wording.of(query, pool.reader), found, snippets.of_pattern(pattern))


def _has_ending(reader: Reader, ending: str) -> bool:
    return is_ending(ending) or meets_any(reader, Filters(path_glob=f"*.{ending}"))


def _retrieved(
    pool: candidates.Pool,
    choice: query_hints.Named,
    mode: Mode,
    vector: Vectors | None,
    weights: Weights,
    *,
    most: int,
) -> _Asked:
    query = understand(choice.query, partial(_has_ending, pool.reader))
    rankings = _rankings(pool, query, mode, vector, weights)
    own: Mapping[str, candidates.Ranking] = {}
    if choice.sources:
        within = replace(pool, filters=replace(pool.filters, sources=choice.sources))
        own = _rankings(within, query, mode, vector, weights)
        rankings = {name: candidates.merged(found, own[name]) for name, found in rankings.items()}
    shares = {"bm25": 1 - weights.vector, "vector": weights.vector}
    if mode is Mode.GRAPH:
        shares = {"vector": 1 - weights.reached, candidates.GRAPH: weights.reached}
    fused = fuse(rankings, shares, pool.limit, weights, None if own else most)
    if own:
        fused = query_hints.lifted(fused, own.values(), weights.source)[:most]
    if weights.graph and mode is not Mode.GRAPH:
        fused = candidates.lifted(pool.reader, fused, weights.graph)
    wording = Wording.of(query, pool.reader)
    cosine = rankings["vector"][0][1] if rankings.get("vector") else None
    doubt = relevance.doubt(pool, query, wording, cosine, closeness_of(pool.reader.generation.model))
    return _Asked(query, wording, fused, snippets.of_words(frozenset(stems(query.terms))), doubt)


def _rankings(
    pool: candidates.Pool, query: Query, mode: Mode, vector: Vectors | None, weights: Weights
) -> dict[str, candidates.Ranking]:
    """What each retriever of a mode gives."""

    def by_words() -> candidates.Ranking:
        return candidates.bm25(pool, query, weights) or candidates.similar_names(pool, query)

    rankings = {}
    if mode is Mode.HYBRID and vector is not None:
        words = beside(by_words)
        nearest = candidates.vector(pool, vector)
        return {"bm25": words(), "vector": nearest}
    if mode in {Mode.HYBRID, Mode.BM25}:
        rankings["bm25"] = by_words()
    if vector is not None:
        rankings["vector"] = candidates.vector(pool, vector)
    if mode is Mode.GRAPH:
        rankings[candidates.GRAPH] = candidates.reached(pool, rankings["vector"])
    return rankings


def _meaning(
    reader: Reader,
    query: str,
    embedder: Callable[[], Embedder],
    former: Callable[[str], Embedder | None],
    warn: Callable[[str], None] | None,
) -> Vectors | None:
    """The vector of a query by the model of the index, even if the settings name another.

    Where it is not there, or fails: None and a warning, or, without `warn`, an error.
    """
    published = reader.generation
    try:
        model = embedder()
        used = model if model.name == published.model else former(published.model)
        if used is not None and endpoint_of(used) == published.endpoint:
            with span("embed query", model=used.name):
                return used.embed_query(query)
    except EmbeddingError as error:
        if warn is None:
            raise
        warn(f"{error}; results are by words alone")
        return None
    if model.name == published.model:
        indexed, named = (url or "no API" for url in (published.endpoint, endpoint_of(model)))
        state = f"the index has vectors of {published.model} from {indexed}, the settings name {named}"
    else:
        state = str(takeover.toward(published, model.name, takeover.pending(reader.layout)))
    if warn is None:
        raise QueryError(f"{state}; until then only words can be searched: run `docindex index`, or use mode bm25")
    warn(f"{state}; until then results are by words alone (`docindex index` does the others)")
    return None


def _described(row: Mapping[str, Any]) -> str:
    """A chunk under a line that says where it stands and what it is, for models that read it."""
    name = title(row["qualified_name"], row["heading_path"])
    return "\n".join(filter(None, (f"{row['path']} {name}".rstrip(), row["text"])))
