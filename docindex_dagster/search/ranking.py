"""Fusion of the retrievers' rankings, then ranking by code-aware signals.

Each signal multiplies the score or adds to it; its contribution is the resulting change of the score.
"""

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from docindex_dagster.core.traces import spanned
from docindex_dagster.search.model import Intent, Scored, Signal
from docindex_dagster.search.query import Query, Wording
from docindex_dagster.search.weights import Weights
from docindex_dagster.stores.analysis import parts, stems, terms

# This many of the best candidates determine whether documents are relevant.
_BEST = 20
_DOCUMENTS = frozenset({"doc", "config"})
_DOCUMENT = "doc"
_SENTENCES = frozenset({Intent.EXPLAIN, Intent.TOPIC, Intent.ERROR, Intent.EXAMPLE})  # queries that can match a heading
# Exponent for the share of words that a heading and a query have in common: nearly all must match.
_HEADING_EXPONENT = 8
# Exponent for the share of a file's name that a query contains: half of a name is weak evidence.
_NAME_EXPONENT = 2
_CHANCE_FACTOR = 0.5
# A word also matches words that start with it, unless it is shorter than this: `env`, `environment`.
_MIN_PREFIX = 3
# File names that stand for their folder, whose name describes the contents.
FOLDER_NAMES = frozenset({"index", "init", "mod"})


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
    """Return the best chunks, best first.

    Args:
        query: the query.
        found: chunks by relevance, best first.
        rows: the chunks by id.
        top_k: maximum number of chunks.
        weights: of the signals.
        wording: the weighted words of the query.
        is_by_file: whether to return at most one chunk per file.
    """
    if not found:
        return []
    best = found[0].score
    among = _document_factor(found, rows, weights)
    answers = {chunk_id: _as_heading(query, wording, row) for chunk_id, row in rows.items()}
    alone = _penalty_reductions(query, rows, weights, wording)
    ranked = [
        _apply_signals(
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
    lifted = _boost_best_of_files(ranked, files, weights)
    # A file in several sources, as a copy or on two branches, is the same file to a reader.
    contents = {chunk_id: row["content_hash"] for chunk_id, row in rows.items()}
    return list(_demote_repeats(lifted, contents, answers, top_k, 0.0 if is_by_file else weights.repeat))


def _document_factor(found: Sequence[Scored], rows: Mapping[str, Mapping[str, Any]], weights: Weights) -> float:
    """Return the factor for documents if the query does not ask for any; higher if more of the best are documents."""
    scores = [(item.score, rows[item.chunk_id]["source_type"] in _DOCUMENTS) for item in found[:_BEST]]
    total = sum(score for score, _ in scores) or 1.0
    share = sum(score for score, is_document in scores if is_document) / total
    return weights.stray + (weights.fitting - weights.stray) * share


def _answer_factor(row: Mapping[str, Any], weights: Weights, wording: Wording) -> float:
    """Return the factor for a document that may answer a question; higher if it has more of the words.

    Settings files do not answer questions, even if they contain the words.
    """
    return 1 + (weights.answer - 1) * wording.in_chunk(row) ** 2 if row["source_type"] == _DOCUMENT else 1.0


def _as_heading(query: Query, wording: Wording, row: Mapping[str, Any]) -> float:
    """Return how closely the heading of a section matches the query, word for word: 0 to 1."""
    if row["source_type"] != _DOCUMENT or query.intent not in _SENTENCES:
        return 0.0
    return wording.as_heading(row) ** _HEADING_EXPONENT


def _apply_signals(
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
    """Return a chunk with the signals that do not depend on other chunks, apart from the values passed in.

    `among` is the factor for a document if the query does not ask for any, `answers` how closely its heading matches
    the query, `alone` how far its penalty is reduced.
    """
    relevance = item.score
    is_question = query.intent is Intent.EXPLAIN
    if query.name is not None and any(symbol["name"] == query.name for symbol in row["symbols"] or ()):
        item = item.plus("definition", weights.definition * best)
    is_document = row["source_type"] in _DOCUMENTS
    if not is_question:
        item = item.plus("path", item.score * weights.path * _named(query, row, wording))
    if is_document:
        penalized = 1.0 if row["source_type"] in query.wanted else _reduce_penalty(among, alone)
        worth = _answer_factor(row, weights, wording) if is_question else penalized
        item = item.plus("document", item.score * (worth - 1))
        item = item.plus("heading", relevance * weights.heading * answers)
    if _is_unasked_test(query, row):
        item = item.plus("test", item.score * (_reduce_penalty(weights.test, alone) - 1))
    return item


def _named(query: Query, row: Mapping[str, Any], wording: Wording) -> float:
    """Return how far a query names the file of a chunk: 0 to 1. Sentences often contain a document's name by chance."""
    path, named = row["path"], name_overlap(row["path"], tuple(wording.shares)) ** _NAME_EXPONENT
    is_by_chance = (
        row["source_type"] in _DOCUMENTS and query.intent in _SENTENCES and not contains_file_name(path, query.terms)
    )
    return _CHANCE_FACTOR * named if is_by_chance else named


def _is_unasked_test(query: Query, row: Mapping[str, Any]) -> bool:
    return bool(row["source_type"] == "test" not in query.wanted)


def _penalty_reductions(
    query: Query, rows: Mapping[str, Mapping[str, Any]], weights: Weights, wording: Wording
) -> dict[str, float]:
    """Return how far the penalty of each test or document is reduced: it has query words that no code has (0 to 1).

    Some facts are stated only in a test.
    """
    if not weights.alone:
        return {}
    penalized = {
        chunk_id: wording.in_chunk(row)
        for chunk_id, row in rows.items()
        if row["source_type"] in _DOCUMENTS or _is_unasked_test(query, row)
    }
    if not penalized:
        return {}
    best_share = max(
        (wording.in_chunk(row) for chunk_id, row in rows.items() if chunk_id not in penalized), default=0.0
    )
    return {chunk_id: min(1.0, weights.alone * max(0.0, share - best_share)) for chunk_id, share in penalized.items()}


def _reduce_penalty(worth: float, alone: float) -> float:
    """Return the factor of a penalized chunk with its penalty reduced."""
    return worth + max(0.0, 1 - worth) * alone


def _boost_best_of_files(ranked: Sequence[Scored], files: Mapping[str, object], weights: Weights) -> list[Scored]:
    """Boost the best chunk of each file by the total score of the chunks found in that file."""
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


def _demote_repeats(
    ranked: Sequence[Scored], files: Mapping[str, object], answers: Mapping[str, float], top_k: int, repeat: float
) -> Iterator[Scored]:
    """Yield chunks best first, with ties in the order found; further chunks of a file are penalized or dropped.

    The penalty shrinks the better a chunk's heading matches the query: an FAQ page answers many questions.
    """
    shown: dict[object, int] = defaultdict(int)
    heap = [(-item.score, position, 0, item) for position, item in enumerate(ranked)]
    heapq.heapify(heap)
    while heap and sum(shown.values()) < top_k:
        score, position, expected, item = heapq.heappop(heap)
        repeats = shown[files[item.chunk_id]]
        if repeats and not repeat:
            continue
        if expected < repeats:  # another chunk of the file came first, so apply the larger penalty and requeue
            penalty = (1 - repeat**repeats) * (1 - answers[item.chunk_id])
            heapq.heappush(heap, (-item.score * (1 - penalty), position, repeats, item))
            continue
        shown[files[item.chunk_id]] += 1
        yield item.plus("repeat", -score - item.score)


def name_overlap(path: str, query: tuple[str, ...]) -> float:
    """Return the share of the words in a file's name that a query contains, as stems: 0 to 1.

    Words match in any inflected form, and if one is a prefix of the other.
    """
    words = _words(_name(path))
    return sum(_matches_word(word, query) for word in words) / len(words) if words else 0.0


def contains_file_name(path: str, terms_of_query: Collection[str]) -> bool:
    """Return whether a query, given as terms, contains the file name with its extension, as in `README.md`."""
    return _terms(path.rpartition("/")[2]).issubset(terms_of_query)


def _name(path: str) -> str:
    """Return the name of a file without its extension, or the name of its folder if the file represents it."""
    folder, _, file = path.rpartition("/")
    name = file.rpartition(".")[0] or file
    stands_for_folder = name.split(".", maxsplit=1)[0].strip("_").lower() in FOLDER_NAMES
    return folder.rpartition("/")[2] if folder and stands_for_folder else name


@lru_cache(maxsize=1 << 16)
def _terms(name: str) -> frozenset[str]:
    return frozenset(terms(name))


@lru_cache(maxsize=1 << 16)
def _words(name: str) -> frozenset[str]:
    return frozenset(stems(parts(name)))


def _matches_word(word: str, query: tuple[str, ...]) -> bool:
    """Return whether a word is in the query, or one is a prefix of the other."""
    if word in query:
        return True
    prefixes, lines = _prefix_words(query)
    return len(word) >= _MIN_PREFIX and (word.startswith(prefixes) or f"\n{word}" in lines)


@lru_cache(maxsize=64)  # called for each file that a query finds
def _prefix_words(words: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Return the words long enough for prefix matching, and a text with one of them per line."""
    prefixes = tuple(word for word in words if len(word) >= _MIN_PREFIX)
    return prefixes, "".join(f"\n{word}" for word in prefixes)


@spanned("fuse")
def fuse(
    rankings: Mapping[str, Sequence[tuple[str, float]]],
    shares: Mapping[str, float],
    limit: int,
    weights: Weights,
    most: int | None = None,
) -> list[Scored]:
    """Rank by the weighted sum over retrievers; ties are ordered by id.

    Each retriever contributes its reciprocal rank (Cormack, Clarke and Büttcher, SIGIR 2009), and the score as a
    fraction of its best score. With ranks only, a retriever with one clear answer would count no more than one with
    fifty similar results.

    If a retriever returned as many chunks as requested, it may have omitted chunks as good as its last one. Such
    chunks therefore get the score of the last one.

    Args:
        rankings: ids and scores of each retriever, best first.
        shares: weight of each retriever; only their ratios matter.
        limit: number of chunks requested from each retriever.
        weights: `score` sets the weight of the score relative to the reciprocal rank.
        most: maximum number of chunks; None for all.
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
    """The contribution of a retriever to each chunk that it found, and to all others."""

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
