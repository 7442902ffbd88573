"""Answers that were found in cycles, kept over files with all that decided them.

What a cycle gives depends on where it was entered, and on what the file knew then. Where another file enters it at the
same place, and knows the same of what it meets, following it would find the same again: it is taken instead. So a file
gives the same edges whether it is resolved alone or with all others.
"""

from collections.abc import Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

_Found = TypeVar("_Found")
_MOST_A_QUESTION = 4
FEWEST_STEPS = 4  # fewer are followed again as soon as compared
_MOST_FOLLOWED = 2_000_000  # questions, in all cycles


@dataclass(eq=False, slots=True)
class Answer(Generic[_Found]):
    """What was found, the keys and answers that were looked at, how deep and how many callers the questions led."""

    found: _Found
    keys: tuple[int, ...]
    answers: "tuple[Answer[Any], ...]"
    height: int
    asked: int


Known = tuple[Hashable, Answer[Any]]
"""A question with its answer."""


class Mark(NamedTuple):
    """A place in a trail."""

    followed: int
    known: int
    stored: int
    steps: int


@dataclass(slots=True)
class Course:
    """How it went so far, below one question."""

    head: int  # the outermost place that is come back to
    reach: int  # the deepest place
    lowest: int  # level
    is_pure: bool = True  # no cycle
    is_cut: bool = False  # it led too deep
    is_short: bool = False  # callers were not asked that could have been

    def add(self, other: "Course") -> None:
        """That of a question to which it led."""
        self.head = min(self.head, other.head)
        self.reach = max(self.reach, other.reach)
        self.lowest = min(self.lowest, other.lowest)
        if not other.is_pure:
            self.is_pure = False
            self.is_cut |= other.is_cut
        if other.is_short:
            self.is_short = True


@dataclass(slots=True)
class Trail:
    """What was met in the cycles of a file, in its order."""

    followed: list[Hashable] = field(default_factory=list)  # questions, also those that led too deep
    known: list[Known] = field(default_factory=list)  # what was taken of what the file knew
    stored: list[Known] = field(default_factory=list)  # what it knows from then on
    steps: int = 0

    def mark(self) -> Mark:
        """Where it is now."""
        return Mark(len(self.followed), len(self.known), len(self.stored), self.steps)

    def add(self, cycle: "Cycle") -> None:
        """A cycle is taken as if it were followed."""
        self.followed += cycle.followed
        self.known += cycle.known
        self.stored += cycle.stored
        self.steps += cycle.steps

    def cycle(self, begin: Mark, answer: Answer[Any], depth: int, course: Course) -> "Cycle":
        """What was followed since a question was begun, of which this is the answer."""
        followed = frozenset(self.followed[begin.followed :])
        before = {
            question: (question, known) for question, known in self.known[begin.known :] if question not in followed
        }
        stored = tuple(self.stored[begin.stored :])
        return Cycle(answer, depth, self.steps - begin.steps, course, followed, tuple(before.values()), stored)


@dataclass(frozen=True, slots=True, eq=False)
class Cycle:
    """The answer to a question that leads to cycles, all of them below it, and what it takes to find it again."""

    answer: Answer[Any]
    depth: int  # of the question
    steps: int
    course: Course
    followed: frozenset[Hashable]  # questions whose answers were not known
    known: tuple[Known, ...]  # what the file knew before
    stored: tuple[Known, ...]  # what it knows since

    def is_same(self, depth: int, most_depth: int, known: Mapping[Hashable, object]) -> bool:
        """Whether a question of some depth leads as deep, and to the same answers among those that the file knows."""
        if depth != self.depth if self.course.is_cut else depth + self.answer.height > most_depth:
            return False
        for question, answer in self.known:
            if known.get(question) is not answer:
                return False
        return is_disjoint(known, self.followed)


@dataclass(slots=True)
class Cycles:
    """The cycles that are kept, by the questions that lead to them; of each question the last ones."""

    _kept: dict[Hashable, list[Cycle]] = field(default_factory=dict)
    _followed: int = 0

    def start(self) -> None:
        """Begin with a file."""
        if self._followed > _MOST_FOLLOWED:
            self._kept, self._followed = {}, 0

    def of(self, question: Hashable) -> Sequence[Cycle]:
        """The cycles to which a question led."""
        return self._kept.get(question, ())

    def keep(self, question: Hashable, cycle: Cycle) -> None:
        """A question led to a cycle."""
        kept = self._kept.setdefault(question, [])
        kept.append(cycle)
        self._followed += len(cycle.followed)
        if len(kept) > _MOST_A_QUESTION:
            self._followed -= len(kept.pop(0).followed)


def is_disjoint(known: Mapping[Hashable, object], questions: AbstractSet[Hashable]) -> bool:
    """Whether no question is known; as fast as the smaller of both can be read."""
    return known.keys().isdisjoint(questions)
