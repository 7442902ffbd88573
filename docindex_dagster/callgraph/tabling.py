"""Demand-driven evaluation with tabling: recursive queries whose answers are stored in a table.

A query is a function of the program; its complete answer is stored under its arguments (Tamaki and Sato, OLD resolution
with tabulation, 1986; in compilers, a query system). Each answer records its dependencies, so that a file is resolved
again only when one of them changes.

Most answers depend only on the program and are shared by all files. A query that reaches itself gets an empty answer
there, so the result of such a cycle (a strongly connected component of queries) depends on its entry point. It is valid
for one file, so that a file has the same edges whether it is resolved alone or with all others. Another file reuses it
if evaluation would give the same result (`cycles`).

The value of a parameter may depend on the arguments of callers, which may depend on their own callers: call strings of
limited length k (Sharir and Pnueli, Two approaches to interprocedural data flow analysis, 1981). The `level` is the
number of further caller steps allowed. An answer that used fewer steps is also valid at other levels.
"""

import math
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, ParamSpec, TypeVar, TypeVarTuple, cast

from docindex_dagster.callgraph.cycles import MIN_STEPS, Course, Cycle, CycleResult, Cycles, Mark, Trail, is_disjoint

_P = ParamSpec("_P")
_Found = TypeVar("_Found")
_Arguments = TypeVarTuple("_Arguments")
_Key = tuple[int, "Goal"]  # level and goal
_LEVEL = 2  # successive caller steps
_DEPTH = 60  # of nested queries
_STEPS = 30_000  # in cycles, per file
_STEPS_PER_CHECK = 256  # of the limits
_MAX_GOALS = 400_000  # counting a goal once for each of its argument tuples
_NOT_FOUND = object()
_UNANSWERED = 1_000  # a level above all others

TIME_OUT = "time-out: "
"""Prefix of the message of an `LimitExceededError` when time ran out."""


class _ExhaustedError(Exception):
    """The step limit for the cycles of a file was exceeded."""


class LimitExceededError(Exception):
    """A file exceeds a resource limit; the message names the limit."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for resolving the names of a file, and of all files of a source."""

    steps: int = 1_000_000  # evaluated queries per file
    file_s: float = 60.0  # elapsed
    source_s: float = 600.0  # elapsed


class Goal(CycleResult):
    """A query with its arguments, and its answer once one is valid for all files and levels.

    Goals serve as keys in place of query and arguments, since arguments are slow to hash.
    """

    __slots__ = ("arguments", "is_new", "query")

    def __init__(self, query: "Query[Any, Any]", arguments: tuple[Any, ...]) -> None:
        self.query, self.arguments, self.caller_levels = query, arguments, _UNANSWERED
        self.is_new = True  # not evaluated yet


class Query(Generic[_P, _Found]):
    """A function with tabled answers; `none` is its answer if it reaches itself or the maximum depth."""

    __slots__ = ("find", "goals", "name", "none", "normalize", "table")

    def __init__(self, table: "Table", name: str, none: _Found) -> None:
        self.table, self.name, self.none = table, name, none
        self.goals: dict[tuple[Any, ...], Goal] = {}  # by arguments
        self.find: Callable[_P, _Found] = self._unanswered
        self.normalize: Callable[..., tuple[Any, ...]] | None = None
        table.queries.append(self)

    def answered_by(self, find: Callable[_P, _Found], normalize: Callable[_P, tuple[Any, ...]] | None = None) -> None:
        """Set the function that finds answers; `normalize` maps equivalent arguments to the same ones."""
        self.find, self.normalize = find, normalize

    def close(self) -> None:
        """Drop all answers and the function that finds them."""
        self.goals, self.find, self.normalize = {}, self._unanswered, None

    def __call__(self, *arguments: _P.args, **_: _P.kwargs) -> _Found:
        """Return the answer for the arguments.

        Raises:
            LimitExceededError: the file needs too many queries or too much time.
        """
        table, goal = self.table, self.goals.get(arguments)
        if goal is None:
            goal = self._add_goal(arguments)
        if goal.caller_levels <= table.level and table.use(goal):
            known: _Found = goal.found
            return known
        found: _Found = table.evaluate(goal)
        return found

    def _add_goal(self, arguments: tuple[Any, ...]) -> Goal:
        normalized = arguments if self.normalize is None else self.normalize(*arguments)
        goal = self.goals.get(normalized) or self.goals.setdefault(normalized, Goal(self, normalized))
        self.goals[arguments] = goal
        return goal

    def _unanswered(self, *_: _P.args, **__: _P.kwargs) -> _Found:
        raise NotImplementedError(f"no function answers the query {self.name!r}")


class Table:
    """The answers of all queries, and the state of those being evaluated."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.queries: list[Query[Any, Any]] = []
        self.level = _LEVEL
        # The keys and answers used by the query being evaluated.
        self.reads: list[int] = []
        self._uses: list[CycleResult] = []
        self._at_level: dict[_Key, CycleResult] = {}  # answers that are valid at a single level
        self._of_file: dict[Hashable, CycleResult] = {}
        self._partial: dict[Hashable, tuple[CycleResult, int]] = {}  # in a cycle that is not complete
        self._active: dict[_Key, int] = {}
        self._cycles = Cycles()
        self._trail = Trail()
        self._steps = 0
        self._next_check = 0  # in steps
        self._ends_at = math.inf
        # The evaluation below the current query:
        self._head = self._reach = 0  # the outermost query that a cycle returns to, and the maximum depth
        self._lowest = _LEVEL
        self._is_pure = True  # no cycle
        self._is_cut = self._is_short = False  # it reached the depth limit; callers were skipped because of the level

    def start(self) -> None:
        """Prepare for the next file."""
        self._of_file, self._partial = {}, {}
        self._steps, self._next_check = 0, min(_STEPS_PER_CHECK, self.limits.steps)
        self._ends_at = time.monotonic() + self.limits.file_s
        self._trail = Trail()
        self._cycles.start()
        self.reads, self._uses = [], []
        if sum(len(query.goals) for query in self.queries) > _MAX_GOALS:
            self.forget()

    def forget(self) -> None:
        """Drop all answers. Must not be called while a query is evaluated."""
        self._at_level, self._of_file, self._partial = {}, {}, {}
        self._cycles, self._trail = Cycles(), Trail()
        self.reads, self._uses = [], []
        for query in self.queries:
            query.goals = {}

    def close(self) -> None:
        """Drop all answers and queries."""
        self.forget()
        for query in self.queries:
            query.close()
        self.queries.clear()

    def looked(self) -> list[int]:
        """Return the sorted keys of everything read since `start`."""
        keys, seen, fresh = set(self.reads), set[CycleResult](), set(self._uses)
        while fresh:
            seen |= fresh
            keys.update(*[answer.reads for answer in fresh])
            fresh = set(chain.from_iterable([answer.uses for answer in fresh])) - seen
        return sorted(keys)

    def asking_callers(self, none: _Found, find: Callable[[*_Arguments], _Found], *arguments: *_Arguments) -> _Found:
        """Evaluate `find` with one caller step less; return `none` if no steps are left."""
        if not self.level:
            self._is_short = True
            return none
        self.level -= 1
        self._lowest = min(self._lowest, self.level)
        try:
            return find(*arguments)
        finally:
            self.level += 1

    def without_callers(self, find: Callable[[*_Arguments], _Found], *arguments: *_Arguments) -> _Found:
        """Evaluate `find` without asking callers."""
        level, lowest, is_short = self.level, self._lowest, self._is_short
        self.level = 0
        try:
            return find(*arguments)
        finally:
            self.level, self._lowest, self._is_short = level, lowest, is_short

    def use(self, answer: CycleResult) -> bool:
        """Record the use of a tabled answer. Return False if its evaluation would exceed the depth limit."""
        reach = len(self._active) + answer.height
        if reach > _DEPTH:
            return False
        self._uses.append(answer)
        if reach > self._reach:  # noqa: PLR1730 faster than calling max
            self._reach = reach
        if answer.caller_levels:
            self._lowest = min(self._lowest, self.level - answer.caller_levels)
        return True

    def evaluate(self, goal: Goal) -> Any:
        """Return the answer to a goal that has no tabled answer valid at all levels."""
        depth, key = len(self._active), (self.level, goal)
        if goal.is_new:
            goal.is_new = False
        elif (known := self._known_answer(goal, key, depth)) is not _NOT_FOUND:
            return known
        if depth > _DEPTH:
            self._trail.followed.append(key)
            self._is_cut = True
            self._is_pure = False
            return goal.query.none
        return self._follow(goal, key, depth)

    def _known_answer(self, goal: Goal, key: _Key, depth: int) -> Any:
        """Return the answer to a goal if it is known for the level or file, active, or in a cached cycle."""
        answer = self._at_level.get(key)
        if answer is not None:
            self._is_short = True
            if self.use(answer):
                return answer.found
        answer = self._of_file.get(key)
        if answer is None and key in self._partial:
            answer, head = self._partial[key]
            self._head = min(self._head, head)
        if answer is not None:
            self._is_pure = False
            self._uses.append(answer)
            self._trail.known.append((key, answer))
            return answer.found
        if key in self._active:
            self._head = min(self._head, self._active[key])
            self._is_pure = False
            return goal.query.none
        for cycle in self._cycles.of(key) if depth <= _DEPTH else ():
            if self._is_reusable(cycle, depth):
                return self._reuse(cycle, depth)
        return _NOT_FOUND

    def _is_reusable(self, cycle: Cycle, depth: int) -> bool:
        """Return whether evaluating a cycle again would give the same result."""
        return (
            self._trail.steps + cycle.steps <= _STEPS
            and cycle.is_same(depth, _DEPTH, self._of_file)
            and is_disjoint(self._active, cycle.followed)
            and is_disjoint(self._partial, cycle.followed)
        )

    def _reuse(self, cycle: Cycle, depth: int) -> object:
        """Return the answer of a cycle and apply the side effects of evaluating it."""
        self._steps += cycle.steps
        self._of_file.update(cycle.stored)
        self._trail.add(cycle)
        self._uses.append(cycle.answer)
        self._reach = max(self._reach, depth + cycle.answer.height)
        self._lowest = min(self._lowest, cycle.course.lowest)
        self._is_pure = False
        self._is_cut |= cycle.course.is_cut
        self._is_short |= cycle.course.is_short
        return cycle.answer.found

    def _follow(self, goal: Goal, key: _Key, depth: int) -> Any:
        head, reach, lowest, reads, uses = self._head, self._reach, self._lowest, self.reads, self._uses
        is_pure, is_cut, is_short = self._is_pure, self._is_cut, self._is_short
        self._head, self._reach, self._lowest, self.reads, self._uses = depth + 1, depth, self.level, [], []
        self._is_pure, self._is_cut, self._is_short = True, False, False
        start = self._trail.mark()
        self._steps += 1
        try:
            if self._steps > self._next_check:
                self._check()
            self._active[key] = depth
            found = goal.query.find(*goal.arguments)
            del self._active[key]
            answer: CycleResult = goal
            if self._is_short or not self._is_pure:
                answer = CycleResult(found, (), (), 0, 0)
            answer.found, answer.height, answer.caller_levels = found, self._reach - depth, self.level - self._lowest
            answer.reads = tuple(set(self.reads)) if len(self.reads) > 1 else tuple(self.reads)
            answer.uses = tuple(set(self._uses)) if len(self._uses) > 1 else tuple(self._uses)
            uses.append(answer)
            if not self._is_pure:
                self._store_in_cycle(key, depth, answer, start)
            elif self._is_short:
                self._at_level[key] = answer
        except BaseException as error:
            self._active.pop(key, None)
            reads += self.reads
            uses += self._uses
            if depth or not isinstance(error, _ExhaustedError):
                raise
            found = goal.query.none
        finally:  # restore the state of the outer query, merged with that of this query
            self.reads, self._uses = reads, uses
            if head < self._head:  # noqa: PLR1730 faster than calling min
                self._head = head
            if reach > self._reach:  # noqa: PLR1730 see above
                self._reach = reach
            if lowest < self._lowest:  # noqa: PLR1730 see above
                self._lowest = lowest
            self._is_cut = is_cut or (self._is_cut and not self._is_pure)
            self._is_pure = self._is_pure and is_pure
            self._is_short = self._is_short or is_short
        return found

    def _check(self) -> None:
        """Check the limits and schedule the next check.

        Raises:
            LimitExceededError: the file needs too many queries or too much time.
        """
        if self._steps > self.limits.steps:
            raise LimitExceededError(f"limit: resolving names takes more than {self.limits.steps:,} steps")
        if time.monotonic() > self._ends_at:
            raise LimitExceededError(f"{TIME_OUT}resolving names takes more than {self.limits.file_s:g} s")
        self._next_check = min(self._steps + _STEPS_PER_CHECK, self.limits.steps)

    def _store_in_cycle(self, key: _Key, depth: int, answer: CycleResult, start: Mark) -> None:
        trail = self._trail
        if self._head < depth:
            self._partial[key] = answer, self._head
        elif not self._is_cut:
            self._of_file[key] = answer
            trail.stored.append((key, answer))
        if self._head == depth:
            self._partial = {one: part for one, part in self._partial.items() if part[1] < depth}
        trail.steps += 1
        trail.followed.append(key)
        if trail.steps > _STEPS and depth:
            raise _ExhaustedError
        *_, steps = start
        if self._head >= depth and trail.steps - steps >= MIN_STEPS:
            course = Course(self._lowest, self._is_cut, self._is_short)
            self._cycles.remember(key, trail.cycle(start, answer, depth, course))


class Memo(Generic[_P, _Found]):
    """A memoized function of the program that uses no queries; its answers record only the keys they read."""

    __slots__ = ("_find", "_known", "_table")

    def __init__(self, table: Table, find: Callable[_P, _Found]) -> None:
        self._table, self._find = table, cast("Callable[..., _Found]", find)
        self._known: dict[tuple[Any, ...], tuple[Sequence[int], _Found]] = {}  # by arguments

    def __call__(self, *arguments: _P.args, **_: _P.kwargs) -> _Found:
        """Return the memoized result and record its reads."""
        table, known = self._table, self._known.get(arguments)
        if known is None:
            reads, table.reads = table.reads, []
            try:
                found = self._find(*arguments)
                known = self._known[arguments] = tuple(set(table.reads)), found
            finally:
                table.reads = reads
        table.reads += known[0]
        return known[1]
