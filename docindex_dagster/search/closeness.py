"""Whether anything that was found is close to the query: by its words that occur nowhere, and by the best cosine."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from docindex_dagster.search.candidates import Pool
from docindex_dagster.search.cells import ask
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.query import Query
from docindex_dagster.search.weights import Closeness
from docindex_dagster.search.wording import Wording
from docindex_dagster.stores.analysis import is_unspaced, joins_known, stems, without_accents
from docindex_dagster.stores.reader import Reader

_FIELDS = ("body", "symbols", "path_terms")
_SHORTEST = 5  # a shorter word is near to too many others for a typing error to be recognised
_TYPOS = 1
_SHOWN = 3  # words
_ROUNDING = 1e-9  # of a sum of shares


def doubt(pool: Pool, query: Query, wording: Wording, cosine: float | None, closeness: Closeness) -> str:
    """Why what was found is hardly what was meant, as a sentence; empty where it may well be.

    Args:
        pool: where candidates came from.
        query: what is asked.
        wording: its words, weighed.
        cosine: between the query and the nearest chunk; None where vectors had no part.
        closeness: of the model that made the vectors.
    """
    deciding = _deciding(query, wording, cosine, closeness)
    if deciding is not None and all(_are_there(pool, deciding)):
        return ""
    lost, share = nowhere(pool, query, wording)
    if not closeness.is_weak(share, cosine):
        return ""
    if not lost:
        return "nothing here is close to the query"
    *others, last = [f'"{word}"' for word in lost[:_SHOWN]]
    words = f"{', '.join(others)} and {last} occur" if others else f"{last} occurs"
    return f"nothing here is close to the query: {words} nowhere in what is searched"


def _deciding(query: Query, wording: Wording, cosine: float | None, closeness: Closeness) -> Sequence[str] | None:
    """The rarest words of a query, so many that nothing is weak if they occur, whatever the others do; None if all do.

    So few of the words of a long query are looked for.
    """
    of_stems: dict[str, list[str]] = defaultdict(list)
    for word, stem in zip(query.spelt, stems(query.spelt), strict=True):
        of_stems[stem].append(word)
    deciding: list[str] = []
    left = 1.0 + _ROUNDING
    for stem in sorted(of_stems, key=lambda stem: -wording.shares[stem]):
        if not closeness.is_weak(left, cosine):
            return deciding
        deciding += of_stems[stem]
        left -= wording.shares[stem]
    return None


def nowhere(pool: Pool, query: Query, wording: Wording) -> tuple[list[str], float]:
    """The words that no chunk of a pool has, nor one that is spelt nearly so, and their share of all: 0 to 1."""
    if query.name is not None and all(_are_there(pool, [query.name.lower()])):
        return [], 0.0  # the parts of a name that is there, but for an error, need not be
    words = query.spelt
    there = {word for word, is_there in zip(words, _are_there(pool, words), strict=True) if is_there}
    lost = [word for word in words if word not in there and not joins_known(word, there)]
    lost = [word for word in lost if not (is_unspaced(word) and any(word in other != word for other in lost))]
    share = sum(wording.shares[stem] for stem in {*stems(lost)})
    return lost, min(1.0, share) if query.terms else 1.0


def _are_there(pool: Pool, words: Sequence[str]) -> Sequence[bool]:
    """Whether each of some words is there, with or without its accents."""
    forms = [*dict.fromkeys([*words, *map(without_accents, words)])]
    found = ask(pool.reader, AskSpelt([*zip(forms, stems(forms), strict=True)], pool.filters))
    is_there = dict(zip(forms, found, strict=True))
    return [is_there[word] or is_there[without_accents(word)] for word in words]


@dataclass(frozen=True, slots=True)
class AskSpelt:
    """Which of some words, each with its stem, a chunk has that meets the filters, or one that is spelt nearly so."""

    words: Sequence[tuple[str, str]]
    filters: Filters

    def of(self, reader: Reader) -> list[bool]:
        """In one index."""
        return [self._occurs(reader, *word) or self._is_misspelt(reader, *word) for word in self.words]

    def together(self, answers: Sequence[list[bool]]) -> list[bool]:
        """In any of the cells."""
        return [any(each) for each in zip(*answers, strict=True)]

    def _occurs(self, reader: Reader, word: str, stem: str) -> bool:
        found = [name for name in _FIELDS if reader.searcher.doc_freq(name, stem if name == "body" else word)]
        if not found or self.filters == Filters():
            return bool(found)
        from tantivy import Query as Clause

        schema = reader.index.schema
        clauses = [Clause.term_query(schema, name, stem if name == "body" else word) for name in found]
        return self._any(reader, clauses)

    def _is_misspelt(self, reader: Reader, word: str, stem: str) -> bool:
        """Whether there is a word that becomes this one by one typing error."""
        from tantivy import Query as Clause

        if len(word) < _SHORTEST:
            return False
        schema = reader.index.schema
        spelt = (("body", stem), ("symbols", word))
        clauses = [
            Clause.fuzzy_term_query(schema, name, text, distance=_TYPOS, transposition_cost_one=True)
            for name, text in spelt
        ]
        return self._any(reader, clauses)

    def _any(self, reader: Reader, clauses: list[Any]) -> bool:
        """Whether a chunk that meets the filters meets one of the clauses."""
        from tantivy import Occur
        from tantivy import Query as Clause

        whole = Clause.boolean_query([(Occur.Should, clause) for clause in clauses])
        conditions = self.filters.to_clauses(reader.index.schema)
        return bool(reader.searcher.search(Clause.boolean_query([(Occur.Must, whole), *conditions]), limit=1).hits)
