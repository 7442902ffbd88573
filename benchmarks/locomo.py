"""Measure the recall and speed of search in conversations.

    python -m benchmarks.locomo FILE [--grid]

FILE is LoCoMo's `locomo10.json`: ten conversations of two people over months, with questions and the turns that are
their evidence. Its license (CC BY-NC) forbids commercial use, so the repository does not include it; the benchmark
prints its digest. Each question is asked within its conversation. Recall is the share of its evidence among the first
turns, or of the evidence's sessions among the first sessions, averaged over questions; questions without evidence are
excluded. Turns are indexed with their speaker and, if turns are searched, with the caption of their picture. A session
ranks as its best turn. Intervals are 95 % by bootstrap over questions. Weights were chosen on the first five
conversations; the other five are held out.

Then the speed is measured: 10,000 chunks are loaded, 5,000 added one by one, and the questions searched. `--grid`
prints the recall with other weights instead.
"""

import argparse
import hashlib
import json
import math
import os
import random
import re
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.evaluate import interval
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.memory.ranking import TALK_WEIGHTS, TalkIndex, TalkWeights, Utterance
from docindex_dagster.search.ranking import fuse
from docindex_dagster.search.weights import WEIGHTS

CHOSEN_ON = 5  # of the conversations
_TURN = re.compile(r"D:?(\d+):(\d+)")
_WHEN = "%I:%M %p on %d %B, %Y"
_COLUMNS = ("turns R@5", "R@10", "sessions R@5", "R@10")
_DEPTHS = (5, 10)
_LOADED, _ADDED, _SEARCHES = 10_000, 5_000, 500
_TURNS_A_CHUNK = 6
_CHUNKS_A_SESSION = 50
# The defaults of Tantivy and most others.
_ALONE = replace(TALK_WEIGHTS, context=0, vector=0.0, k1=1.2, b=0.75)

Place = tuple[int, int]
"""A session number, and the number of a turn in it."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A speaker's turn, with the caption of its picture."""

    place: Place
    at: int  # microseconds since 1970
    text: str
    caption: str

    def written(self, *, with_caption: bool) -> str:
        """Return the indexed text."""
        return f"{self.text} {self.caption}".strip() if with_caption else self.text


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the turns that are its evidence."""

    text: str
    evidence: frozenset[Place]


@dataclass(frozen=True, slots=True)
class Conversation:
    """The turns of two people, and questions about them."""

    turns: list[Turn]
    questions: list[Question]


def conversations(file: Path) -> list[Conversation]:
    """Read LoCoMo's file."""
    return [
        Conversation(list(turns(one["conversation"])), list(questions(one["qa"])))
        for one in json.loads(file.read_bytes())
    ]


def turns(conversation: Mapping[str, Any]) -> Iterator[Turn]:
    """Yield the turns of a conversation in order."""
    for session in sorted(int(key[8:]) for key in conversation if re.fullmatch(r"session_\d+", key)):
        began = datetime.strptime(conversation[f"session_{session}_date_time"], _WHEN).replace(tzinfo=UTC)
        at = int(began.timestamp() * 1e6)
        for turn in conversation[f"session_{session}"]:
            [place] = places(turn["dia_id"])
            yield Turn(place, at, f"{turn['speaker']}: {turn['text']}", turn.get("blip_caption", ""))


def questions(rows: Sequence[Mapping[str, Any]]) -> Iterator[Question]:
    """Yield the questions with evidence; some name several turns in one string, or a missing turn."""
    for row in rows:
        if evidence := frozenset(place for name in row["evidence"] for place in places(name)):
            yield Question(row["question"], evidence)


def places(name: str) -> list[Place]:
    """Return the turns that a text names, such as D1:3."""
    return [(int(session), int(number)) for session, number in _TURN.findall(name)]


@cache
def embedder() -> StaticEmbedder:
    return StaticEmbedder()


class Talk:
    """A searchable conversation."""

    def __init__(self, conversation: Conversation, *, with_captions: bool) -> None:
        self.questions = conversation.questions
        self.order = [turn.place for turn in conversation.turns]
        self.texts = [turn.written(with_caption=with_captions) for turn in conversation.turns]
        self.vectors = embedder().embed_documents([question.text for question in self.questions])
        self.index = TalkIndex(embedder().dimension)
        self.index.add(
            [
                Utterance(str(number), str(turn.place[0]), (turn.at, "", number), "user", "", text)
                for number, (turn, text) in enumerate(zip(conversation.turns, self.texts, strict=True))
            ],
            embedder().embed_documents(self.texts),
        )

    @cached_property
    def sessions(self) -> dict[int, str]:
        """The text of each session."""
        found: dict[int, list[str]] = {}
        for (session, _), text in zip(self.order, self.texts, strict=True):
            found.setdefault(session, []).append(text)
        return {session: " ".join(texts) for session, texts in found.items()}

    def search(self, number: int, weights: TalkWeights) -> list[tuple[str, float]]:
        """Return all turns with a score, best first."""
        hits = self.index.search(
            self.questions[number].text, self.vectors[number], top_k=len(self.order), weights=weights
        )
        return [(hit.chunk_id, hit.score) for hit in hits]


@dataclass(frozen=True, slots=True)
class Way:
    """A ranking method: turns and sessions for a question number, best first."""

    name: str
    turns: Callable[[Talk, int], Sequence[Place]]
    sessions: Callable[[Talk, int], Sequence[int]]

    @classmethod
    def of(cls, name: str, rank: Callable[[Talk, int], list[tuple[str, float]]]) -> "Way":
        """Create a method from a ranking of turns; a session ranks as its best turn."""

        def ranked(talk: Talk, number: int) -> list[Place]:
            return [talk.order[int(chunk_id)] for chunk_id, _ in rank(talk, number)]

        return cls(
            name, ranked, lambda talk, number: list(dict.fromkeys(session for session, _ in ranked(talk, number)))
        )

    @classmethod
    def weighing(cls, name: str, weights: TalkWeights) -> "Way":
        """Rank as docindex does, with the given weights."""
        return cls.of(name, lambda talk, number: talk.search(number, weights))


def hybrid(talk: Talk, number: int) -> list[tuple[str, float]]:
    """Rank as for code: BM25 and cosines of single turns, fused with the weights for code."""
    rankings = {
        "bm25": talk.search(number, _ALONE),
        "vector": talk.search(number, replace(_ALONE, vector=1.0)),
    }
    shares = {"bm25": 1 - WEIGHTS.vector, "vector": WEIGHTS.vector}
    return [(hit.chunk_id, hit.score) for hit in fuse(rankings, shares, len(talk.order), WEIGHTS)]


@cache
def okapi(texts: tuple[str, ...]) -> Callable[[str], NDArray[np.intp]]:
    """Rank texts with BM25Okapi of rank_bm25 over lowercase words."""
    counts = [Counter(re.findall(r"\w+", text.lower())) for text in texts]
    having = Counter(word for count in counts for word in count)
    idf = {word: math.log(len(texts) - n + 0.5) - math.log(n + 0.5) for word, n in having.items()}
    least = 0.25 * sum(idf.values()) / len(idf)
    lengths = np.array([count.total() for count in counts])
    norms = 1.5 * (0.25 + 0.75 * lengths / lengths.mean())

    def search(query: str) -> NDArray[np.intp]:
        scores = np.zeros(len(texts))
        for word in re.findall(r"\w+", query.lower()):
            frequencies = np.array([count[word] for count in counts])
            weight = idf.get(word, 0.0)
            scores += (weight if weight >= 0 else least) * frequencies * 2.5 / (frequencies + norms)
        return np.argsort(-scores, kind="stable")

    return search


def okapi_turns(talk: Talk, number: int) -> list[Place]:
    return [talk.order[at] for at in okapi(tuple(talk.texts))(talk.questions[number].text)]


def okapi_sessions(talk: Talk, number: int) -> list[int]:
    sessions = [*talk.sessions]
    return [sessions[at] for at in okapi(tuple(talk.sessions.values()))(talk.questions[number].text)]


WAYS = (
    Way("BM25 over words; a session as one text", okapi_turns, okapi_sessions),
    Way.weighing("BM25 over stems, single turns", _ALONE),
    Way.of("hybrid as for code, single turns", hybrid),
    Way.weighing("docindex without vectors", replace(TALK_WEIGHTS, vector=0.0)),
    Way.weighing("docindex", TALK_WEIGHTS),
)


def grid() -> Iterator[Way]:
    """Print the recall with other weights, one at a time."""
    others: dict[str, tuple[float, ...]] = {
        "context": (0, 1, 3),
        "share": (0.3, 0.5, 0.7, 1.0),
        "vector": (0.0, 0.05, 0.2, 0.3),
        "k1": (0.9, 1.5),
        "b": (0.3, 0.75),
    }
    for name, values in others.items():
        for value in values:
            yield Way.weighing(f"{name} {value}", replace(TALK_WEIGHTS, **{name: value}))  # type: ignore[arg-type]
    for days in (30.0, 365.0):
        weights = replace(TALK_WEIGHTS, decay=0.1, half_life_days=days)
        yield Way.weighing(f"decay 0.1, half-life of {days:.0f} days", weights)


def found(evidence: frozenset[Any], ranking: Sequence[Any]) -> list[float]:
    """Return the shares of the evidence among the first results."""
    return [len(evidence.intersection(ranking[:depth])) / len(evidence) for depth in _DEPTHS]


def recall(way: Way, of_turns: Talk, of_sessions: Talk) -> Iterator[list[float]]:
    """Return a row for each question of a conversation, with `_COLUMNS`."""
    for number, question in enumerate(of_turns.questions):
        sessions = frozenset(session for session, _ in question.evidence)
        yield [
            *found(question.evidence, way.turns(of_turns, number)),
            *found(sessions, way.sessions(of_sessions, number)),
        ]


def row(label: str, rows: NDArray[np.float64]) -> str:
    """Format a row of the table: means with intervals."""
    cells = []
    for column in rows.T:
        low, high = interval(column)
        cells.append(f"{column.mean():>7.1%} {f'({100 * low:.1f} to {100 * high:.1f})':<15}")
    return f"{label:<52}{len(rows):>10}  {''.join(cells)}"


def measuring(ways: Sequence[Way], talks: Sequence[tuple[Talk, Talk]]) -> None:
    """Print the recall of each method."""
    print(f"{'':<52}{'questions':>10}  {''.join(f'{column:<23}' for column in _COLUMNS)}")
    for way in ways:
        parts = [np.array([*recall(way, *pair)]) for pair in talks]
        for label, chosen in (
            ("chosen on", parts[:CHOSEN_ON]),
            ("held out", parts[CHOSEN_ON:]),
            ("all", parts),
        ):
            print(row(f"{way.name}: {label}", np.concatenate(chosen)), flush=True)


def chunks(texts: Sequence[str], count: int) -> list[Utterance]:
    """Return chunks of talk in sessions of several turns."""
    chance = random.Random(0)
    return [
        Utterance(
            f"chunk{number}",
            f"session{number // _CHUNKS_A_SESSION}",
            (number, f"message{number}", 0),
            "user",
            "",
            " ".join(chance.choices(texts, k=chance.randint(1, _TURNS_A_CHUNK))),
        )
        for number in range(count)
    ]


@dataclass(frozen=True, slots=True)
class Times:
    """Durations in seconds: wall-clock and CPU time."""

    clock: float
    cpu: float


def timed(act: Callable[[], object]) -> Times:
    """Measure how long a function takes."""
    started, worked = time.perf_counter(), time.thread_time()
    act()
    return Times(time.perf_counter() - started, time.thread_time() - worked)


def shown(what: str, times: Sequence[Times]) -> None:
    """Print the median, two percentiles and the maximum in milliseconds."""
    clock, cpu = (
        " ".join(f"{1000 * value:7.2f}" for value in np.quantile(seconds, [0.5, 0.95, 0.99, 1.0]))
        for seconds in ([one.clock for one in times], [one.cpu for one in times])
    )
    print(f"{what:<36} {clock}   {cpu}")


def speed(texts: Sequence[str], asked: Sequence[str]) -> None:
    """Print how long loading, adding and searching take."""
    uttered = chunks(texts, _LOADED + _ADDED)
    vectors = embedder().embed_documents([one.text for one in uttered]).astype(np.float16)
    index = TalkIndex(embedder().dimension)
    words = np.median([len(one.text.split()) for one in uttered])
    head = "    p50     p95     p99     max"
    print(f"\nchunks of {words:.0f} words (median); system load {os.getloadavg()[0]:.1f}")
    print(f"{'ms':<36} {head}   CPU:{head[4:]}")
    shown(f"loading {_LOADED:,}", [timed(lambda: index.add(uttered[:_LOADED], vectors[:_LOADED]))])
    ones = [slice(at, at + 1) for at in range(_LOADED, _LOADED + _ADDED)]
    shown(f"adding one of {_ADDED:,}", [timed(partial(index.add, uttered[one], vectors[one])) for one in ones])
    queries = random.Random(0).sample(asked, _SEARCHES)
    pairs = [*zip(queries, embedder().embed_documents(queries), strict=True)]
    searches = {
        "all": partial(index.search, top_k=10),
        "two sessions": partial(index.search, top_k=10, sessions=["session3", "session7"]),
        "chunks from the load": partial(index.search, top_k=10, until=_LOADED),
    }
    for what, search in searches.items():
        shown(f"searching {what}", [timed(partial(search, *pair)) for pair in pairs])
    for count in (1, 2_000, 6_000):
        gone = [one.chunk_id for one in uttered if one.chunk_id in index][:count]
        shown(f"removing {count:,}", [timed(partial(index.remove, gone))])


def memory(texts: Sequence[str]) -> None:
    """Print the memory per chunk."""
    uttered = chunks(texts, _LOADED)
    vectors = embedder().embed_documents([one.text for one in uttered]).astype(np.float16)
    TalkIndex(1).add(uttered, vectors[:, :1])  # cached words do not belong to the index
    tracemalloc.start()
    index = TalkIndex(embedder().dimension)
    index.add(uttered, vectors)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"memory: {taken / len(index):,.0f} bytes per chunk of {_LOADED:,}, without its id")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--grid", action="store_true")
    arguments = parser.parse_args()
    print(f"sha256 {hashlib.sha256(arguments.file.read_bytes()).hexdigest()}")
    read = conversations(arguments.file)
    talks = [(Talk(one, with_captions=True), Talk(one, with_captions=False)) for one in read]
    measuring([*grid()] if arguments.grid else WAYS, talks)
    if not arguments.grid:
        texts = [text for _, talk in talks for text in talk.texts]
        speed(texts, [question.text for one in read for question in one.questions])
        memory(texts)


if __name__ == "__main__":
    main()
