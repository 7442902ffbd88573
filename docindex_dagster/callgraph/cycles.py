"""Cache of answers found in query cycles, with everything they depend on.

The result of a cycle depends on the query that entered it and on the answers known for the file at that time. If
another file enters it with the same query and the same known answers, evaluating it would give the same result, so the
cached cycle is reused. A file therefore has the same edges whether it is resolved alone or with all others.
"""

from collections.abc import Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_MAX_PER_QUERY = 4
MIN_STEPS = 4  # evaluating fewer steps again is as fast as comparing them
_MAX_FOLLOWED = 2_000_000  # queries, in all cycles
Mark = tuple[int, int, int, int]
"""A position in a trail: the lengths of `followed`, `known` and `stored`, and the steps."""


@dataclass(eq=False, slots=True)
class CycleResult:
    """A result with its dependencies: keys of the program and other answers."""

    found: Any
    reads: Sequence[int]
    uses: "Sequence[CycleResult]"
    height: int  # depth of its evaluation, in queries
    caller_levels: int  # levels of callers that it depends on


Known = tuple[Hashable, CycleResult]
"""A query with its answer."""


class Course(NamedTuple):
    """Summary of the evaluation below a query."""

    lowest: int  # level
    is_cut: bool  # it exceeded the maximum depth
    is_short: bool  # callers were skipped because of the level


@dataclass(frozen=True, slots=True, eq=False)
class Cycle:
    """The answer to a query whose cycles are all below it, and the conditions for reusing the answer."""

    answer: CycleResult
    depth: int  # of the query
    steps: int
    course: Course
    followed: frozenset[Hashable]  # queries without a known answer
    known: tuple[Known, ...]  # answers that the file had before
    stored: tuple[Known, ...]  # answers that the file has afterwards

    def is_same(self, depth: int, max_depth: int, known: Mapping[Hashable, object]) -> bool:
        """Return whether a query at some depth would reach the same depth and use the same known answers."""
        if depth != self.depth if self.course.is_cut else depth + self.answer.height > max_depth:
            return False
        for query, answer in self.known:
            if known.get(query) is not answer:
                return False
        return is_disjoint(known, self.followed)


@dataclass(slots=True)
class Trail:
    """The queries and answers encountered in the cycles of a file, in order."""

    followed: list[Hashable] = field(default_factory=list)  # queries, including those cut at the maximum depth
    known: list[Known] = field(default_factory=list)  # known answers of the file that were used
    stored: list[Known] = field(default_factory=list)  # new answers of the file
    steps: int = 0

    def mark(self) -> Mark:
        """Return the current position."""
        return len(self.followed), len(self.known), len(self.stored), self.steps

    def add(self, cycle: Cycle) -> None:
        """Record a reused cycle as if it had been evaluated."""
        self.followed += cycle.followed
        self.known += cycle.known
        self.stored += cycle.stored
        self.steps += cycle.steps

    def cycle(self, start: Mark, answer: CycleResult, depth: int, course: Course) -> Cycle:
        """Return the cycle recorded since a query started, with the answer to that query."""
        start_followed, start_known, start_stored, steps = start
        followed = frozenset(self.followed[start_followed:])
        before = {query: (query, known) for query, known in self.known[start_known:] if query not in followed}
        stored = tuple(self.stored[start_stored:])
        return Cycle(answer, depth, self.steps - steps, course, followed, tuple(before.values()), stored)


@dataclass(slots=True)
class Cycles:
    """Cached cycles by the query that entered them; only the latest per query are kept."""

    _cycles: dict[Hashable, list[Cycle]] = field(default_factory=dict)
    _followed: int = 0

    def start(self) -> None:
        """Prepare for the next file; drop all cycles if there are too many."""
        if self._followed > _MAX_FOLLOWED:
            self._cycles, self._followed = {}, 0

    def of(self, query: Hashable) -> Sequence[Cycle]:
        """Return the cached cycles of a query, oldest first."""
        return self._cycles.get(query, ())

    def remember(self, query: Hashable, cycle: Cycle) -> None:
        """Cache a cycle entered by a query."""
        cycles = self._cycles.setdefault(query, [])
        cycles.append(cycle)
        self._followed += len(cycle.followed)
        if len(cycles) > _MAX_PER_QUERY:
            self._followed -= len(cycles.pop(0).followed)


def is_disjoint(known: Mapping[Any, object], queries: AbstractSet[Hashable]) -> bool:
    """Return whether no query is known, in time linear in the smaller of the two."""
    return known.keys().isdisjoint(queries)
