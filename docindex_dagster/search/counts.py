"""How rare terms are: the statistics by which BM25 and the wording of a query weigh them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from docindex_dagster.stores.reader import Reader

Term = tuple[str, str]  # a field and a term of it


@dataclass(frozen=True, slots=True)
class Counts:
    """How many documents there are, and how many of them have each of some terms, in their order."""

    documents: int
    frequencies: Sequence[int]

    def idfs(self) -> list[float]:
        """The inverse document frequency of each term."""
        return [idf(frequency, self.documents) for frequency in self.frequencies]


@dataclass(frozen=True, slots=True)
class AskCounts:
    """How many documents have each of some terms."""

    terms: Sequence[Term]

    def of(self, reader: Reader) -> Counts:
        """Of those of one index."""
        searcher = reader.searcher
        return Counts(searcher.num_docs, [searcher.doc_freq(*term) for term in self.terms])

    def together(self, answers: Sequence[Counts]) -> Counts:
        """Their sums."""
        frequencies = (one.frequencies for one in answers)
        return Counts(sum(one.documents for one in answers), [sum(each) for each in zip(*frequencies, strict=True)])


@dataclass(frozen=True, slots=True)
class Known:
    """What a cell is to know of all cells: their documents, how long each field is on average, how rare terms are."""

    documents: int
    averages: Mapping[str, float]
    frequencies: Sequence[int]


def idf(frequency: int, count: int) -> float:
    """The inverse document frequency of a term, as Tantivy has it in BM25."""
    return math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))
