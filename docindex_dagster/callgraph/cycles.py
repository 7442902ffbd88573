"""Answers that were found in cycles of queries, with all that decided them.

What a cycle gives depends on the query at which it was entered, and on what the file knew then. Where another file
enters it at the same query, and knows the same of what it meets, following it would find the same again: it is taken
instead. So a file gives the same edges whether it is resolved alone or with all others.
"""

from collections.abc import Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_MOST_A_QUERY = 4
FEWEST_STEPS = 4  # fewer are followed again as soon as compared
_MOST_FOLLOWED = 2_000_000  # queries, in all cycles
Mark = tuple[int, int, int, int]
"""A place in a trail: how many queries were followed, known and stored before, and the steps."""


@dataclass(eq=False, slots=True)
class Answer:
    """What was found, and what was read for it: keys of the program, and other answers."""

    found: Any
    reads: Sequence[int]
    uses: "Sequence[Answer]"
    height: int  # how deep it led
    asked: int  # how many levels of callers it asked


Known = tuple[Hashable, Answer]
"""A query with its answer."""


class Course(NamedTuple):
    """How it went below one query."""

    lowest: int  # level
    is_cut: bool  # it led too deep
    is_short: bool  # callers were not asked that could have been


@dataclass(frozen=True, slots=True, eq=False)
class Cycle:
    """The answer to a query that leads to cycles, all of them below it, and what it takes to find it again."""

    answer: Answer
    depth: int  # of the query
    steps: int
    course: Course
    followed: frozenset[Hashable]  # queries whose answers were not known
    known: tuple[Known, ...]  # what the file knew before
    stored: tuple[Known, ...]  # what it knows since

    def is_same(self, depth: int, most_depth: int, known: Mapping[Hashable, object]) -> bool:
        """Whether a query of some depth leads as deep, and to the same answers among those that the file knows."""
        if depth != self.depth if self.course.is_cut else depth + self.answer.height > most_depth:
            return False
        for query, answer in self.known:
            if known.get(query) is not answer:
                return False
        return is_disjoint(known, self.followed)


@dataclass(slots=True)
class Trail:
    """What was met in the cycles of a file, in its order."""

    followed: list[Hashable] = field(default_factory=list)  # queries, also those that led too deep
    known: list[Known] = field(default_factory=list)  # what was taken of what the file knew
    stored: list[Known] = field(default_factory=list)  # what it knows from then on
    steps: int = 0

    def mark(self) -> Mark:
        """Where it is now."""
        return len(self.followed), len(self.known), len(self.stored), self.steps

    def add(self, cycle: Cycle) -> None:
        """A cycle is taken as if it were followed."""
        self.followed += cycle.followed
        self.known += cycle.known
        self.stored += cycle.stored
        self.steps += cycle.steps

    def cycle(self, begin: Mark, answer: Answer, depth: int, course: Course) -> Cycle:
        """What was followed since a query was begun, of which this is the answer."""
        begin_followed, begin_known, begin_stored, steps = begin
        followed = frozenset(self.followed[begin_followed:])
        before = {query: (query, known) for query, known in self.known[begin_known:] if query not in followed}
        stored = tuple(self.stored[begin_stored:])
        return Cycle(answer, depth, self.steps - steps, course, followed, tuple(before.values()), stored)


@dataclass(slots=True)
class Cycles:
    """The cycles that are remembered, by the queries that lead to them; of each query the last ones."""

    _cycles: dict[Hashable, list[Cycle]] = field(default_factory=dict)
    _followed: int = 0

    def start(self) -> None:
        """Begin with a file."""
        if self._followed > _MOST_FOLLOWED:
            self._cycles, self._followed = {}, 0

    def of(self, query: Hashable) -> Sequence[Cycle]:
        """The cycles to which a query led."""
        return self._cycles.get(query, ())

    def remember(self, query: Hashable, cycle: Cycle) -> None:
        """A query led to a cycle."""
        cycles = self._cycles.setdefault(query, [])
        cycles.append(cycle)
        self._followed += len(cycle.followed)
        if len(cycles) > _MOST_A_QUERY:
            self._followed -= len(cycles.pop(0).followed)


def is_disjoint(known: Mapping[Any, object], queries: AbstractSet[Hashable]) -> bool:
    """Whether no query is known; as fast as the smaller of both can be read."""
    return known.keys().isdisjoint(queries)
