"""Ranking the documents of one cell by the statistics of all cells.

BM25 weighs a term by how many documents have it, and a document by its length beside the average. Tantivy takes both
from the index that is asked and from nowhere else. The first is set right by who asks, who can boost each term; the
second by padding: documents that no query finds, and that give each field the average length that it has in all cells.
They are a segment of their own, which is opened together with those of the cell.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TYPE_CHECKING, Any

from docindex_dagster.stores import tantivy_index

if TYPE_CHECKING:
    from tantivy import Index, Searcher

_WORD = "~"  # of no text, since terms are words
_LOOKED_AT = 100  # of the commonest terms of a field, until one is in a document that was not deleted
_HEAP_BYTES = 256 << 20
_DIGITS = 4  # of an average: what differs by less ranks the same
_OPEN = 2  # for the present averages, and for those before, which a search may still use

_Averages = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Lengths:
    """How many documents an index has, with those that are deleted, and how many tokens in each field."""

    documents: int
    tokens: Mapping[str, float]

    @classmethod
    def total(cls, parts: "Sequence[Lengths]") -> "Lengths":
        """Those of several indexes together."""
        tokens = {name: sum(one.tokens[name] for one in parts) for name in tantivy_index.TERM_FIELDS}
        return cls(sum(one.documents for one in parts), tokens)

    @property
    def averages(self) -> dict[str, float]:
        """Tokens of a document, by field."""
        return {name: tokens / max(1, self.documents) for name, tokens in self.tokens.items()}


@dataclass(frozen=True, slots=True)
class Padded:
    """A searcher whose averages are those of all cells, and how many documents it counts, of which some are padding."""

    searcher: "Searcher"
    documents: int


class Padding:
    """The searchers of a cell for average lengths that are not its own; they last as long as its reader."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Those of the published index in some folders, which are read as one."""
        self._folders = folders
        self._open: dict[_Averages, Padded] = {}
        self._lock = Lock()

    @cached_property
    def lengths(self) -> Lengths:
        """The lengths that the cell has itself."""
        return Lengths.total([_lengths(folder) for folder in self._folders])

    def searcher(self, averages: Mapping[str, float]) -> Padded:
        """The one for the average lengths of fields; making it takes a second for a million documents."""
        wanted = tuple((name, _rounded(value)) for name, value in sorted(averages.items()))
        with self._lock:  # of the searches that wait for it, one makes it
            found = self._open.pop(wanted, None) or _padded(self._folders, self.lengths, wanted)
            self._open[wanted] = found
            for earlier in list(self._open)[:-_OPEN]:
                del self._open[earlier]
            return found


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


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


def _padded(folders: Sequence[Path], own: Lengths, averages: _Averages) -> Padded:
    excess = (own.tokens[name] / own.documents / value for name, value in averages if value and own.documents)
    empty = max(1, math.ceil(own.documents * (max(excess, default=1.0) - 1)))
    documents = own.documents + empty
    lacking = {name: max(0, round(value * documents - own.tokens[name])) for name, value in averages}
    with TemporaryDirectory(prefix="docindex-") as temporary:
        padding = Path(temporary) / "padding"
        _write(padding, empty, lacking)
        index = tantivy_index.open_together([*folders, padding])
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
