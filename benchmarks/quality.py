"""How good is the first page? Files, passages, each signal's worth, and the spread over repositories: quality.py.

    python -m benchmarks.quality BENCH CORPORA [--grid]

BENCH has `repos.json`, `queries/NAME.json` (questions for files) and `passages/code.csv` and `docs.csv` (questions for
lines, over one repository); CORPORA holds each repository by name, at its pinned revision. One configuration answers
all.

Files are scored by binary NDCG@10 over chunks by file (see `benchmarks/files.py`). Passages by graded NDCG@10: a hit
that overlaps the lines of targets counts as the best of them, the ideal ranking has each target once, and hits of one
target count each, as the authors of the set score it; so the value may exceed 1.

First come the modes, then what the order is without each signal. `+.012 (.003 .021)` is the gain over the first row
with its 95 % interval by paired bootstrap over questions. With `--grid`, other values of each weight follow, and for
each repository what it would score with the value that is best on all others: how much the figures hang on the choice.
"""

import argparse
import csv
import json
import math
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.files import TOP, ndcg
from benchmarks.pipeline import index
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Hit, Mode
from docindex_dagster.search.weights import WEIGHTS, Weights

PASSAGES_OF = "octocode"
SETS = ("files", "code", "docs")
COLUMNS = (*SETS, "semantic", "architecture", "symbol")
SAMPLES = 10_000

# What takes each signal out.
NEUTRAL: dict[str, float] = {
    "symbols": 0,
    "headings": 0,
    "path_terms": 0,
    "vector": 0,
    "score": 0,
    "definition": 0,
    "path": 0,
    "test": 1,
    "document": 1,
    "answer": 1,
    "file": 0,
    "repeat": 1,
}
GRID: dict[str, tuple[float, ...]] = {
    "symbols": (0.5, 1.0),
    "headings": (0.5, 1.5),
    "path_terms": (0.1, 0.5),
    "vector": (0.15, 0.2, 0.3, 0.35),
    "score": (1.0, 4.0),
    "definition": (0.25, 1.0),
    "path": (0.1, 0.3),
    "test": (0.2, 0.5),
    "document": (0.6, 0.8),
    "answer": (1.25, 2.0),
    "file": (0.1, 0.3),
    "repeat": (0.8, 0.95),
}


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the sets and categories that it counts in, and how an answer to it is scored."""

    text: str
    columns: tuple[str, ...]
    repository: str
    score: Callable[[Sequence[Hit]], float]


@dataclass(frozen=True, slots=True)
class Variation:
    """A way to answer."""

    name: str
    mode: Mode = Mode.HYBRID
    weights: Weights = WEIGHTS


def questions_of(bench: Path) -> list[Question]:
    """All questions, those for files first."""
    found = []
    for file in sorted((bench / "queries").glob("*.json")):
        rows: list[dict[str, Any]] = json.loads(file.read_text())
        found += [_for_files(row, file.stem) for row in rows]
    for kind in ("code", "docs"):
        with (bench / "passages" / f"{kind}.csv").open(newline="") as passages:
            found += [_for_lines(row, kind) for row in csv.DictReader(passages)]
    return found


def _for_files(row: Mapping[str, Any], repository: str) -> Question:
    targets = row["targets"]
    return Question(
        row["query"], ("files", row["category"]), repository, lambda hits: ndcg([hit.path for hit in hits], targets)
    )


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines that answer a question, and how well: 2 or 1."""

    path: str
    first: int
    last: int
    grade: int

    @classmethod
    def of(cls, text: str) -> "Passage":
        """Read `path:first-last:grade`."""
        path, lines, grade = text.rsplit(":", 2)
        first, last = lines.split("-")
        return cls(path, int(first), int(last), int(grade))

    def meets(self, hit: Hit) -> bool:
        """Whether they have a line in common."""
        return self.path == hit.path and self.first <= hit.end_line and hit.start_line <= self.last


def _for_lines(row: Mapping[str, str], kind: str) -> Question:
    passages = [Passage.of(value) for name, value in row.items() if name != "query" and value]
    return Question(row["query"], (kind,), PASSAGES_OF, lambda hits: graded_ndcg(hits, passages))


def graded_ndcg(hits: Sequence[Hit], passages: Sequence[Passage]) -> float:
    """Graded NDCG@10 of chunks by overlap."""
    grades = [max((p.grade for p in passages if p.meets(hit)), default=0) for hit in hits[:TOP]]
    return _discounted(grades) / _discounted(sorted((p.grade for p in passages), reverse=True))


def _discounted(grades: Sequence[int]) -> float:
    return sum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1))


def evaluate(corpora: Path, questions: Sequence[Question], variations: Sequence[Variation]) -> dict[str, np.ndarray]:
    """The score of each question, in their order, for each variation."""
    embedder = StaticEmbedder()
    scores = {variation.name: np.zeros(len(questions)) for variation in variations}
    by_repository = defaultdict(list)
    for position, question in enumerate(questions):
        by_repository[question.repository].append((position, question))
    for repository, asked in by_repository.items():
        with tempfile.TemporaryDirectory() as home:
            reader = index(corpora / repository, Path(home)).reader
            for variation in variations:
                for position, question in asked:
                    hits = search(
                        reader,
                        question.text,
                        lambda: embedder,
                        mode=variation.mode,
                        top_k=TOP,
                        weights=variation.weights,
                    )
                    scores[variation.name][position] = question.score(hits)
    return scores


def interval(differences: np.ndarray) -> tuple[float, float]:
    """The 95 % interval of the mean of paired differences, by bootstrap."""
    chosen = np.random.default_rng(0).integers(0, len(differences), (SAMPLES, len(differences)))
    low, high = np.quantile(differences[chosen].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def table(scores: Mapping[str, np.ndarray], questions: Sequence[Question]) -> None:
    """Print the means, and for the sets the gain over the first row."""
    members = {name: np.array([name in question.columns for question in questions]) for name in COLUMNS}
    print(f"{'':<24}" + "".join(f"{name:>13}" for name in COLUMNS) + "   " + "".join(f"{name:<24}" for name in SETS))
    first = next(iter(scores.values()))
    for name, values in scores.items():
        means = "".join(f"{values[members[column]].mean():>13.4f}" for column in COLUMNS)
        gains = "".join(f"{_gain((values - first)[members[column]]):<24}" for column in SETS)
        print(f"{name:<24}{means}   {gains if values is not first else ''}".rstrip())


def _gain(differences: np.ndarray) -> str:
    low, high = interval(differences)
    return f"{differences.mean():+.3f} ({low:+.3f} {high:+.3f})"


def leave_one_out(scores: Mapping[str, np.ndarray], questions: Sequence[Question]) -> None:
    """Print, for each repository with questions for files, what it scores with the value that is best on all others.

    Best is the mean of the three sets. The questions for passages, which are of one repository, are always in the rest.
    """
    repositories = np.array([question.repository for question in questions])
    sets = {name: np.array([name in question.columns for question in questions]) for name in SETS}
    default = next(iter(scores))
    print(f"\n{'left out':<14}{'as it is':>10}{'chosen by the others':>22}")
    gains = []
    for repository in sorted(set(repositories[sets["files"]])):
        inside = repositories == repository
        rest = {name: np.mean([v[m & ~inside].mean() for m in sets.values()]) for name, v in scores.items()}
        chosen = max(rest, key=lambda name: rest[name])
        before, after = scores[default][inside].mean(), scores[chosen][inside].mean()
        gains.append(after - before)
        print(f"{repository:<14}{before:>10.4f}{after:>12.4f}  {chosen}")
    print(f"mean change {np.mean(gains):+.4f}, spread {np.min(gains):+.4f} to {np.max(gains):+.4f}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--grid", action="store_true", help="Also other values of each weight.")
    arguments = parser.parse_args()
    questions = questions_of(arguments.bench)
    plain = Weights(**NEUTRAL)
    modes = [Variation("hybrid"), *(Variation(mode.value, mode) for mode in (Mode.BM25, Mode.VECTOR))]
    modes += [
        Variation("plain bm25", Mode.BM25, plain),
        Variation("plain vectors", Mode.VECTOR, replace(plain, vector=1)),
    ]
    without = [Variation(f"- {name}", weights=replace(WEIGHTS, **{name: value})) for name, value in NEUTRAL.items()]
    grid = [
        Variation(f"{name} = {value:g}", weights=replace(WEIGHTS, **{name: value}))
        for name, values in GRID.items()
        for value in values
    ]
    scores = evaluate(arguments.corpora, questions, [*modes, *without, *(grid if arguments.grid else ())])
    table(scores, questions)
    if arguments.grid:
        hybrids = {item.name: scores[item.name] for item in (modes[0], *without, *grid)}
        leave_one_out(hybrids, questions)


if __name__ == "__main__":
    main()
