"""The retrievers: each gives chunk ids, best first, with the score by which it ranked them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import PlainValidator

from docindex_dagster.core.traces import spanned
from docindex_dagster.embedding.protocol import Vectors
from docindex_dagster.search.cells import Cells, Index, ask
from docindex_dagster.search.counts import AskCounts, Counts, Known, Term
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.query import Query
from docindex_dagster.search.weights import Weights
from docindex_dagster.stores import tantivy_index
from docindex_dagster.stores.analysis import stems
from docindex_dagster.stores.lance_table import VECTOR
from docindex_dagster.stores.reader import Reader

if TYPE_CHECKING:
    from lancedb.table import LanceTable
    from tantivy import Query as Clause
    from tantivy import Searcher

Ranking = list[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class Pool:
    """Where candidates come from: the chunks of a generation that meet the filters, so many from each retriever."""

    reader: Index
    filters: Filters
    limit: int


_PROBES = 20
_REFINE = 10
_TYPOS = 1
_DIGITS = 5  # of the scores of cells


def as_vector(values: Sequence[float]) -> Vectors:
    """A vector that came over a network, of shape (dimension,): float32."""
    return np.asarray(values, np.float32)


@spanned("retrieve bm25")
def bm25(pool: Pool, query: Query, weights: Weights) -> Ranking:
    """Chunks by BM25 over text, symbols, headings and path.

    The query is built from analysed terms, so nothing that a user types is syntax. Scores are sums over fields.
    """
    if not query.terms:
        return []
    fields = {
        "body": 1.0,
        "symbols": weights.symbols,
        "headings": weights.headings,
        "path_terms": weights.path_terms,
    }
    of_stems = list(dict.fromkeys(stems(query.terms)))
    weighted = [
        ((field, term), weight)
        for field, weight in fields.items()
        if weight
        for term in (of_stems if field in tantivy_index.STEM_FIELDS else query.terms)
    ]
    known = _known(pool.reader, [term for term, _ in weighted]) if isinstance(pool.reader, Cells) else None
    return ask(pool.reader, AskWords(weighted, pool.filters, pool.limit, known))


def _known(cells: Cells, terms: Sequence[Term]) -> Known:
    """The statistics of some terms in all cells."""
    return Known(cells.lengths.documents, cells.lengths.averages, cells.ask(AskCounts(terms)).frequencies)


@spanned("retrieve similar names")
def similar_names(pool: Pool, query: Query) -> Ranking:
    """Chunks whose symbols are named as the query is, but for one typing error."""
    return ask(pool.reader, AskNames(query.name.lower(), pool.filters, pool.limit)) if query.name is not None else []


@spanned("retrieve vector")
def vector(pool: Pool, query: Vectors) -> Ranking:
    """Chunks by the cosine between their vectors and the query's, which has shape (dimension,)."""
    return ask(pool.reader, AskNearest(query, pool.filters, pool.limit))


def meeting(pool: Pool, scores: Mapping[str, float]) -> Ranking:
    """The chunks with the best scores among those that meet the filters."""
    return ask(pool.reader, AskMeeting(scores, pool.filters, pool.limit)) if scores else []


def merged(left: Ranking, right: Ranking) -> Ranking:
    """What one retriever gave for one query from two pools."""
    found = dict([*left, *right])
    return _ordered([*found], [*found.values()])


@dataclass(frozen=True, slots=True)
class AskWords:
    """Which chunks have some terms, each of which weighs something; with what is known of them in all cells."""

    terms: Sequence[tuple[Term, float]]
    filters: Filters
    limit: int
    known: Known | None = None

    def of(self, reader: Reader) -> Ranking:
        """The best of one index."""
        from tantivy import Query as Clause

        schema = reader.index.schema
        searcher, boosts = self._weighed(reader, self.known) if self.known else (reader.searcher, repeat(1.0))
        clauses = [
            Clause.boost_query(Clause.term_query(schema, *term), weight * boost)
            for (term, weight), boost in zip(self.terms, boosts, strict=False)
        ]
        return _matching(reader, searcher, clauses, self.filters, self.limit)

    def _weighed(self, reader: Reader, known: Known) -> "tuple[Searcher, Iterable[float]]":
        """What ranks a cell's chunks by the lengths in all cells, and makes each term as rare as it is there."""
        own = reader.padding.searcher(known.averages)
        frequencies = [reader.searcher.doc_freq(*term) for term, _ in self.terms]
        everywhere = Counts(known.documents, known.frequencies).idfs()
        here = Counts(own.documents, frequencies).idfs()
        return own.searcher, [wanted / found for wanted, found in zip(everywhere, here, strict=True)]

    def together(self, answers: Sequence[Ranking]) -> Ranking:
        """The best of all, where scores that differ by less than they are exact are equal."""
        return _best([(chunk_id, _exact(score)) for answer in answers for chunk_id, score in answer], self.limit)


@dataclass(frozen=True, slots=True)
class AskNames:
    """Which chunks have a symbol of a name, or of one that becomes it by one typing error."""

    name: str
    filters: Filters
    limit: int

    def of(self, reader: Reader) -> Ranking:
        """Those of one index."""
        from tantivy import Query as Clause

        clause = Clause.fuzzy_term_query(reader.index.schema, "symbols", self.name, distance=_TYPOS)
        return _matching(reader, reader.searcher, [clause], self.filters, self.limit)

    def together(self, answers: Sequence[Ranking]) -> Ranking:
        """The best of all."""
        return _best(chain.from_iterable(answers), self.limit)


@dataclass(frozen=True, slots=True)
class AskNearest:
    """Which chunks have the vectors nearest to one of shape (dimension,)."""

    vector: Annotated[Vectors, PlainValidator(as_vector)]
    filters: Filters
    limit: int

    def of(self, reader: Reader) -> Ranking:
        """Those of all vectors of an index, or by LanceDB's index where that is slow."""
        if reader.matrix is not None:
            nearest = reader.matrix.nearest(self.vector, self.filters, self.filters.to_mask, self.limit)
            return _best(nearest, self.limit)
        return self.together([self._in_table(table) for table in reader.tables])

    def _in_table(self, table: "LanceTable") -> Ranking:
        search = table.search(self.vector, vector_column_name=VECTOR).distance_type("cosine")
        search = search.nprobes(_PROBES).refine_factor(_REFINE).select(["chunk_id", "_distance"]).limit(self.limit)
        found = search.where(self.filters.to_sql(), prefilter=True).to_arrow()
        return _ordered(found["chunk_id"].to_pylist(), [1 - distance for distance in found["_distance"].to_pylist()])

    def together(self, answers: Sequence[Ranking]) -> Ranking:
        """The nearest of all: a cosine means the same everywhere."""
        return _best(chain.from_iterable(answers), self.limit)


@dataclass(frozen=True, slots=True)
class AskMeeting:
    """Which of some chunks meet the filters, and are the best by their scores."""

    scores: Mapping[str, float]
    filters: Filters
    limit: int

    def of(self, reader: Reader) -> Ranking:
        """Those of one index."""
        from tantivy import Occur
        from tantivy import Query as Clause

        searcher, schema = reader.searcher, reader.index.schema
        wanted = Clause.term_set_query(schema, "chunk_id", [*self.scores])
        whole = Clause.boolean_query([(Occur.Must, wanted), *self.filters.to_clauses(schema)])
        hits = searcher.search(whole, limit=len(self.scores), count=False).hits
        ids = tantivy_index.chunk_ids(searcher, [address for _, address in hits])
        return _ordered(ids, [self.scores[chunk_id] for chunk_id in ids])[: self.limit]

    def together(self, answers: Sequence[Ranking]) -> Ranking:
        """The best of all."""
        return _best(chain.from_iterable(answers), self.limit)


def _matching(
    reader: Reader, searcher: "Searcher", clauses: "Sequence[Clause]", filters: Filters, limit: int
) -> Ranking:
    """Chunks that meet one of the clauses, and every filter."""
    from tantivy import Occur
    from tantivy import Query as Clause

    anything = Clause.boolean_query([(Occur.Should, clause) for clause in clauses])
    whole = Clause.boolean_query([(Occur.Must, anything), *filters.to_clauses(reader.index.schema)])
    # Hits of equal score come in the order of segments: with more than are wanted, the cut can follow the ids.
    most = max(1, min(2 * limit, searcher.num_docs))  # Tantivy reserves memory for so many
    hits = searcher.search(whole, limit=most, count=False).hits
    ids = tantivy_index.chunk_ids(searcher, [address for _, address in hits])
    return _ordered(ids, [score for score, _ in hits])[:limit]


def _best(found: Iterable[tuple[str, float]], limit: int) -> Ranking:
    return sorted(found, key=_rank)[:limit]


def _ordered(ids: Sequence[str], scores: Sequence[float]) -> Ranking:
    """Best first; equal scores in the order of ids, so that the same index always answers the same."""
    return sorted(zip(ids, scores, strict=True), key=_rank)


def _rank(item: tuple[str, float]) -> tuple[float, str]:
    return -item[1], item[0]


def _exact(score: float) -> float:
    """A score without the digits in which the statistics of a cell, set right, differ from those of one index."""
    return float(f"{score:.{_DIGITS}g}")
