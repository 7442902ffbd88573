"""What is known of code beyond its words: which of the chunks that retrievers found are likely to be meant.

Each signal multiplies or adds to the score; its contribution is what the score gained or lost by it.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from docindex_dagster.search.fusion import Fused
from docindex_dagster.search.model import Signal
from docindex_dagster.search.query import Kind, Query
from docindex_dagster.search.weights import Weights
from docindex_dagster.stores.analysis import terms

# Words are the same when one begins with the other and is no shorter than this: `config`, `configuration`.
_SHORTEST = 4
_DOCUMENTS = frozenset({"doc", "config"})
_TESTS = frozenset({"test", "tests", "testing"})


@dataclass(frozen=True, slots=True)
class Ranked:
    """A chunk, its score, and the signals that add up to it."""

    chunk_id: str
    score: float
    signals: tuple[Signal, ...]


def rank(
    query: Query, found: Sequence[Fused], rows: Mapping[str, Mapping[str, Any]], top_k: int, weights: Weights
) -> list[Ranked]:
    """The best chunks of those found, best first.

    Args:
        query: what is asked.
        found: chunks by their relevance, best first.
        rows: for each of their ids, source, path, source_type and symbols.
        top_k: how many to return at most.
        weights: of the signals.
    """
    if not found:
        return []
    best = found[0].score
    ranked = [_one(query, item, rows[item.chunk_id], best, weights) for item in found]
    files = [(rows[item.chunk_id]["source"], rows[item.chunk_id]["path"]) for item in ranked]
    return list(_with_repeats_behind(_with_files(ranked, files, weights), top_k, weights))


def _one(query: Query, item: Fused, row: Mapping[str, Any], best: float, weights: Weights) -> Ranked:
    """What a chunk is by itself."""
    score, signals = item.score, list(item.signals)

    def change(name: str, by: float) -> None:
        nonlocal score
        if by:
            signals.append(Signal(name, by))
            score += by

    if query.name is not None and any(symbol["name"] == query.name for symbol in row["symbols"] or ()):
        change("definition", weights.definition * best)
    if query.kind is Kind.QUESTION:
        if row["source_type"] in _DOCUMENTS:
            change("document", score * (weights.answer - 1))
    else:
        change("path", score * weights.path * _share_of_name(row["path"], query.terms))
        if row["source_type"] in _DOCUMENTS:
            change("document", score * (weights.document - 1))
    if row["source_type"] == "test" and not _TESTS.intersection(query.terms):
        change("test", score * (weights.test - 1))
    return Ranked(item.chunk_id, score, tuple(signals))


def _share_of_name(path: str, words: Sequence[str]) -> float:
    """The share of the words in a file's name that the query has."""
    name = PurePosixPath(path).name
    parts = set(terms(name.split(".")[0] or name))
    return sum(any(_is_same(part, word) for word in words) for part in parts) / len(parts) if parts else 0.0


def _is_same(left: str, right: str) -> bool:
    if left == right:
        return True
    short, long = sorted((left, right), key=len)
    return len(short) >= _SHORTEST and long.startswith(short)


def _with_files(ranked: Sequence[Ranked], files: Sequence[object], weights: Weights) -> list["_InFile"]:
    """The best chunk of a file is lifted by how much of what was found is in that file."""
    sums: dict[object, float] = defaultdict(float)
    first: dict[object, Ranked] = {}
    for item, file in zip(ranked, files, strict=True):
        sums[file] += item.score
        if file not in first or item.score > first[file].score:
            first[file] = item
    most, best = max(sums.values()), max(item.score for item in ranked)
    lifted = []
    for item, file in zip(ranked, files, strict=True):
        gain = weights.file * best * sums[file] / most if first[file] is item and most > 0 else 0.0
        lifted.append(_InFile(_plus(item, "file", gain), file))
    return lifted


@dataclass(frozen=True, slots=True)
class _InFile:
    ranked: Ranked
    file: object


def _with_repeats_behind(items: Sequence[_InFile], top_k: int, weights: Weights) -> Iterator[Ranked]:
    """Best first, each further chunk of a file counting less."""
    shown: dict[object, int] = defaultdict(int)
    heap = [(-item.ranked.score, item.ranked.chunk_id, 0, item) for item in items]
    heapq.heapify(heap)
    given = 0
    while heap and given < top_k:
        score, chunk_id, seen, item = heapq.heappop(heap)
        repeats = shown[item.file]
        if seen < repeats:
            heapq.heappush(heap, (-item.ranked.score * weights.repeat**repeats, chunk_id, repeats, item))
            continue
        shown[item.file] += 1
        given += 1
        yield _plus(item.ranked, "repeat", -score - item.ranked.score)


def _plus(item: Ranked, name: str, by: float) -> Ranked:
    if not by:
        return item
    return replace(item, score=item.score + by, signals=(*item.signals, Signal(name, by)))
