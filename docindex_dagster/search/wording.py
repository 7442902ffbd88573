"""The words of a query, each weighed by how rare it is in the index, and how much of them a text has."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from docindex_dagster.search.query import FUNCTION_WORDS, Query
from docindex_dagster.stores.analysis import plain, spellings, stems, terms
from docindex_dagster.stores.reader import Reader

# A heading of fewer words is a topic, which many pages have, and no sentence that answers.
_LEAST_WORDS = 2


@dataclass(frozen=True, slots=True)
class Wording:
    """The stems of a query's words, each with its share of their inverse document frequencies, which add up to 1."""

    shares: Mapping[str, float]

    @classmethod
    def of(cls, query: Query, reader: Reader) -> "Wording":
        """Weigh the words of a query by the texts of an index."""
        words = stems(query.spelt)
        searcher = reader.searcher
        found = {stem: _idf(searcher.doc_freq("body", stem), searcher.num_docs) for stem in words}
        whole = sum(found.values()) or 1.0
        return cls({stem: idf / whole for stem, idf in found.items()})

    def in_chunk(self, row: Mapping[str, Any]) -> float:
        """How much of the words a chunk has in its text, path, headings or name: 0 to 1."""
        headings = " ".join(row["heading_path"] or ())
        text = f"{row['path']} {headings} {row['qualified_name'] or ''} {row['text']}"
        held = plain(text).lower()
        return min(1.0, sum(share for stem, share in self.shares.items() if stem in held))

    def as_heading(self, row: Mapping[str, Any]) -> float:
        """How far the last heading over a chunk says what the query says, and nothing else: 0 to 1."""
        heading = _heading(row["heading_path"][-1]) if row["heading_path"] else frozenset[str]()
        if len(heading) < _LEAST_WORDS:
            return 0.0
        both = heading.intersection(self.shares)
        return min(1.0, sum(self.shares[stem] for stem in both)) * len(both) / len(heading)


def _idf(frequency: int, count: int) -> float:
    """Return the inverse document frequency of a term, as Tantivy has it in BM25."""
    return math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))


@lru_cache(maxsize=1 << 14)
def _heading(text: str) -> frozenset[str]:
    return frozenset(stems([word for word in spellings(terms(text)) if word not in FUNCTION_WORDS]))
