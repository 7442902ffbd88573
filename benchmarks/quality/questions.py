"""Questions with labels, and scores of answers."""

import csv
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks.files import TOP, is_same_file, ndcg, targets_of

PASSAGES_OF = "octocode"
SETS = ("files", "code", "docs")
CATEGORIES = ("semantic", "architecture", "symbol")
_HIT_AT = 5


class Place(Protocol):
    """The position of a result."""

    @property
    def path(self) -> str:
        """Path of the file."""

    @property
    def start_line(self) -> int:
        """First line, from 1."""

    @property
    def end_line(self) -> int:
        """Last line, inclusive."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of an answer: NDCG@10, the reciprocal rank of the first hit, and whether one is among the first five."""

    ndcg: float
    mrr: float
    hit_at_5: float


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the columns of its tables, and a function that scores an answer."""

    text: str
    columns: tuple[str, ...]
    repository: str
    score: Callable[[Sequence[Place]], Scores]


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines that answer a question, with a grade of 2 or 1."""

    path: str
    first: int
    last: int
    grade: int

    @classmethod
    def of(cls, text: str) -> "Passage":
        """Parse `path:first-last:grade`."""
        path, lines, grade = text.rsplit(":", 2)
        first, last = lines.split("-")
        return cls(path, int(first), int(last), int(grade))

    def meets(self, place: Place) -> bool:
        """Return whether the line ranges overlap."""
        return self.path == place.path and self.first <= place.end_line and place.start_line <= self.last


def read_questions(bench: Path) -> list[Question]:
    """Return all questions, those for files first."""
    repositories: list[dict[str, Any]] = json.loads((bench / "repos.json").read_text())
    languages = {repository["name"]: repository["language"] for repository in repositories}
    found = []
    for file in sorted((bench / "queries").glob("*.json")):
        rows: list[dict[str, Any]] = json.loads(file.read_text())
        found += [_for_files(row, file.stem, languages[file.stem]) for row in rows]
    for kind in ("code", "docs"):
        with (bench / "passages" / f"{kind}.csv").open(newline="") as passages:
            found += [_for_lines(row, kind) for row in csv.DictReader(passages)]
    return found


def _for_files(row: Mapping[str, Any], repository: str, language: str) -> Question:
    targets = targets_of(row)

    def score(places: Sequence[Place]) -> Scores:
        hits = [any(is_same_file(place.path, target) for target in targets) for place in places[:TOP]]
        return Scores(ndcg([place.path for place in places], targets), *_first(hits))

    return Question(row["query"], ("files", row["category"], language), repository, score)


def _for_lines(row: Mapping[str, str], kind: str) -> Question:
    passages = [Passage.of(value) for name, value in row.items() if name != "query" and value]

    def score(places: Sequence[Place]) -> Scores:
        grades = [max((p.grade for p in passages if p.meets(place)), default=0) for place in places[:TOP]]
        ideal = sorted((p.grade for p in passages), reverse=True)
        return Scores(_discounted(grades) / _discounted(ideal), *_first([grade > 0 for grade in grades]))

    return Question(row["query"], (kind,), PASSAGES_OF, score)


def _first(hits: Sequence[bool]) -> tuple[float, float]:
    rank = next((rank for rank, is_hit in enumerate(hits, start=1) if is_hit), None)
    return (1 / rank, float(rank <= _HIT_AT)) if rank else (0.0, 0.0)


def _discounted(grades: Sequence[int]) -> float:
    return sum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1))
