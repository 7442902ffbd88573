"""Answers to all questions with several configurations."""

import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.files import TOP
from benchmarks.pipeline import Indexed, index
from benchmarks.quality.plain_bm25 import plain_bm25
from benchmarks.quality.questions import Place, Question, Scores
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Granularity, Mode
from docindex_dagster.search.reranking.protocol import Reranker
from docindex_dagster.search.reranking.providers import MarginalRelevance
from docindex_dagster.search.weights import WEIGHTS, Weights
from docindex_dagster.stores.reader import Reader

PLAIN = "plain bm25"
HYBRID = "hybrid"
SAMPLES = 10_000

# The value that disables each signal.
NEUTRAL: dict[str, float] = {
    "symbols": 0,
    "headings": 0,
    "path_terms": 0,
    "vector": 0,
    "score": 0,
    "definition": 0,
    "path": 0,
    "test": 1,
    "alone": 0,
    "stray": 1,
    "fitting": 1,
    "answer": 1,
    "heading": 0,
    "file": 0,
    "repeat": 1,
}
GRID: dict[str, tuple[float, ...]] = {
    "symbols": (0.5, 1.0),
    "headings": (0.5, 1.5),
    "path_terms": (0.1, 0.5),
    "vector": (0.2, 0.3, 0.4, 0.5),
    "score": (2.0, 8.0),
    "definition": (0.25, 1.0),
    "path": (0.2, 0.4),
    "test": (0.2, 0.5),
    "alone": (1.0, 4.0),
    "stray": (0.5, 0.7),
    "fitting": (1.1, 1.4),
    "answer": (1.5, 2.5),
    "heading": (0.25, 1.0),
    "file": (0.1, 0.3),
    "repeat": (0.8, 0.95),
}
GRAPH = (0.1, 0.15, 0.2, 0.3)


@dataclass(frozen=True, slots=True)
class Variation:
    """A search configuration."""

    name: str
    mode: Mode = Mode.HYBRID
    weights: Weights = WEIGHTS
    granularity: Granularity = Granularity.CHUNK
    reranker: Reranker | None = None


def modes() -> list[Variation]:
    """Return the default configuration first, then its parts alone."""
    unsignalled = Weights(**NEUTRAL)
    return [
        Variation(HYBRID),
        Variation("bm25", Mode.BM25),
        Variation("vector", Mode.VECTOR),
        Variation("graph", Mode.GRAPH),
        Variation("bm25, no signals", Mode.BM25, unsignalled),
        Variation("vectors, no signals", Mode.VECTOR, replace(unsignalled, vector=1)),
        Variation("hybrid by file", granularity=Granularity.FILE),
        Variation("hybrid with mmr", reranker=MarginalRelevance()),
    ]


def without_each() -> list[Variation]:
    """Return hybrid without each signal; both weights of unrequested documents are disabled together."""
    both = {name: NEUTRAL[name] for name in ("stray", "fitting")}
    taken_out = {"document": both, **{name: {name: value} for name, value in NEUTRAL.items()}}
    return [Variation(f"- {name}", weights=replace(WEIGHTS, **values)) for name, values in taken_out.items()]


def with_graph() -> list[Variation]:
    """Return hybrid with the graph boost, which is off by default."""
    return [Variation(f"+ graph {weight:g}", weights=replace(WEIGHTS, graph=weight)) for weight in GRAPH]


def with_others() -> list[Variation]:
    """Return hybrid with other values of each weight."""
    return [
        Variation(f"{name} = {value:g}", weights=replace(WEIGHTS, **{name: value}))
        for name, values in GRID.items()
        for value in values
    ]


Build = Callable[[Path, Path], Indexed]
"""Function that indexes the first folder into the second."""


def evaluate(
    corpora: Path, questions: Sequence[Question], variations: Sequence[Variation], build: Build = index
) -> dict[str, list[Scores]]:
    """Return the scores of all questions in order, for each configuration and for plain BM25."""
    found: dict[str, dict[int, Scores]] = defaultdict(dict)
    by_repository = defaultdict(list)
    for position, question in enumerate(questions):
        by_repository[question.repository].append((position, question))
    for repository, asked in by_repository.items():
        with tempfile.TemporaryDirectory() as home:
            ways = _ways(build(corpora / repository, Path(home)).reader, variations)
            for name, answer in ways.items():
                for position, question in asked:
                    found[name][position] = question.score(answer(question.text, TOP))
    return {name: [scores[position] for position in range(len(questions))] for name, scores in found.items()}


def _ways(reader: Reader, variations: Sequence[Variation]) -> Mapping[str, Callable[[str, int], Sequence[Place]]]:
    ways: dict[str, Callable[[str, int], Sequence[Place]]] = {
        variation.name: partial(_answer, reader, StaticEmbedder(), variation) for variation in variations
    }
    return ways | {PLAIN: plain_bm25(reader)}


def _answer(reader: Reader, embedder: StaticEmbedder, variation: Variation, question: str, top: int) -> Sequence[Place]:
    return search(
        reader,
        question,
        lambda: embedder,
        mode=variation.mode,
        granularity=variation.granularity,
        top_k=top,
        weights=variation.weights,
        reranker=variation.reranker,
    )


def interval(differences: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of the mean of paired differences, by bootstrap."""
    chosen = np.random.default_rng(0).integers(0, len(differences), (SAMPLES, len(differences)))
    low, high = np.quantile(differences[chosen].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)
