"""Detection of weak results, from query words that occur nowhere and from the best cosine."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from docindex_dagster.search.candidates import Pool
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.query import Query, Wording
from docindex_dagster.search.weights import Closeness
from docindex_dagster.stores.analysis import is_unspaced, joins_known, stems, without_accents

_FIELDS = ("body", "symbols", "path_terms")
_MIN_TYPO_LENGTH = 5  # shorter words have too many neighbors at edit distance 1 to detect typos
_TYPOS = 1
_MAX_LISTED = 3  # maximum number of words in the message
_ROUNDING = 1e-9  # of a sum of shares


def explain_weakness(pool: Pool, query: Query, wording: Wording, cosine: float | None, closeness: Closeness) -> str:
    """Return a sentence that explains why the results are weak; empty if they may be relevant.

    Args:
        pool: the candidates.
        query: the query.
        wording: its weighted words.
        cosine: between the query and the nearest chunk; None if vectors were not used.
        closeness: thresholds for the model of the vectors.
    """
    deciding = _deciding(query, wording, cosine, closeness)
    if deciding is not None and all(_which_occur(pool, deciding)):
        return ""
    missing, share = missing_words(pool, query, wording)
    if not closeness.is_weak(share, cosine):
        return ""
    if not missing:
        return "nothing here is close to the query"
    *others, last = [f'"{word}"' for word in missing[:_MAX_LISTED]]
    words = f"{', '.join(others)} and {last} do" if others else f"{last} does"
    return f"nothing here is close to the query: {words} not occur in the searched sources"


def _deciding(query: Query, wording: Wording, cosine: float | None, closeness: Closeness) -> Sequence[str] | None:
    """Return the rarest words that suffice: if they all occur, no result is weak, whatever the other words do.

    Return None if all words are needed. Long queries thus need few lookups.
    """
    of_stems: dict[str, list[str]] = defaultdict(list)
    for word, stem in zip(query.spelt, stems(query.spelt), strict=True):
        of_stems[stem].append(word)
    deciding: list[str] = []
    remaining = 1.0 + _ROUNDING
    for stem in sorted(of_stems, key=lambda stem: -wording.shares[stem]):
        if not closeness.is_weak(remaining, cosine):
            return deciding
        deciding += of_stems[stem]
        remaining -= wording.shares[stem]
    return None


def missing_words(pool: Pool, query: Query, wording: Wording) -> tuple[list[str], float]:
    """Return the words that no chunk of a pool contains, even with a typo, and their share of all words: 0 to 1."""
    if query.name is not None and all(_which_occur(pool, [query.name.lower()])):
        return [], 0.0  # if the full name occurs, allowing a typo, its parts need not
    words = query.spelt
    present = {word for word, is_present in zip(words, _which_occur(pool, words), strict=True) if is_present}
    missing = [word for word in words if word not in present and not joins_known(word, present)]
    missing = [word for word in missing if not (is_unspaced(word) and any(word in other != word for other in missing))]
    share = sum(wording.shares[stem] for stem in {*stems(missing)})
    return missing, min(1.0, share) if query.terms else 1.0


def _which_occur(pool: Pool, words: Sequence[str]) -> Sequence[bool]:
    """Return whether each word occurs, with or without its accents."""
    forms = [*dict.fromkeys([*words, *map(without_accents, words)])]
    occurs = {
        word: _occurs(pool, word, stem) or _is_misspelt(pool, word, stem)
        for word, stem in zip(forms, stems(forms), strict=True)
    }
    return [occurs[word] or occurs[without_accents(word)] for word in words]


def _occurs(pool: Pool, word: str, stem: str) -> bool:
    """Return whether a chunk that matches the filters contains a word."""
    searcher = pool.reader.searcher
    fields = [name for name in _FIELDS if searcher.doc_freq(name, stem if name == "body" else word)]
    if not fields or pool.filters == Filters():
        return bool(fields)
    from tantivy import Query as Clause

    schema = pool.reader.index.schema
    return _any(pool, [Clause.term_query(schema, name, stem if name == "body" else word) for name in fields])


def _is_misspelt(pool: Pool, word: str, stem: str) -> bool:
    """Return whether a word within one typo of this word occurs."""
    from tantivy import Query as Clause

    if len(word) < _MIN_TYPO_LENGTH:
        return False
    schema = pool.reader.index.schema
    spelt = (("body", stem), ("symbols", word))
    clauses = [
        Clause.fuzzy_term_query(schema, name, text, distance=_TYPOS, transposition_cost_one=True)
        for name, text in spelt
    ]
    return _any(pool, clauses)


def _any(pool: Pool, clauses: list[Any]) -> bool:
    """Return whether a chunk matches one of the clauses and the filters."""
    from tantivy import Occur
    from tantivy import Query as Clause

    combined = Clause.boolean_query([(Occur.Should, clause) for clause in clauses])
    conditions = pool.filters.to_clauses(pool.reader.index.schema)
    return bool(pool.reader.searcher.search(Clause.boolean_query([(Occur.Must, combined), *conditions]), limit=1).hits)
