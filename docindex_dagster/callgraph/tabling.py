"""Queries that lead to one another, and their answers in a table: demand-driven evaluation with tabling.

A query is a function of the program; its answer is stored under its arguments when it is complete (Tamaki and Sato, OLD
resolution with tabulation, 1986; compilers know it as a query system). Each answer has what was read for it, so that a
file is resolved again when that changes, and no sooner.

Most answers follow from the program alone: they are the same for all files. A query that leads back to itself has no
answer there; what is found in such a cycle (a strongly connected component of queries) depends on where it was entered.
It holds for one file, so that a file gives the same edges whether it is resolved with all others or alone; another file
takes it where it would find the same (`cycles`).

What a parameter is may follow from what callers give, and what they give from what their callers give: call strings,
cut at a length k (Sharir and Pnueli, Two approaches to interprocedural data flow analysis, 1981). So many times callers
may still be asked, the `level`; an answer for which they were asked less often holds for other levels, too.
"""

import math
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, ParamSpec, TypeVar, TypeVarTuple, cast

from docindex_dagster.callgraph.cycles import FEWEST_STEPS, Answer, Course, Cycle, Cycles, Mark, Trail, is_disjoint

_P = ParamSpec("_P")
_Found = TypeVar("_Found")
_Arguments = TypeVarTuple("_Arguments")
_Key = tuple[int, "Goal"]  # the level, and what is asked at it
_LEVEL = 2  # times that callers are asked, one after the other
_DEPTH = 60  # of queries that lead to queries
_STEPS = 30_000  # in cycles, a file
_STEPS_A_LOOK = 256  # at the clock
_MOST_GOALS = 400_000  # counted by all arguments under which they are asked for
_NOT_MET = object()
_UNANSWERED = 1_000  # levels, more than there are

TIME_OUT = "time-out: "
"""What the message of an `OverLimitError` begins with where time ran out."""


class _ExhaustedError(Exception):
    """The cycles of a file were followed for too long."""


class OverLimitError(Exception):
    """A file takes more than it may; the message says of what."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much the names of a file may take, and the files of a source together."""

    steps: int = 1_000_000  # queries that are followed, a file
    file_s: float = 60.0  # elapsed
    source_s: float = 600.0  # elapsed


class Goal(Answer):
    """A query with its arguments, and its answer once there is one that holds for all files and levels.

    It stands for both wherever they are a key, since arguments are slow to hash.
    """

    __slots__ = ("arguments", "is_new", "query")

    def __init__(self, query: "Query[Any, Any]", arguments: tuple[Any, ...]) -> None:
        self.query, self.arguments, self.asked = query, arguments, _UNANSWERED
        self.is_new = True  # nothing followed it yet


class Query(Generic[_P, _Found]):
    """A function whose answers are tabled; `none` is its answer where it leads back to itself, or too deep."""

    __slots__ = ("find", "goals", "name", "none", "same", "table")

    def __init__(self, table: "Table", name: str, none: _Found) -> None:
        self.table, self.name, self.none = table, name, none
        self.goals: dict[tuple[Any, ...], Goal] = {}  # by their arguments
        self.find: Callable[_P, _Found] = self._unanswered
        self.same: Callable[..., tuple[Any, ...]] | None = None  # the arguments under which some others are answered
        table.queries.append(self)

    def answered_by(self, find: Callable[_P, _Found], same: Callable[_P, tuple[Any, ...]] | None = None) -> None:
        """Name the function that finds the answer; `same` gives one for all arguments that mean the same."""
        self.find, self.same = find, same

    def close(self) -> None:
        """Let go of all answers, and of the function that finds them."""
        self.goals, self.find, self.same = {}, self._unanswered, None

    def __call__(self, *arguments: _P.args, **_: _P.kwargs) -> _Found:
        """What is found.

        Raises:
            OverLimitError: the queries of the file are too many, or take too long.
        """
        table, goal = self.table, self.goals.get(arguments)
        if goal is None:
            goal = self._added(arguments)
        if goal.asked <= table.level and table.takes(goal):
            known: _Found = goal.found
            return known
        found: _Found = table.unsettled(goal)
        return found

    def _added(self, arguments: tuple[Any, ...]) -> Goal:
        """The goal of arguments that were not asked for before."""
        same = arguments if self.same is None else self.same(*arguments)
        goal = self.goals.get(same) or self.goals.setdefault(same, Goal(self, same))
        self.goals[arguments] = goal
        return goal

    def _unanswered(self, *_: _P.args, **__: _P.kwargs) -> _Found:
        raise NotImplementedError(f"nothing answers {self.name}")


class Table:
    """The answers of all queries, and the course of those that are being followed."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.queries: list[Query[Any, Any]] = []
        self.level = _LEVEL
        # Of the query that is followed, the keys that were looked at, and the answers that were taken.
        self.reads: list[int] = []
        self._uses: list[Answer] = []
        self._at_level: dict[_Key, Answer] = {}  # answers that hold for one level alone
        self._of_file: dict[Hashable, Answer] = {}
        self._partial: dict[Hashable, tuple[Answer, int]] = {}  # in a cycle that is still open
        self._active: dict[_Key, int] = {}
        self._cycles = Cycles()
        self._trail = Trail()
        self._steps = 0
        self._next_check = 0  # after so many steps
        self._ends_at = math.inf
        # How it went so far below the query that is followed:
        self._head = self._reach = 0  # the outermost place that is come back to, and the deepest place
        self._lowest = _LEVEL
        self._is_pure = True  # no cycle
        self._is_cut = self._is_short = False  # it led too deep; callers were not asked that could have been

    def start(self) -> None:
        """Begin with a file."""
        self._of_file, self._partial = {}, {}
        self._steps, self._next_check = 0, min(_STEPS_A_LOOK, self.limits.steps)
        self._ends_at = time.monotonic() + self.limits.file_s
        self._trail = Trail()
        self._cycles.start()
        self.reads, self._uses = [], []
        if sum(len(query.goals) for query in self.queries) > _MOST_GOALS:
            self.forget()

    def forget(self) -> None:
        """Let go of all answers; what is asked for again is found again. Not while a query is followed."""
        self._at_level, self._of_file, self._partial = {}, {}, {}
        self._cycles, self._trail = Cycles(), Trail()
        self.reads, self._uses = [], []
        for query in self.queries:
            query.goals = {}

    def close(self) -> None:
        """Let go of all answers."""
        self.forget()
        for query in self.queries:
            query.close()
        self.queries.clear()

    def looked(self) -> list[int]:
        """The keys that were looked at since the start, sorted."""
        keys, seen, fresh = set(self.reads), set[Answer](), set(self._uses)
        while fresh:
            seen |= fresh
            keys.update(*[answer.reads for answer in fresh])
            fresh = set(chain.from_iterable([answer.uses for answer in fresh])) - seen
        return sorted(keys)

    def asking_callers(self, none: _Found, find: Callable[[*_Arguments], _Found], *arguments: *_Arguments) -> _Found:
        """What is found where callers may be asked once less; `none` where they may not be asked at all."""
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
        """What is found where no callers are asked."""
        level, lowest, is_short = self.level, self._lowest, self._is_short
        self.level = 0
        try:
            return find(*arguments)
        finally:
            self.level, self._lowest, self._is_short = level, lowest, is_short

    def takes(self, answer: Answer) -> bool:
        """Take an answer that is tabled, and say so; not where it would lead too deep."""
        reach = len(self._active) + answer.height
        if reach > _DEPTH:
            return False
        self._uses.append(answer)
        if reach > self._reach:  # noqa: PLR1730 a call of max takes longer
            self._reach = reach
        if answer.asked:
            self._lowest = min(self._lowest, self.level - answer.asked)
        return True

    def unsettled(self, goal: Goal) -> Any:
        """What is found where no answer is tabled that holds for all levels."""
        depth, key = len(self._active), (self.level, goal)
        if goal.is_new:
            goal.is_new = False
        elif (met := self._met(goal, key, depth)) is not _NOT_MET:
            return met
        if depth > _DEPTH:
            self._trail.followed.append(key)
            self._is_cut = True
            self._is_pure = False
            return goal.query.none
        return self._followed(goal, key, depth)

    def _met(self, goal: Goal, key: _Key, depth: int) -> Any:
        """What is found without following a goal, which may have an answer for one level or file, or be followed."""
        answer = self._at_level.get(key)
        if answer is not None:
            self._is_short = True
            if self.takes(answer):
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
            if self._is_same(cycle, depth):
                return self._taken(cycle, depth)
        return _NOT_MET

    def _is_same(self, cycle: Cycle, depth: int) -> bool:
        """Whether a cycle would be the same again if it were followed, to its end."""
        return (
            self._trail.steps + cycle.steps <= _STEPS
            and cycle.is_same(depth, _DEPTH, self._of_file)
            and is_disjoint(self._active, cycle.followed)
            and is_disjoint(self._partial, cycle.followed)
        )

    def _taken(self, cycle: Cycle, depth: int) -> object:
        """What was found in a cycle, with all that following it again would leave behind."""
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

    def _followed(self, goal: Goal, key: _Key, depth: int) -> Any:
        head, reach, lowest, reads, uses = self._head, self._reach, self._lowest, self.reads, self._uses
        is_pure, is_cut, is_short = self._is_pure, self._is_cut, self._is_short
        self._head, self._reach, self._lowest, self.reads, self._uses = depth + 1, depth, self.level, [], []
        self._is_pure, self._is_cut, self._is_short = True, False, False
        begin = self._trail.mark()
        self._steps += 1
        try:
            if self._steps > self._next_check:
                self._check()
            self._active[key] = depth
            found = goal.query.find(*goal.arguments)
            del self._active[key]
            answer: Answer = goal
            if self._is_short or not self._is_pure:
                answer = Answer(found, (), (), 0, 0)
            answer.found, answer.height, answer.asked = found, self._reach - depth, self.level - self._lowest
            answer.reads = tuple(set(self.reads)) if len(self.reads) > 1 else tuple(self.reads)
            answer.uses = tuple(set(self._uses)) if len(self._uses) > 1 else tuple(self._uses)
            uses.append(answer)
            if not self._is_pure:
                self._store_of_cycle(key, depth, answer, begin)
            elif self._is_short:
                self._at_level[key] = answer
        except BaseException as error:
            self._active.pop(key, None)
            reads += self.reads
            uses += self._uses
            if depth or not isinstance(error, _ExhaustedError):
                raise
            found = goal.query.none
        finally:  # the outer query goes on, which it led as far as what it asked
            self.reads, self._uses = reads, uses
            if head < self._head:  # noqa: PLR1730 a call of min takes longer
                self._head = head
            if reach > self._reach:  # noqa: PLR1730 likewise
                self._reach = reach
            if lowest < self._lowest:  # noqa: PLR1730 likewise
                self._lowest = lowest
            self._is_cut = is_cut or (self._is_cut and not self._is_pure)
            self._is_pure = self._is_pure and is_pure
            self._is_short = self._is_short or is_short
        return found

    def _check(self) -> None:
        """Look whether more queries may be followed, and after how many to look again.

        Raises:
            OverLimitError: they are too many, or take too long.
        """
        if self._steps > self.limits.steps:
            raise OverLimitError(f"limit: its names take over {self.limits.steps:,} steps to follow")
        if time.monotonic() > self._ends_at:
            raise OverLimitError(f"{TIME_OUT}its names take over {self.limits.file_s:g} s to follow")
        self._next_check = min(self._steps + _STEPS_A_LOOK, self.limits.steps)

    def _store_of_cycle(self, key: _Key, depth: int, answer: Answer, begin: Mark) -> None:
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
        *_, steps = begin
        if self._head >= depth and trail.steps - steps >= FEWEST_STEPS:
            course = Course(self._lowest, self._is_cut, self._is_short)
            self._cycles.remember(key, trail.cycle(begin, answer, depth, course))


class Memo(Generic[_P, _Found]):
    """A function of the program that asks no query: what it looked at is all that its answer has to remember."""

    __slots__ = ("_find", "_known", "_table")

    def __init__(self, table: Table, find: Callable[_P, _Found]) -> None:
        self._table, self._find = table, cast("Callable[..., _Found]", find)
        self._known: dict[tuple[Any, ...], tuple[Sequence[int], _Found]] = {}  # by arguments

    def __call__(self, *arguments: _P.args, **_: _P.kwargs) -> _Found:
        """What is found."""
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
