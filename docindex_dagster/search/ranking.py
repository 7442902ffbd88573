"""What is known of code beyond its words: which of the chunks that retrievers found are likely to be meant.

Each signal multiplies or adds to the score; its contribution is what the score gained or lost by it.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from docindex_dagster.search.model import Scored
from docindex_dagster.search.query import Kind, Query
from docindex_dagster.search.weights import Weights
from docindex_dagster.stores.analysis import terms

# Words are the same when one begins with the other and is no shorter than this: `config`, `configuration`.
_SHORTEST = 4
# So many of the first candidates decide whether documents are meant.
_BEST = 20
_DOCUMENTS = frozenset({"doc", "config"})
_TESTS = frozenset({"test", "tests", "testing"})


def rank(
    query: Query,
    found: Sequence[Scored],
    rows: Mapping[str, Mapping[str, Any]],
    top_k: int,
    weights: Weights,
    *,
    is_by_file: bool = False,
) -> list[Scored]:
    """The best chunks of those found, best first.

    Args:
        query: what is asked.
        found: chunks by their relevance, best first.
        rows: for each of their ids, source, path, content_hash, source_type and symbols.
        top_k: how many to return at most.
        weights: of the signals.
        is_by_file: no file is shown twice.
    """
    if not found:
        return []
    best = found[0].score
    of_document = weights.answer if query.kind is Kind.QUESTION else _worth_of_document(found, rows, weights)
    ranked = [_by_itself(query, item, rows[item.chunk_id], best, weights, of_document=of_document) for item in found]
    files = {chunk_id: (row["source"], row["path"]) for chunk_id, row in rows.items()}
    lifted = _best_of_files_lifted(ranked, files, weights)
    # A file that stands in several sources, as a copy or on two branches, is one file to a reader.
    contents = {chunk_id: row["content_hash"] for chunk_id, row in rows.items()}
    return list(_repeats_behind(lifted, contents, top_k, 0.0 if is_by_file else weights.repeat))


def _worth_of_document(found: Sequence[Scored], rows: Mapping[str, Mapping[str, Any]], weights: Weights) -> float:
    """How much a document counts: more, the more of the best that were found are documents."""
    scores = [(item.score, rows[item.chunk_id]["source_type"] in _DOCUMENTS) for item in found[:_BEST]]
    whole = sum(score for score, _ in scores) or 1.0
    share = sum(score for score, is_document in scores if is_document) / whole
    return weights.stray + (weights.fitting - weights.stray) * share


def _by_itself(
    query: Query, item: Scored, row: Mapping[str, Any], best: float, weights: Weights, *, of_document: float
) -> Scored:
    """A chunk with the signals that need no other chunk."""
    if query.name is not None and any(symbol["name"] == query.name for symbol in row["symbols"] or ()):
        item = item.plus("definition", weights.definition * best)
    if query.kind is not Kind.QUESTION:
        item = item.plus("path", item.score * weights.path * _share_of_name(row["path"], query.terms))
    if row["source_type"] in _DOCUMENTS:
        item = item.plus("document", item.score * (of_document - 1))
    if row["source_type"] == "test" and not _TESTS.intersection(query.terms):
        item = item.plus("test", item.score * (weights.test - 1))
    return item


def _share_of_name(path: str, words: Sequence[str]) -> float:
    """The share of the words in a file's name that the query has."""
    parts = _name_parts(path.rpartition("/")[2])
    return sum(_is_among(part, words) for part in parts) / len(parts) if parts else 0.0


@lru_cache(maxsize=1 << 16)
def _name_parts(name: str) -> frozenset[str]:
    return frozenset(terms(name.split(".", maxsplit=1)[0] or name))


def _is_among(part: str, words: Sequence[str]) -> bool:
    """Whether a word is the same, or one of both begins with the other."""
    if part in words:
        return True
    long = [word for word in words if len(word) >= _SHORTEST]
    return len(part) >= _SHORTEST and any(word.startswith(part) or part.startswith(word) for word in long)


def _best_of_files_lifted(ranked: Sequence[Scored], files: Mapping[str, object], weights: Weights) -> list[Scored]:
    """The best chunk of each file is lifted by how much of what was found is in that file."""
    sums: dict[object, float] = defaultdict(float)
    first: dict[object, Scored] = {}
    for item in ranked:
        file = files[item.chunk_id]
        sums[file] += item.score
        if file not in first or item.score > first[file].score:
            first[file] = item
    share = weights.file * max(item.score for item in ranked) / (max(sums.values()) or 1.0)
    gains = {item.chunk_id: share * sums[file] for file, item in first.items()}
    return [item.plus("file", gains.get(item.chunk_id, 0.0)) for item in ranked]


def _repeats_behind(
    ranked: Sequence[Scored], files: Mapping[str, object], top_k: int, repeat: float
) -> Iterator[Scored]:
    """Best first, equals in the order in which they were found; each further chunk of a file counts less, or not."""
    shown: dict[object, int] = defaultdict(int)
    heap = [(-item.score, position, 0, item) for position, item in enumerate(ranked)]
    heapq.heapify(heap)
    while heap and sum(shown.values()) < top_k:
        score, position, expected, item = heapq.heappop(heap)
        repeats = shown[files[item.chunk_id]]
        if repeats and not repeat:
            continue
        if expected < repeats:  # another chunk of the file came first: it counts less than it was thought to
            heapq.heappush(heap, (-item.score * repeat**repeats, position, repeats, item))
            continue
        shown[files[item.chunk_id]] += 1
        yield item.plus("repeat", -score - item.score)
