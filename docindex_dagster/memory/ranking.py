"""Ranking what was uttered in a domain: BM25 over each chunk with those around it in its session, and cosines.

A sentence of a talk is short, and names what it is about where the sentences before do. So a chunk has, besides its
own terms, a share of those of its neighbours. One index in memory holds all chunks of a domain, since a score must not
depend on which of them are in the stores and which in the log alone. All statistics are taken at a search, over the
chunks that are visible to it: what was removed, or was uttered later than what is asked for, leaves no trace in a
score. `python -m benchmarks.locomo` chose the weights, and measures the speed.
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

# The first row stands for the neighbour that a chunk does not have: it has no terms, and is its own neighbour.
_NOBODY = 0
_NEVER = np.iinfo(np.int64).max  # the time of a row without a chunk
_ROW = np.dtype([("at", np.int64), ("length", np.int64), ("role", np.int64)])
_EMPTY = (_NEVER, 0, 0)
_DAY = 24 * 60 * 60 * 1e6  # in microseconds


@dataclass(frozen=True, slots=True)
class Utterance:
    """A chunk of a message, as the index takes it."""

    chunk_id: str
    session: str
    order: _Order  # time in microseconds since 1970, id of the message, number of the chunk in it
    role: str
    tool: str
    text: str
    start_line: int = 1  # of the message
    end_line: int = 1

    @property
    def place(self) -> tuple[_Order, str]:
        """Where it is in the talk; the id decides where two would be at the same place."""
        return self.order, self.chunk_id


_NOTHING = Utterance("", "", (0, "", 0), "", "", "")  # of a row without a chunk


@dataclass(frozen=True, slots=True)
class TalkWeights:
    """What decides the order of chunks; chosen on half of LoCoMo's conversations."""

    vector: float = 0.1  # how much cosines count; BM25 counts the rest
    context: int = 2  # how many chunks on either side in the session count
    share: float = 0.6  # how much each step away leaves of a chunk's terms
    k1: float = 1.2
    b: float = 0.5
    decay: float = 0.0  # how much of its score an old chunk loses at most: up to 0.1
    half_life_days: float = 365.0  # until it has lost half of that


TALK_WEIGHTS = TalkWeights()


@dataclass(frozen=True, slots=True)
class _Context:
    """For each row its neighbours, itself among them: the share with which each counts, and its row."""

    neighbours: list[tuple[float, _Positions]]

    def sums(self, own: _Floats) -> _Floats:
        """Of each row's own value and its neighbours' shares; in a fixed order, so that equal rows have equal sums."""
        whole = np.zeros_like(own)
        for share, rows in self.neighbours:
            whole += share * own[rows]
        return whole

    def total(self, own: _Floats, of: _Mask) -> float:
        """Of the sums of some rows, where values are whole numbers: rounded alike in whatever order the rows are."""
        return sum(share * float(own[rows][of].sum()) for share, rows in self.neighbours)


class TalkIndex:
    """The chunks of a domain in memory, and their search.

    Whatever the order in which chunks are added and removed, the answers are those of an index that is built from what
    is left. It takes about 2.5 KB a chunk with vectors of 256 values. It is not safe for threads: who adds, removes or
    searches holds one lock.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._clear()

    def _clear(self) -> None:
        self._rows = np.array([_EMPTY], _ROW)
        self._vectors = np.zeros((1, self.dimension), np.float32)
        self._uttered: list[Utterance] = [_NOTHING]  # of each row
        self._postings: dict[str, array[int]] = {}  # of a stem: rows and frequencies, in turns
        self._numbers: dict[str, int] = {}  # the row of a chunk
        self._sessions: dict[str, list[int]] = {}  # the rows of a session, in its order
        self._roles: dict[str, int] = {}
        self._links: NDArray[np.int64] | None = None  # of each row that before and that after it in its session

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, chunk_id: object) -> bool:
        return chunk_id in self._numbers

    def __getitem__(self, chunk_id: str) -> Utterance:
        return self._uttered[self._numbers[chunk_id]]

    def add(self, utterances: Sequence[Utterance], vectors: NDArray[np.float16 | np.float32]) -> None:
        """Take chunks in; those that are there already stay as they are.

        Args:
            utterances: in any order.
            vectors: a row for each of them, float16 or float32: shape (utterances, dimension).
        """
        shape = (len(utterances), self._vectors.shape[1])
        if vectors.shape != shape:
            raise ValueError(
                f"chunks with vectors of shape {vectors.shape}, not {shape}: embed each by the index's model"
            )
        units = _units(vectors)
        for utterance, vector in zip(utterances, units, strict=True):
            if utterance.chunk_id not in self._numbers:
                self._add(utterance, vector)

    def remove(self, chunk_ids: Iterable[str]) -> None:
        """Forget chunks, if they are there."""
        for chunk_id in chunk_ids:
            if (row := self._numbers.pop(chunk_id, None)) is not None:
                session = self._sessions[self._uttered[row].session]
                session.remove(row)
                if not session:
                    del self._sessions[self._uttered[row].session]
                self._rows[row], self._vectors[row], self._uttered[row], self._links = _EMPTY, 0, _NOTHING, None
        if len(self._uttered) > 2 * (len(self._numbers) + 1):
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
        """The best chunks, best first; of equal ones the latest first.

        A score of 1 would be a chunk that has every word of the query without end, and its meaning. So scores of
        several indexes compare, as far as their texts do.

        Args:
            query: what is asked.
            vector: of the query: shape (dimension,), of any length but zero; None where words alone decide.
            top_k: how many chunks to return at most.
            sessions: only theirs.
            roles: only theirs; the neighbours of a chunk count whatever their role.
            until: the time of the last chunk that counts; the answer is the one that there was then.
            weights: of the signals.
            now: since when chunks are old, if `decay` is set; by default the time of the newest one that counts.
        """
        times = self._rows["at"][: len(self._uttered)]
        visible = times <= min(_NEVER - 1 if until is None else until, _NEVER - 1)
        chosen = visible & self._chosen(sessions, roles)
        if top_k < 1 or not chosen.any():
            return []
        part = 0.0 if vector is None else weights.vector
        signals = {"bm25": (1 - part) * self._bm25(query, visible, weights)}
        if vector is not None:
            signals["vector"] = part * self._cosines(vector)
        score = sum(signals.values(), np.zeros(len(times)))
        if weights.decay:
            newest = int(times[visible].max()) if now is None else now
            signals["recency"] = -weights.decay * score * _faded(newest - times, weights.half_life_days)
            score += signals["recency"]
        return [
            Scored.of(self._uttered[row].chunk_id, [Signal(name, float(part[row])) for name, part in signals.items()])
            for row in self._best(score, chosen, top_k)
        ]

    def _add(self, utterance: Utterance, vector: NDArray[np.float32]) -> None:
        row = len(self._uttered)
        if row == len(self._rows):
            self._rows, self._vectors = _doubled(self._rows), _doubled(self._vectors)
        # The name of a tool is that of a speaker: who asks what a tool answered names it.
        counts = Counter(stems([*terms(utterance.tool), *terms(utterance.text)]))
        for stem, count in counts.items():
            self._postings.setdefault(stem, array("i")).extend((row, count))
        role = self._roles.setdefault(utterance.role, len(self._roles))
        self._rows[row] = (utterance.order[0], counts.total(), role)
        self._vectors[row] = vector
        self._uttered.append(utterance)
        self._numbers[utterance.chunk_id] = row
        insort(self._sessions.setdefault(utterance.session, []), row, key=lambda each: self._uttered[each].place)
        self._links = None

    def _compact(self) -> None:
        """Build the index anew from the rows in use, so that there are no others."""
        kept = [(self._uttered[row], self._vectors[row]) for row in self._numbers.values()]
        self._clear()
        for utterance, vector in kept:
            self._add(utterance, vector)

    def _chosen(self, sessions: Collection[str] | None, roles: Collection[str] | None) -> _Mask:
        """Which rows are of some sessions and roles: shape (rows,)."""
        chosen = np.ones(len(self._uttered), np.bool_)
        if sessions is not None:
            chosen[:] = False
            for session in sessions:
                chosen[self._sessions.get(session, [])] = True
        if roles is not None:
            chosen &= np.isin(
                self._rows["role"][: len(chosen)], [self._roles[role] for role in roles if role in self._roles]
            )
        return chosen

    def _context(self, weights: TalkWeights) -> _Context:
        """The neighbours of each row, the further the less."""
        if self._links is None:
            talk = np.array([*chain.from_iterable((_NOBODY, *rows) for rows in self._sessions.values()), _NOBODY])
            self._links = np.zeros((2, len(self._uttered)), np.int64)
            self._links[0, talk[1:]], self._links[1, talk[:-1]] = talk[:-1], talk[1:]
            self._links[:, _NOBODY] = _NOBODY
        neighbours = [(1.0, np.arange(len(self._uttered)))]
        for links in self._links:
            rows = links
            for step in range(1, weights.context + 1):
                neighbours.append((weights.share**step, rows))
                rows = links[rows]
        return _Context(neighbours)

    def _frequencies(self, stem: str, visible: _Mask) -> _Floats:
        """How often the visible chunks have a stem: shape (rows,)."""
        own = np.zeros(len(visible))
        rows, counts = np.array(self._postings.get(stem, ()), np.int64).reshape(-1, 2).T
        own[rows] = counts
        return own * visible

    def _bm25(self, query: str, visible: _Mask, weights: TalkWeights) -> _Floats:
        """Of each row as a share of the most that there could be: 0 to 1, shape (rows,)."""
        context = self._context(weights)
        lengths = self._rows["length"][: len(visible)] * visible.astype(np.float64)
        count = int(visible.sum())
        average = context.total(lengths, visible) / count or 1.0
        norms = weights.k1 * (1 - weights.b + weights.b * context.sums(lengths) / average)
        scores, most = np.zeros(len(visible)), 0.0
        for stem in dict.fromkeys(stems(understand(query).terms)):
            whole = context.sums(self._frequencies(stem, visible)) * visible
            rows = np.flatnonzero(whole)
            idf, frequencies = math.log(1 + (count - len(rows) + 0.5) / (len(rows) + 0.5)), whole[rows]
            scores[rows] += idf * (weights.k1 + 1) * frequencies / (frequencies + norms[rows])
            most += idf * (weights.k1 + 1)
        return scores / (most or 1.0)

    def _cosines(self, vector: NDArray[np.float32]) -> _Floats:
        """Between the query and each row, 0 for those that lead away: shape (rows,)."""
        # Not `@`: the threads of BLAS wait for each other in a loop, 8 ms and more where other processes are at work.
        cosines: NDArray[np.float32] = np.vecdot(self._vectors[: len(self._uttered)], _units(vector[np.newaxis])[0])
        return np.maximum(cosines, 0, dtype=np.float64)

    def _best(self, scores: _Floats, chosen: _Mask, top_k: int) -> list[int]:
        """The rows with the best scores, best first, of equal ones the latest first."""
        found = np.flatnonzero(chosen & (scores > 0))
        if len(found) > top_k:
            least = np.partition(scores[found], -top_k)[-top_k]
            found = found[scores[found] >= least]
        return sorted(found.tolist(), key=lambda row: (scores[row], self._uttered[row].place), reverse=True)[:top_k]


def _faded(ages: NDArray[np.int64], half_life_days: float) -> _Floats:
    """How much of what an old chunk may lose it has lost, by its age in microseconds: 0 to 1, shape (ages,)."""
    faded: _Floats = 1 - np.exp2(-np.maximum(ages, 0) / (half_life_days * _DAY))
    return faded


def _units(vectors: NDArray[np.float16 | np.float32]) -> NDArray[np.float32]:
    """Vectors of unit length in the same directions, zeros as they are: shape (n, dimension)."""
    units: NDArray[np.float32] = vectors.astype(np.float32)
    lengths = np.linalg.norm(units, axis=1, keepdims=True)
    units /= np.where(lengths > 0, lengths, 1)
    return units


def _doubled(rows: NDArray[Any]) -> NDArray[Any]:
    """Room for twice as many rows, with those that are there."""
    return np.concatenate([rows, np.zeros_like(rows)])
