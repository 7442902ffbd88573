"""What is asked, and what answers it: files that are in the index now."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, NamedTuple, TypeAlias

from docindex_dagster.core.schemas import COMMIT, NO_LANGUAGE
from docindex_dagster.stores.damage import reading_stores
from docindex_dagster.stores.reader import Reader

Origin: TypeAlias = Literal["cli", "page", "api", "mcp"]
"""How a question was collected: by `docindex search --good`, the page, another client of the API, or an agent."""
_COLUMNS = ("path", "source_type", "language")
_ACCOUNT = re.compile(
    r"(?:^|/)(?:change[-_]?(?:s|log|logs)|history|news|releases?|release[-_]?notes?|whats[-_]?new|unreleased)"
    r"(?:[-_.\d][^/]*)?(?:/|$)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a hit is."""

    source: str
    path: str
    start_line: int
    end_line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.start_line}-{self.end_line}"


@dataclass(frozen=True, slots=True)
class Target:
    """A file of the index that answers a question, or lines of it."""

    source: str
    path: str
    lines: tuple[int, int] | None = None

    def is_met(self, place: Place) -> bool:
        """Whether a place is of the file, and overlaps the lines."""
        if (place.source, place.path) != (self.source, self.path):
            return False
        return self.lines is None or (place.start_line <= self.lines[1] and place.end_line >= self.lines[0])

    def __str__(self) -> str:
        if self.lines is None:
            return self.path
        first, last = self.lines
        return f"{self.path}:{first}" if first == last else f"{self.path}:{first}-{last}"


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its answers.

    Attributes:
        name: where it is from: `SOURCE@COMMIT`, or `FILE:LINE`.
        text: what is asked.
        targets: what answers it, at least one.
        language: the one that most targets are in.
        within: the sources that are searched; none for all.
        is_of_history: whether documents that say what changed repeat it, so that they do not count.
        origins: how it was collected; none for a question that was not.
    """

    name: str
    text: str
    targets: tuple[Target, ...]
    language: str
    within: tuple[str, ...] = ()
    is_of_history: bool = False
    origins: tuple[Origin, ...] = ()

    @property
    def source(self) -> str:
        """The source of its first target."""
        return self.targets[0].source


def most_common(values: Iterable[str]) -> str:
    """The value that occurs most often, of equals the first in order."""
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value))


def ranks(question: Question, places: Sequence[Place]) -> list[int | None]:
    """The rank of each target among some places, best first: of the first that meets it, from 1."""
    return [
        next((rank for rank, place in enumerate(places, start=1) if target.is_met(place)), None)
        for target in question.targets
    ]


def sample(questions: Sequence[Question], most: int | None, seed: int = 0) -> list[Question]:
    """At most so many of some questions, in their order; the same for the same names and seed. None: all.

    Those with the smallest hashes are asked (bottom-k sampling): a new commit displaces at most one question.
    """
    if most is None or len(questions) <= most:
        return list(questions)
    chosen = {
        question.name for question in sorted(questions, key=lambda question: random_number(question, seed))[:most]
    }
    return [question for question in questions if question.name in chosen]


def random_number(question: Question, seed: int = 0) -> bytes:
    """Of a question and a seed: eight bytes."""
    return blake2b(f"{seed}:{question.name}".encode(), digest_size=8).digest()


class IndexedFile(NamedTuple):
    """What a file is for, and the language that it is in."""

    source_type: str
    language: str


def indexed_files(reader: Reader, key: str) -> dict[str, IndexedFile]:
    """The files of a source by their paths; its commits are none.

    Raises:
        DamagedStoreError: the table cannot be read.
    """
    with reading_stores():
        rows = [row for part, at in reader.parts.of_source(key) for row in part.values(_COLUMNS, at)]
    return {
        path: IndexedFile(source_type, language or NO_LANGUAGE)
        for path, source_type, language in rows
        if source_type != COMMIT
    }


def is_account(path: str, source_type: str) -> bool:
    """Whether a file is a document that says what changed, such as a change log, by its path."""
    return source_type == "doc" and _ACCOUNT.search(path) is not None
