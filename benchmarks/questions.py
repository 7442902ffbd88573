"""Measure whether a context holds the gold files and lines of a question.

    python -m benchmarks.questions BENCH CORPORA

BENCH has `questions/repos.json` and `questions/NAME.jsonl`; CORPORA has each repository by name at its pinned revision.
A question has gold files, which its reference answer names, and zero or more line ranges in each.

- Some gold file: the share of questions with a line of at least one gold file in the context.
- File recall: the share of a question's gold files with a line in the context, averaged over questions.
- Line recall: the share of a gold range's lines in the context, averaged over all gold ranges of all questions. A range
  of one line, as half of them are, counts as much as one of a hundred. Ranges beyond the end of their file count as not
  found.

The baseline is the seed's context of the same chunks: the twenty best by vectors alone, reduced to ten by maximal
marginal relevance. Intervals are 95 % by bootstrap over questions, each with all its ranges.
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.pipeline import index
from benchmarks.quality.evaluate import NEUTRAL, SAMPLES
from docindex_dagster.core.settings import Settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.context import Context, ContextPassage, pack
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Mode
from docindex_dagster.search.reranking.providers import MarginalRelevance
from docindex_dagster.search.service import Request, context_of
from docindex_dagster.search.weights import Weights
from docindex_dagster.stores.reader import Reader

BUDGETS = (2000, 4000, 8000, 16000)
ALL = "all"
MEASURES = ("some gold file", "file recall", "line recall")
_VECTORS_ALONE = Weights(**{**NEUTRAL, "vector": 1})
_SEED_FOUND, _SEED_TAKEN = 20, 10

Way = Callable[[Reader, str, int], Context]
"""Creates a context for a question with a token limit."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the files and lines (both ends inclusive) that the answer names."""

    text: str
    gold: Mapping[str, Sequence[tuple[int, int]]]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Question":
        """Create a question from a record of the benchmark."""
        return cls(row["question"], {path: [(a, b) for a, b in ranges] for path, ranges in row["gold"].items()})


@dataclass(frozen=True, slots=True)
class Recall:
    """The coverage of a question by a context, from 0 to 1; for its gold ranges, the sum of their shares."""

    some: float
    files: float
    lines: float
    ranges: int


def recall(question: Question, passages: Iterable[ContextPassage]) -> Recall:
    """Compare a context with the gold files and lines of its question."""
    held: dict[str, set[int]] = {}
    for passage in passages:
        held.setdefault(passage.path, set()).update(range(passage.start_line, passage.end_line + 1))
    files = [path in held for path in question.gold]
    ranges = [
        sum(line in held.get(path, ()) for line in range(first, last + 1)) / (last + 1 - first)
        for path, of_file in question.gold.items()
        for first, last in of_file
    ]
    return Recall(float(any(files)), float(np.mean(files)), sum(ranges), len(ranges))


def ours(reader: Reader, question: str, budget: int) -> Context:
    """Create docindex's context."""
    return context_of(Settings(root=reader.layout.home, home=reader.layout.home), reader, Request(question), budget)


def seed(reader: Reader, question: str, budget: int) -> Context:
    """Create the seed's context, from vectors and maximal marginal relevance alone."""
    hits = search(
        reader,
        question,
        StaticEmbedder,
        mode=Mode.VECTOR,
        weights=_VECTORS_ALONE,
        top_k=_SEED_FOUND,
        reranker=MarginalRelevance(candidates=_SEED_FOUND),
    )
    return pack(question, hits[:_SEED_TAKEN], budget)


WAYS: Mapping[str, Way] = {"docindex": ours, "seed": seed}


def questions(bench: Path, name: str) -> list[Question]:
    """Return the questions about a repository."""
    rows = (bench / "questions" / f"{name}.jsonl").read_text().splitlines()
    return [Question.of(json.loads(row)) for row in rows]


def names(bench: Path) -> list[str]:
    """Return the names of the repositories with questions."""
    return [one["name"] for one in json.loads((bench / "questions" / "repos.json").read_text())]


def measure(reader: Reader, asked: Sequence[Question], way: Way, budget: int) -> tuple[list[Recall], float]:
    """Return the recall of each question, and the mean number of tokens."""
    contexts = [way(reader, question.text, budget) for question in asked]
    found = [recall(question, context.passages) for question, context in zip(asked, contexts, strict=True)]
    return found, float(np.mean([context.tokens for context in contexts]))


def means(found: Sequence[Recall]) -> list[tuple[float, float, float]]:
    """Return each of `MEASURES` over questions, with its interval."""
    ones = np.ones(len(found))
    ranges = np.array([one.ranges for one in found])
    sums = np.array([(one.some, one.files, one.lines) for one in found]).T
    return [_mean(*pair) for pair in zip(sums, (ones, ones, ranges), strict=True)]


def _mean(sums: NDArray[np.float64], counts: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return a mean over items of questions and its interval, from sums and counts of shape (questions,)."""
    chosen = np.random.default_rng(0).integers(0, len(sums), (SAMPLES, len(sums)))
    low, high = np.quantile(sums[chosen].sum(axis=1) / counts[chosen].sum(axis=1), [0.025, 0.975])
    return float(sums.sum() / counts.sum()), float(low), float(high)


def row_of(label: str, found: Sequence[Recall], tokens: float) -> str:
    """Return a row of the table."""
    cells = [f"{mean:>9.1%} {f'{low:.1%} to {high:.1%}':>16}" for mean, low, high in means(found)]
    return f"{label:<30}{tokens:>8,.0f}{''.join(cells)}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("corpora", type=Path)
    arguments = parser.parse_args()
    found: dict[tuple[str, int, str], tuple[list[Recall], float]] = {}
    repositories = names(arguments.bench)
    for name in repositories:
        asked = questions(arguments.bench, name)
        with tempfile.TemporaryDirectory() as home:
            reader = index(arguments.corpora / name, Path(home)).reader
            for way, make in WAYS.items():
                for budget in BUDGETS:
                    found[way, budget, name] = measure(reader, asked, make, budget)
    print(f"{'':<30}{'tokens':>8}{''.join(f'{measured:>26}' for measured in MEASURES)}")
    for way in WAYS:
        for budget in BUDGETS:
            parts = [found[way, budget, name] for name in repositories]
            for name, (of_name, tokens) in zip(repositories, parts, strict=True):
                print(row_of(f"{way}, {budget:,}: {name}", of_name, tokens))
            together = [one for of_name, _ in parts for one in of_name]
            mean = sum(len(of_name) * tokens for of_name, tokens in parts) / len(together)
            print(row_of(f"{way}, {budget:,}: {ALL}", together, mean))


if __name__ == "__main__":
    main()
