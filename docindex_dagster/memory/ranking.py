"""Ranking of utterances in a domain: BM25 over each chunk and its neighbors in the session, plus cosine similarity.

Sentences in conversations are short, and their topic is often named only by earlier sentences. So a chunk has a share
of its neighbors' terms in addition to its own. One in-memory index holds all chunks of a domain, because scores must
not depend on which of them are in the stores and which only in the log. Statistics are computed for each search, over
the chunks visible to it, so removed or later chunks never affect a score. `python -m benchmarks.locomo` selected the
weights, and measures the speed.
"""

import math
from array import array
from bisect import insort
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from docindex_dagster.search.model import Scored, Signal
from docindex_dagster.search.query import understand
from docindex_dagster.stores.analysis import stems, terms

_Order = tuple[int, str, int]
_Floats = NDArray[np.float64]
_Mask = NDArray[np.bool_]
_Positions = NDArray[np.int64]

# The first row represents a missing neighbor: it has no terms, and is its own neighbor.
_NO_NEIGHBOR = 0
_NEVER = np.iinfo(np.int64).max  # the time of a row without a chunk
_ROW = np.dtype([("at", np.int64), ("length", np.int64), ("role", np.int64)])
_EMPTY = (_NEVER, 0, 0)
_DAY = 24 * 60 * 60 * 1e6  # in microseconds


@dataclass(frozen=True, slots=True)
class Utterance:
    """Chunk of a message, as input to the index."""

    chunk_id: str
    session: str
    order: _Order  # microseconds since the epoch, id of the message, number of the chunk in it
    role: str
    tool: str
    text: str
    start_line: int = 1  # in the message
    end_line: int = 1

    @property
    def place(self) -> tuple[_Order, str]:
        """Position in the conversation; the id breaks ties."""
        return self.order, self.chunk_id


_NOTHING = Utterance("", "", (0, "", 0), "", "", "")  # for a row without a chunk


@dataclass(frozen=True, slots=True)
class TalkWeights:
    """Weights for ranking chunks, tuned on half of LoCoMo's conversations."""

    vector: float = 0.1  # weight of cosine similarity; the rest is BM25
    context: int = 2  # number of neighbors on each side in the session
    share: float = 0.6  # factor for a neighbor's terms, per step away
    k1: float = 1.2
    b: float = 0.5
    decay: float = 0.0  # maximum share of its score that an old chunk loses: up to 0.1
    half_life_days: float = 365.0  # age at which half of that is lost


TALK_WEIGHTS = TalkWeights()


@dataclass(frozen=True, slots=True)
class _Context:
    """Neighbors of each row, including itself: the share of each, and its row."""

    neighbors: list[tuple[float, _Positions]]

    def sums(self, own: _Floats) -> _Floats:
        """Sum each row's value and its neighbors' shares, in a fixed order, so that equal rows have equal sums."""
        totals = np.zeros_like(own)
        for share, rows in self.neighbors:
            totals += share * own[rows]
        return totals

    def total(self, own: _Floats, mask: _Mask) -> float:
        """Return the total of `sums` over some rows of integral values; the order of rows does not affect rounding."""
        return sum(share * float(own[rows][mask].sum()) for share, rows in self.neighbors)


class TalkIndex:
    """In-memory index of the chunks of a domain.

    In whatever order chunks are added and removed, results equal those of an index built from the remaining chunks. It
    takes about 2.5 KB per chunk with 256-dimensional vectors. It is not thread-safe: callers hold a lock to add,
    remove or search.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._clear()

    def _clear(self) -> None:
        self._rows = np.array([_EMPTY], _ROW)
        self._vectors = np.zeros((1, self.dimension), np.float32)
        self._utterances: list[Utterance] = [_NOTHING]  # by row
        self._postings: dict[str, array[int]] = {}  # by stem: alternating rows and frequencies
        self._row_by_chunk: dict[str, int] = {}  # rows by chunk id
        self._sessions: dict[str, list[int]] = {}  # rows by session, in order
        self._roles: dict[str, int] = {}
        self._links: NDArray[np.int64] | None = None  # previous and next row in the session, for each row

    def __len__(self) -> int:
        return len(self._row_by_chunk)

    def __contains__(self, chunk_id: object) -> bool:
        return chunk_id in self._row_by_chunk

    def __getitem__(self, chunk_id: str) -> Utterance:
        return self._utterances[self._row_by_chunk[chunk_id]]

    def add(self, utterances: Sequence[Utterance], vectors: NDArray[np.float16 | np.float32]) -> None:
        """Add chunks; existing ones are not changed.

        Args:
            utterances: The chunks, in any order.
            vectors: One row per chunk, float16 or float32: shape (utterances, dimension).
        """
        shape = (len(utterances), self._vectors.shape[1])
        if vectors.shape != shape:
            raise ValueError(
                f"expected vectors of shape {shape}, got {vectors.shape}: embed chunks with the index's model"
            )
        units = _units(vectors)
        for utterance, vector in zip(utterances, units, strict=True):
            if utterance.chunk_id not in self._row_by_chunk:
                self._add(utterance, vector)

    def remove(self, chunk_ids: Iterable[str]) -> None:
        """Remove chunks, if they exist."""
        for chunk_id in chunk_ids:
            if (row := self._row_by_chunk.pop(chunk_id, None)) is not None:
                session = self._sessions[self._utterances[row].session]
                session.remove(row)
                if not session:
                    del self._sessions[self._utterances[row].session]
                self._rows[row], self._vectors[row], self._utterances[row], self._links = _EMPTY, 0, _NOTHING, None
        if len(self._utterances) > 2 * (len(self._row_by_chunk) + 1):
            self._compact()

    def search(
        self,
        query: str,
        vector: NDArray[np.float32] | None,
        *,
        top_k: int,
        sessions: Collection[str] | None = None,
        roles: Collection[str] | None = None,
        until: int | None = None,
        weights: TalkWeights = TALK_WEIGHTS,
        now: int | None = None,
    ) -> list[Scored]:
        """Return the best chunks, best first; ties go to the latest chunk.

        A score of 1 would be a chunk with unlimited occurrences of every word of the query, and the same meaning. So
        scores of several indexes are comparable, as far as their texts are.

        Args:
            query: The text of the query.
            vector: The nonzero vector of the query: shape (dimension,); None to rank by keywords only.
            top_k: The maximum number of chunks.
            sessions: The sessions to search.
            roles: The roles to search; neighbors of a chunk count regardless of their role.
            until: The time of the last visible chunk; the result is the same as it was then.
            weights: The weights of the signals.
            now: The reference time for `decay`; by default, the time of the newest visible chunk.
        """
        times = self._rows["at"][: len(self._utterances)]
        visible = times <= min(_NEVER - 1 if until is None else until, _NEVER - 1)
        is_selected = visible & self._mask_of(sessions, roles)
        if top_k < 1 or not is_selected.any():
            return []
        vector_weight = 0.0 if vector is None else weights.vector
        signals = {"bm25": (1 - vector_weight) * self._bm25(query, visible, weights)}
        if vector is not None:
            signals["vector"] = vector_weight * self._cosines(vector)
        score = sum(signals.values(), np.zeros(len(times)))
        if weights.decay:
            newest = int(times[visible].max()) if now is None else now
            signals["recency"] = -weights.decay * score * _lost_share(newest - times, weights.half_life_days)
            score += signals["recency"]
        return [
            Scored.of(
                self._utterances[row].chunk_id, [Signal(name, float(part[row])) for name, part in signals.items()]
            )
            for row in self._best(score, is_selected, top_k)
        ]

    def _add(self, utterance: Utterance, vector: NDArray[np.float32]) -> None:
        row = len(self._utterances)
        if row == len(self._rows):
            self._rows, self._vectors = _with_double_capacity(self._rows), _with_double_capacity(self._vectors)
        # Tool names are indexed like speaker names, because users name a tool to ask about its answers.
        counts = Counter(stems([*terms(utterance.tool), *terms(utterance.text)]))
        for stem, count in counts.items():
            self._postings.setdefault(stem, array("i")).extend((row, count))
        role = self._roles.setdefault(utterance.role, len(self._roles))
        self._rows[row] = (utterance.order[0], counts.total(), role)
        self._vectors[row] = vector
        self._utterances.append(utterance)
        self._row_by_chunk[utterance.chunk_id] = row
        insort(self._sessions.setdefault(utterance.session, []), row, key=lambda each: self._utterances[each].place)
        self._links = None

    def _compact(self) -> None:
        """Rebuild the index from the rows in use, to drop all others."""
        kept = [(self._utterances[row], self._vectors[row]) for row in self._row_by_chunk.values()]
        self._clear()
        for utterance, vector in kept:
            self._add(utterance, vector)

    def _mask_of(self, sessions: Collection[str] | None, roles: Collection[str] | None) -> _Mask:
        """Return a mask of the rows from some sessions and roles: shape (rows,)."""
        is_selected = np.ones(len(self._utterances), np.bool_)
        if sessions is not None:
            is_selected[:] = False
            for session in sessions:
                is_selected[self._sessions.get(session, [])] = True
        if roles is not None:
            is_selected &= np.isin(
                self._rows["role"][: len(is_selected)], [self._roles[role] for role in roles if role in self._roles]
            )
        return is_selected

    def _context(self, weights: TalkWeights) -> _Context:
        """Return the neighbors of each row; more distant ones have smaller shares."""
        if self._links is None:
            talk = np.array(
                [*chain.from_iterable((_NO_NEIGHBOR, *rows) for rows in self._sessions.values()), _NO_NEIGHBOR]
            )
            self._links = np.zeros((2, len(self._utterances)), np.int64)
            self._links[0, talk[1:]], self._links[1, talk[:-1]] = talk[:-1], talk[1:]
            self._links[:, _NO_NEIGHBOR] = _NO_NEIGHBOR
        neighbors = [(1.0, np.arange(len(self._utterances)))]
        for links in self._links:
            rows = links
            for step in range(1, weights.context + 1):
                neighbors.append((weights.share**step, rows))
                rows = links[rows]
        return _Context(neighbors)

    def _frequencies(self, stem: str, visible: _Mask) -> _Floats:
        """Return how often visible chunks contain a stem: shape (rows,)."""
        own = np.zeros(len(visible))
        rows, counts = np.array(self._postings.get(stem, ()), np.int64).reshape(-1, 2).T
        own[rows] = counts
        return own * visible

    def _bm25(self, query: str, visible: _Mask, weights: TalkWeights) -> _Floats:
        """Return the score of each row as a share of the maximum: 0 to 1, shape (rows,)."""
        context = self._context(weights)
        lengths = self._rows["length"][: len(visible)] * visible.astype(np.float64)
        count = int(visible.sum())
        average = context.total(lengths, visible) / count or 1.0
        norms = weights.k1 * (1 - weights.b + weights.b * context.sums(lengths) / average)
        scores, most = np.zeros(len(visible)), 0.0
        for stem in dict.fromkeys(stems(understand(query).terms)):
            in_context = context.sums(self._frequencies(stem, visible)) * visible
            rows = np.flatnonzero(in_context)
            idf, frequencies = math.log(1 + (count - len(rows) + 0.5) / (len(rows) + 0.5)), in_context[rows]
            scores[rows] += idf * (weights.k1 + 1) * frequencies / (frequencies + norms[rows])
            most += idf * (weights.k1 + 1)
        return scores / (most or 1.0)

    def _cosines(self, vector: NDArray[np.float32]) -> _Floats:
        """Return the cosine similarity of each row, or 0 if negative: shape (rows,)."""
        # Not `@`, because BLAS threads busy-wait for each other: 8 ms or more if other processes are active.
        cosines: NDArray[np.float32] = np.vecdot(self._vectors[: len(self._utterances)], _units(vector[np.newaxis])[0])
        return np.maximum(cosines, 0, dtype=np.float64)

    def _best(self, scores: _Floats, is_selected: _Mask, top_k: int) -> list[int]:
        """Return the rows with the best scores, best first; ties go to the latest chunk."""
        found = np.flatnonzero(is_selected & (scores > 0))
        if len(found) > top_k:
            threshold = np.partition(scores[found], -top_k)[-top_k]
            found = found[scores[found] >= threshold]
        return sorted(found.tolist(), key=lambda row: (scores[row], self._utterances[row].place), reverse=True)[:top_k]


def _lost_share(ages: NDArray[np.int64], half_life_days: float) -> _Floats:
    """Return the lost share of `decay`, given ages in microseconds: 0 to 1, shape (ages,)."""
    lost: _Floats = 1 - np.exp2(-np.maximum(ages, 0) / (half_life_days * _DAY))
    return lost


def _units(vectors: NDArray[np.float16 | np.float32]) -> NDArray[np.float32]:
    """Normalize vectors to unit length, leaving zeros as they are: shape (n, dimension)."""
    units: NDArray[np.float32] = vectors.astype(np.float32)
    lengths = np.linalg.norm(units, axis=1, keepdims=True)
    units /= np.where(lengths > 0, lengths, 1)
    return units


def _with_double_capacity(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the rows with capacity for twice as many."""
    return np.concatenate([rows, np.zeros_like(rows)])
