"""Ranking the documents of one cell by the statistics of all cells.

BM25 weighs a term by how many documents have it, and a document by its length beside the average. Tantivy takes both
from the index that is asked and from nowhere else. The first is set right by who asks, who can boost each term; the
second by padding: documents that no query finds, and that give each field the average length that it has in all cells.
They are a segment of their own, which is opened together with those of the cell.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from docindex_dagster.stores import tantivy_index
from docindex_dagster.stores.reader import Reader

if TYPE_CHECKING:
    from tantivy import Index, Searcher

_WORD = "~"  # of no text, since terms are words
_LOOKED_AT = 100  # of the commonest terms of a field, until one is in a document that was not deleted
_HEAP_BYTES = 256 << 20
_DIGITS = 4  # of an average: what differs by less ranks the same
_CELLS, _CHANGES = 100, 2  # that are held: the present averages, and those before, which a search may still use


@dataclass(frozen=True, slots=True)
class Lengths:
    """How many documents an index has, with those that are deleted, and how many tokens in each field."""

    documents: int
    tokens: Mapping[str, float]

    @classmethod
    def of(cls, reader: Reader) -> "Lengths":
        """Those of an open generation."""
        return _lengths(_folder(reader))

    @property
    def averages(self) -> dict[str, float]:
        """Tokens of a document, by field."""
        return {name: tokens / max(1, self.documents) for name, tokens in self.tokens.items()}


@dataclass(frozen=True, slots=True)
class Padded:
    """A searcher whose averages are those of all cells, and how many documents it counts, of which some are padding."""

    searcher: "Searcher"
    documents: int


def padded(reader: Reader, averages: Mapping[str, float]) -> Padded:
    """The searcher of a cell for average lengths of fields that are not its own."""
    return _padded(_folder(reader), tuple((name, _rounded(value)) for name, value in sorted(averages.items())))


def _folder(reader: Reader) -> Path:
    return reader.layout.tantivy / reader.generation.tantivy


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


@lru_cache(_CELLS)
def _lengths(folder: Path) -> Lengths:
    segments = json.loads((folder / "meta.json").read_bytes())["segments"]
    documents = sum(segment["max_doc"] for segment in segments)
    index = tantivy_index.open_published(folder)
    return Lengths(documents, {name: documents * _average(index, name) for name in tantivy_index.TERM_FIELDS})


def _average(index: "Index", field: str) -> float:
    """The average length of a field, as Tantivy explains a score by it; 0 where the field has no term."""
    from tantivy import Query

    searcher = index.searcher()
    for term, *_ in searcher.terms_with_prefix(field, "", limit=_LOOKED_AT):
        query = Query.term_query(index.schema, field, term)
        hits = searcher.search(query, limit=1, count=False).hits
        if hits:
            return _named("avgdl", json.loads(query.explain(searcher, hits[0][1]).to_json())) or 0.0
    return 0.0


def _named(name: str, part: Mapping[str, Any]) -> float | None:
    """The value of a part of an explanation whose description begins with a name."""
    if part["description"].startswith(name):
        return float(part["value"])
    found = (_named(name, one) for one in part.get("details", ()))
    return next((value for value in found if value is not None), None)


@lru_cache(_CELLS * _CHANGES)
def _padded(folder: Path, averages: tuple[tuple[str, float], ...]) -> Padded:
    own = _lengths(folder)
    excess = (own.tokens[name] / own.documents / value for name, value in averages if value and own.documents)
    empty = max(1, math.ceil(own.documents * (max(excess, default=1.0) - 1)))
    documents = own.documents + empty
    lacking = {name: max(0, round(value * documents - own.tokens[name])) for name, value in averages}
    with TemporaryDirectory(prefix="docindex-") as temporary:
        padding = Path(temporary) / "padding"
        _write(padding, empty, lacking)
        index = tantivy_index.open_together([folder, padding])
    return Padded(index.searcher(), documents)


def _write(folder: Path, documents: int, tokens: Mapping[str, int]) -> None:
    """An index of so many documents, of which the first has all tokens."""
    from tantivy import Document

    writer = tantivy_index.create(folder).writer(heap_size=_HEAP_BYTES, num_threads=1)
    first = Document()
    for name, count in tokens.items():
        first.add_text(name, " ".join([_WORD] * count))
    for document in (first, *repeat(Document(), documents - 1)):
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()
