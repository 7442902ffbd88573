"""Whether anything that was found is close to the query: by its words that occur nowhere, and by the best cosine."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from docindex_dagster.search.candidates import Pool
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.query import Query, Wording
from docindex_dagster.search.weights import Closeness
from docindex_dagster.stores.analysis import is_unspaced, joins_known, stems, without_accents

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
    is_there = {
        word: _occurs(pool, word, stem) or _is_misspelt(pool, word, stem)
        for word, stem in zip(forms, stems(forms), strict=True)
    }
    return [is_there[word] or is_there[without_accents(word)] for word in words]


def _occurs(pool: Pool, word: str, stem: str) -> bool:
    """Whether a chunk that meets the filters has a word."""
    searcher = pool.reader.searcher
    found = [name for name in _FIELDS if searcher.doc_freq(name, stem if name == "body" else word)]
    if not found or pool.filters == Filters():
        return bool(found)
    from tantivy import Query as Clause

    schema = pool.reader.index.schema
    return _any(pool, [Clause.term_query(schema, name, stem if name == "body" else word) for name in found])


def _is_misspelt(pool: Pool, word: str, stem: str) -> bool:
    """Whether there is a word that becomes this one by one typing error."""
    from tantivy import Query as Clause

    if len(word) < _SHORTEST:
        return False
    schema = pool.reader.index.schema
    spelt = (("body", stem), ("symbols", word))
    clauses = [
        Clause.fuzzy_term_query(schema, name, text, distance=_TYPOS, transposition_cost_one=True)
        for name, text in spelt
    ]
    return _any(pool, clauses)


def _any(pool: Pool, clauses: list[Any]) -> bool:
    """Whether a chunk that meets the filters meets one of the clauses."""
    from tantivy import Occur
    from tantivy import Query as Clause

    whole = Clause.boolean_query([(Occur.Should, clause) for clause in clauses])
    conditions = pool.filters.to_clauses(pool.reader.index.schema)
    return bool(pool.reader.searcher.search(Clause.boolean_query([(Occur.Must, whole), *conditions]), limit=1).hits)
