"""Fusing the rankings of the retrievers, then ranking by what is known of code beyond its words.

Each signal multiplies or adds to the score; its contribution is what the score gained or lost by it.
"""

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from docindex_dagster.core.traces import spanned
from docindex_dagster.search.model import Scored, Signal
from docindex_dagster.search.query import Kind, Query, Wording
from docindex_dagster.search.weights import Weights
from docindex_dagster.stores.analysis import parts, stems, terms

# So many of the first candidates decide whether documents are meant.
_BEST = 20
_DOCUMENTS = frozenset({"doc", "config"})
_DOCUMENT = "doc"
_SENTENCES = frozenset({Kind.QUESTION, Kind.TEXT, Kind.ERROR})  # what may be a heading, and is no name
# The power of the share of words that a heading and a query have in common: nearly all have to be.
_WORD_FOR_WORD = 8
_TESTS = frozenset({"test", "tests", "testing"})
# The power of the share of a file's name that a query has: a name of which it has a half says little.
_NAMED = 2
_BY_CHANCE = 0.5
# A word and one that begins with it are the same, unless it is shorter: `env`, `environment`.
_SHORTEST = 3
# What the file is called that stands for its folder, whose name says what it is about.
_OF_FOLDERS = frozenset({"index", "init", "mod"})


@spanned("rank")
def rank(
    query: Query,
    found: Sequence[Scored],
    rows: Mapping[str, Mapping[str, Any]],
    top_k: int,
    weights: Weights,
    *,
    wording: Wording,
    is_by_file: bool = False,
) -> list[Scored]:
    """The best chunks of those found, best first.

    Args:
        query: what is asked.
        found: chunks by their relevance, best first.
        rows: for each of their ids, the chunk.
        top_k: how many to return at most.
        weights: of the signals.
        wording: the words of the query, weighed.
        is_by_file: no file is shown twice.
    """
    if not found:
        return []
    best = found[0].score
    among = _worth_among(found, rows, weights)
    answers = {chunk_id: _as_heading(query, wording, row) for chunk_id, row in rows.items()}
    alone = _alone(query, rows, weights, wording)
    ranked = [
        _by_itself(
            query,
            item,
            rows[item.chunk_id],
            best,
            weights,
            wording=wording,
            among=among,
            answers=answers[item.chunk_id],
            alone=alone.get(item.chunk_id, 0.0),
        )
        for item in found
    ]
    files = {chunk_id: (row["source"], row["path"]) for chunk_id, row in rows.items()}
    lifted = _best_of_files_lifted(ranked, files, weights)
    # A file that stands in several sources, as a copy or on two branches, is one file to a reader.
    contents = {chunk_id: row["content_hash"] for chunk_id, row in rows.items()}
    return list(_repeats_behind(lifted, contents, answers, top_k, 0.0 if is_by_file else weights.repeat))


def _worth_among(found: Sequence[Scored], rows: Mapping[str, Mapping[str, Any]], weights: Weights) -> float:
    """How much a document counts where none is asked for: more, the more of the best that were found are documents."""
    scores = [(item.score, rows[item.chunk_id]["source_type"] in _DOCUMENTS) for item in found[:_BEST]]
    whole = sum(score for score, _ in scores) or 1.0
    share = sum(score for score, is_document in scores if is_document) / whole
    return weights.stray + (weights.fitting - weights.stray) * share


def _worth_of_answer(row: Mapping[str, Any], weights: Weights, wording: Wording) -> float:
    """How much a document counts that may answer a question: more, the more of its words it has.

    A setting answers none, though it may have them.
    """
    return 1 + (weights.answer - 1) * wording.in_chunk(row) ** 2 if row["source_type"] == _DOCUMENT else 1.0


def _as_heading(query: Query, wording: Wording, row: Mapping[str, Any]) -> float:
    """How far the heading of a section is the query, word for word, so that its text is meant: 0 to 1."""
    if row["source_type"] != _DOCUMENT or query.kind not in _SENTENCES:
        return 0.0
    return wording.as_heading(row) ** _WORD_FOR_WORD


def _by_itself(
    query: Query,
    item: Scored,
    row: Mapping[str, Any],
    best: float,
    weights: Weights,
    *,
    wording: Wording,
    among: float,
    answers: float,
    alone: float,
) -> Scored:
    """A chunk with the signals that the others found have no part in but by what is given.

    `among` is what a document counts if none is asked for, `answers` how far its heading is the query, `alone` how far
    it is excused from standing back.
    """
    relevance = item.score
    is_question = query.kind is Kind.QUESTION
    if query.name is not None and any(symbol["name"] == query.name for symbol in row["symbols"] or ()):
        item = item.plus("definition", weights.definition * best)
    is_document = row["source_type"] in _DOCUMENTS
    if not is_question:
        item = item.plus("path", item.score * weights.path * _named(query, row, wording))
    if is_document:
        worth = _worth_of_answer(row, weights, wording) if is_question else _less_far(among, alone)
        item = item.plus("document", item.score * (worth - 1))
        item = item.plus("heading", relevance * weights.heading * answers)
    if _is_unasked_test(query, row):
        item = item.plus("test", item.score * (_less_far(weights.test, alone) - 1))
    return item


def _named(query: Query, row: Mapping[str, Any], wording: Wording) -> float:
    """How far a query names the file of a chunk: 0 to 1. Sentences have the words of a document's name by chance."""
    path, named = row["path"], share_named(row["path"], tuple(wording.shares)) ** _NAMED
    is_by_chance = row["source_type"] in _DOCUMENTS and query.kind in _SENTENCES and not is_written(path, query.terms)
    return _BY_CHANCE * named if is_by_chance else named


def _is_unasked_test(query: Query, row: Mapping[str, Any]) -> bool:
    return row["source_type"] == "test" and not _TESTS.intersection(query.terms)


def _alone(query: Query, rows: Mapping[str, Mapping[str, Any]], weights: Weights, wording: Wording) -> dict[str, float]:
    """How far each of those that stand back is to be excused, since it has words of the query that no code has: 0 to 1.

    What only a test says is found nowhere else.
    """
    back = {
        chunk_id: wording.in_chunk(row)
        for chunk_id, row in rows.items()
        if row["source_type"] in _DOCUMENTS or _is_unasked_test(query, row)
    }
    if not back:
        return {}
    most = max((wording.in_chunk(row) for chunk_id, row in rows.items() if chunk_id not in back), default=0.0)
    return {chunk_id: min(1.0, weights.alone * max(0.0, share - most)) for chunk_id, share in back.items()}


def _less_far(worth: float, alone: float) -> float:
    """What a chunk counts that stands back, the less so the further it is excused."""
    return worth + max(0.0, 1 - worth) * alone


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
    ranked: Sequence[Scored], files: Mapping[str, object], answers: Mapping[str, float], top_k: int, repeat: float
) -> Iterator[Scored]:
    """Best first, equals in the order in which they were found; each further chunk of a file counts less, or not.

    One that answers counts less by as much as it does not: a page of questions has an answer for each.
    """
    shown: dict[object, int] = defaultdict(int)
    heap = [(-item.score, position, 0, item) for position, item in enumerate(ranked)]
    heapq.heapify(heap)
    while heap and sum(shown.values()) < top_k:
        score, position, expected, item = heapq.heappop(heap)
        repeats = shown[files[item.chunk_id]]
        if repeats and not repeat:
            continue
        if expected < repeats:  # another chunk of the file came first: it counts less than it was thought to
            lost = (1 - repeat**repeats) * (1 - answers[item.chunk_id])
            heapq.heappush(heap, (-item.score * (1 - lost), position, repeats, item))
            continue
        shown[files[item.chunk_id]] += 1
        yield item.plus("repeat", -score - item.score)


def share_named(path: str, query: tuple[str, ...]) -> float:
    """The share of the words in a file's name that a query has, whose stems are given: 0 to 1.

    A word is the same in each of its forms, and where it begins a word of the query or the other way about.
    """
    words = _words(_name(path))
    return sum(_is_among(word, query) for word in words) / len(words) if words else 0.0


def is_written(path: str, terms_of_query: Collection[str]) -> bool:
    """Whether a query has the name of a file with its ending, as `README.md` is written; its terms are given."""
    return _terms(path.rpartition("/")[2]).issubset(terms_of_query)


def _name(path: str) -> str:
    """What a file is called: without its ending, or as its folder where it stands for that."""
    folder, _, file = path.rpartition("/")
    name = file.rpartition(".")[0] or file
    stands_for_folder = name.split(".", maxsplit=1)[0].strip("_").lower() in _OF_FOLDERS
    return folder.rpartition("/")[2] if folder and stands_for_folder else name


@lru_cache(maxsize=1 << 16)
def _terms(name: str) -> frozenset[str]:
    return frozenset(terms(name))


@lru_cache(maxsize=1 << 16)
def _words(name: str) -> frozenset[str]:
    return frozenset(stems(parts(name)))


def _is_among(word: str, query: tuple[str, ...]) -> bool:
    """Whether a word is the same, or one of both begins with the other."""
    if word in query:
        return True
    long, lines = _long(query)
    return len(word) >= _SHORTEST and (word.startswith(long) or f"\n{word}" in lines)


@lru_cache(maxsize=64)  # it is asked for each file that a query finds
def _long(words: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """The words that are long enough to be begun with, and a text in which each of them is a line."""
    long = tuple(word for word in words if len(word) >= _SHORTEST)
    return long, "".join(f"\n{word}" for word in long)


@spanned("fuse")
def fuse(
    rankings: Mapping[str, Sequence[tuple[str, float]]],
    shares: Mapping[str, float],
    limit: int,
    weights: Weights,
    most: int | None = None,
) -> list[Scored]:
    """Rank by the weighted sums over retrievers; equal sums in the order of ids.

    Each adds its reciprocal rank (Cormack, Clarke and Büttcher, SIGIR 2009), and the share of its best score: by ranks
    alone, a retriever that is sure of its first answer would count no more than one that has found fifty alike.

    A retriever that gave as many as it was asked for may have left a chunk out that is as good as its last one; so
    that is what the score of such a chunk is taken to be.

    Args:
        rankings: for each retriever, ids and scores, best first.
        shares: how much each retriever counts; only their proportions matter.
        limit: how many chunks each retriever was asked for.
        weights: their `score` says how much the share of the best score counts beside the reciprocal rank.
        most: how many to return; None for all.
    """
    total = sum(shares[name] for name in rankings) or 1.0
    opinions = [_Opinion.of(name, ranking, shares[name] / total, limit, weights) for name, ranking in rankings.items()]
    found = dict.fromkeys(chunk_id for ranking in rankings.values() for chunk_id, _ in ranking)
    sums = {
        chunk_id: sum([opinion.contributions.get(chunk_id, opinion.of_others) for opinion in opinions])
        for chunk_id in found
    }
    best = sorted(sums, key=lambda chunk_id: (-sums[chunk_id], chunk_id))[:most]
    return [Scored.of(chunk_id, [opinion.signal(chunk_id) for opinion in opinions]) for chunk_id in best]


@dataclass(frozen=True, slots=True)
class _Opinion:
    """What one retriever adds to the score of each chunk that it found, and of all that it did not."""

    name: str
    found: dict[str, tuple[int, float]]  # rank and score
    contributions: dict[str, float]
    of_others: float

    @classmethod
    def of(
        cls, name: str, ranking: Sequence[tuple[str, float]], share: float, limit: int, weights: Weights
    ) -> "_Opinion":
        best = max(ranking[0][1], 0.0) if ranking else 0.0
        of_score = share * weights.score / best if best else 0.0
        k = weights.rrf_k
        found = {chunk_id: (rank, score) for rank, (chunk_id, score) in enumerate(ranking, start=1)}
        contributions = {
            chunk_id: share * (k + 1) / (k + rank) + of_score * max(score, 0.0)
            for chunk_id, (rank, score) in found.items()
        }
        last = max(ranking[-1][1], 0.0) if len(ranking) >= limit else 0.0
        return cls(name, found, contributions, of_score * last)

    def signal(self, chunk_id: str) -> Signal:
        rank, score = self.found.get(chunk_id, (None, None))
        return Signal(self.name, self.contributions.get(chunk_id, self.of_others), rank, score)
