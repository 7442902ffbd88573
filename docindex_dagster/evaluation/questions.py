"""Questions, and the indexed files that answer them."""

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
"""How a question was collected: `docindex search --good`, the web page, another API client, or an agent."""
_COLUMNS = ("path", "source_type", "language")
_CHANGE_LOG = re.compile(
    r"(?:^|/)(?:change[-_]?(?:s|log|logs)|history|news|releases?|release[-_]?notes?|whats[-_]?new|unreleased)"
    r"(?:[-_.\d][^/]*)?(?:/|$)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class HitPosition:
    """The position of a hit."""

    source: str
    path: str
    start_line: int
    end_line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.start_line}-{self.end_line}"


@dataclass(frozen=True, slots=True)
class Target:
    """An indexed file that answers a question, or lines of it."""

    source: str
    path: str
    lines: tuple[int, int] | None = None

    def is_met(self, place: HitPosition) -> bool:
        """Return whether a place is in the file and overlaps the lines."""
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
        name: its origin: `SOURCE@COMMIT`, or `FILE:LINE`.
        text: the question.
        targets: the answers, at least one.
        language: the language of most targets.
        within: the sources to search; empty for all.
        is_of_history: whether it comes from a commit, so that documents that report changes do not count as answers.
        origins: how it was collected; empty if it was not.
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
        """The source of the first target."""
        return self.targets[0].source


def most_common(values: Iterable[str]) -> str:
    """Return the most frequent value; of several, the first in sort order."""
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value))


def ranks(question: Question, places: Sequence[HitPosition]) -> list[int | None]:
    """Return the rank of each target, from 1, among places sorted best first; None if no place meets it."""
    return [
        next((rank for rank, place in enumerate(places, start=1) if target.is_met(place)), None)
        for target in question.targets
    ]


def sample(questions: Sequence[Question], most: int | None, seed: int = 0) -> list[Question]:
    """Return at most `most` questions, in order; all if it is None. The same names and seed give the same sample.

    Those with the smallest hashes are chosen (bottom-k sampling), so a new commit displaces at most one question.
    """
    if most is None or len(questions) <= most:
        return list(questions)
    chosen = {
        question.name for question in sorted(questions, key=lambda question: random_number(question, seed))[:most]
    }
    return [question for question in questions if question.name in chosen]


def random_number(question: Question, seed: int = 0) -> bytes:
    """Return eight bytes that are determined by a question and a seed."""
    return blake2b(f"{seed}:{question.name}".encode(), digest_size=8).digest()


class IndexedFile(NamedTuple):
    """The purpose and the language of a file."""

    source_type: str
    language: str


def indexed_files(reader: Reader, key: str) -> dict[str, IndexedFile]:
    """Return the files of a source, without its commits, by path.

    Raises:
        DamagedStoreError: The table cannot be read.
    """
    with reading_stores():
        rows = [row for part, at in reader.parts.of_source(key) for row in part.values(_COLUMNS, at)]
    return {
        path: IndexedFile(source_type, language or NO_LANGUAGE)
        for path, source_type, language in rows
        if source_type != COMMIT
    }


def is_change_log(path: str, source_type: str) -> bool:
    """Return whether a file is a document that reports changes, such as a change log, judging by its path."""
    return source_type == "doc" and _CHANGE_LOG.search(path) is not None
