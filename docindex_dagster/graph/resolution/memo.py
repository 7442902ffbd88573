"""Answers that are kept, each with what was looked at to find it.

Most follow from the program alone: they are the same for all files, so they are kept over all. What was found in
a cycle depends on where that was entered. It is kept for one file, so that a file gives the same edges whether it is
resolved with all others or alone; another file takes it where it would find the same (`cycles`).

What a parameter is may follow from what callers give, and what they give from what their callers give. So many times
callers may be asked, the `level`; an answer for which they were asked less often than that holds for other levels, too.
"""

import math
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar, TypeVarTuple, cast

from docindex_dagster.graph.resolution.cycles import (
    FEWEST_STEPS,
    Answer,
    Course,
    Cycle,
    Cycles,
    Mark,
    Trail,
    is_disjoint,
)
from docindex_dagster.graph.source_graph import TIME_OUT

_Found = TypeVar("_Found")
_Arguments = TypeVarTuple("_Arguments")
_LEVEL = 2  # times that callers are asked, one after the other
_DEPTH = 60  # of questions that lead to questions
_STEPS = 30_000  # in cycles, a file
_STEPS_A_LOOK = 256  # at the clock
_MOST_KEPT = 300_000  # answers


Looks = list[int]
"""The keys that are looked at."""


class _ExhaustedError(Exception):
    """The cycles of a file were followed for too long."""


class OverLimitError(Exception):
    """A file takes more than it may; the message says of what."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much the names of a file may take, and the files of a source together."""

    steps: int = 1_000_000  # questions that are followed, a file
    file_s: float = 60.0  # elapsed
    source_s: float = 600.0  # elapsed


class _Begin(NamedTuple):
    """How much there was when a question was begun."""

    looks: int
    taken: int
    trail: Mark


@dataclass(eq=False)
class Memo:
    """Answers to questions that lead to one another."""

    looks: Looks
    limits: Limits = field(default_factory=Limits)
    level: int = _LEVEL
    _taken: list[Answer[Any]] = field(default_factory=list)  # with what was looked at for them
    _kept: dict[Hashable, Answer[Any]] = field(default_factory=dict)  # by question, or level and question
    _of_file: dict[Hashable, Answer[Any]] = field(default_factory=dict)
    _partial: dict[Hashable, tuple[Answer[Any], int]] = field(default_factory=dict)  # in a cycle that is still open
    _active: dict[Hashable, int] = field(default_factory=dict)
    _course: Course = field(default_factory=lambda: Course(0, 0, _LEVEL))
    _cycles: Cycles = field(default_factory=Cycles)
    _trail: Trail = field(default_factory=Trail)
    _all_steps: int = 0
    _ends_at: float = math.inf

    def start(self) -> None:
        """Begin with a file."""
        self._of_file, self._partial = {}, {}
        self._all_steps, self._ends_at = 0, time.monotonic() + self.limits.file_s
        self._trail = Trail()
        self._cycles.start()
        self.looks.clear()
        self._taken.clear()
        if len(self._kept) > _MOST_KEPT:
            self._kept = {}

    def looked(self) -> list[int]:
        """The keys that were looked at since the start, sorted."""
        keys = set(self.looks)
        stack = list(dict.fromkeys(self._taken))
        seen = set(stack)
        while stack:
            answer = stack.pop()
            keys.update(answer.keys)
            for one in answer.answers:
                if one not in seen:
                    seen.add(one)
                    stack.append(one)
        return sorted(keys)

    def settled(
        self,
        question: Hashable,
        none: _Found,
        find: Callable[[*_Arguments], _Found],
        *arguments: *_Arguments,
    ) -> _Found:
        """What is found for a question; `none` where it leads back to itself or too deep.

        Raises:
            OverLimitError: the questions of the file are too many, or take too long.
        """
        answer = self._kept.get(question)
        if answer is not None and answer.asked <= self.level and self._takes(answer):
            found: _Found = answer.found
            return found
        return self._unsettled(question, none, find, arguments)

    def _takes(self, answer: Answer[Any]) -> bool:
        """Take an answer that is kept, and say so; not where it would lead too deep."""
        reach = len(self._active) + answer.height
        if reach > _DEPTH:
            return False
        self._taken.append(answer)
        course = self._course
        course.reach = max(course.reach, reach)
        course.lowest = min(course.lowest, self.level - answer.asked)
        return True

    def _unsettled(
        self,
        question: Hashable,
        none: _Found,
        find: Callable[[*_Arguments], _Found],
        arguments: tuple[*_Arguments],
    ) -> _Found:
        """The same where no answer is kept that holds for all levels."""
        depth, key = len(self._active), (self.level, question)
        answer = self._kept.get(key)
        if answer is not None:
            self._course.is_short = True
            if self._takes(answer):
                return cast("_Found", answer.found)
        answer = self._of_file.get(key)
        if answer is None and key in self._partial:
            answer, head = self._partial[key]
            self._course.head = min(self._course.head, head)
        if answer is not None:
            self._course.is_pure = False
            self._taken.append(answer)
            self._trail.known.append((key, answer))
            return cast("_Found", answer.found)
        if key in self._active:
            self._course.head = min(self._course.head, self._active[key])
            self._course.is_pure = False
            return none
        if depth > _DEPTH:
            self._trail.followed.append(key)
            self._course.is_cut = True
            self._course.is_pure = False
            return none
        for cycle in self._cycles.of(key):
            if self._is_same(cycle, depth):
                return cast("_Found", self._again(cycle, depth))
        return self._followed(question, depth, none, find, arguments)

    def _is_same(self, cycle: Cycle, depth: int) -> bool:
        """Whether a cycle would be the same again if it were followed, to its end."""
        return (
            self._trail.steps + cycle.steps <= _STEPS
            and cycle.is_same(depth, _DEPTH, self._of_file)
            and is_disjoint(self._active, cycle.followed)
            and is_disjoint(self._partial, cycle.followed)
        )

    def _again(self, cycle: Cycle, depth: int) -> object:
        """What was found in a cycle, with all that following it again would leave behind."""
        answer = cycle.answer
        self._all_steps += cycle.steps
        self._of_file.update(cycle.stored)
        self._trail.add(cycle)
        self._taken.append(answer)
        self._course.add(replace(cycle.course, head=self._course.head, reach=depth + answer.height))
        return answer.found

    def asking_callers(self, none: _Found, find: Callable[[*_Arguments], _Found], *arguments: *_Arguments) -> _Found:
        """What is found where callers may be asked once less; `none` where they may not be asked at all."""
        if not self.level:
            self._course.is_short = True
            return none
        self.level -= 1
        self._course.lowest = min(self._course.lowest, self.level)
        try:
            return find(*arguments)
        finally:
            self.level += 1

    def uncached(self, find: Callable[[*_Arguments], _Found], *arguments: *_Arguments) -> _Found:
        """What is found without callers."""
        level, lowest, is_short = self.level, self._course.lowest, self._course.is_short
        self.level = 0
        try:
            return find(*arguments)
        finally:
            self.level, self._course.lowest, self._course.is_short = level, lowest, is_short

    def _followed(
        self,
        question: Hashable,
        depth: int,
        none: _Found,
        find: Callable[[*_Arguments], _Found],
        arguments: tuple[*_Arguments],
    ) -> _Found:
        outer, self._course = self._course, Course(depth + 1, depth, self.level)
        begin = _Begin(len(self.looks), len(self._taken), self._trail.mark())
        key = self.level, question
        self._count()
        self._active[key] = depth
        try:
            found = find(*arguments)
            self._keep(question, depth, found, begin)
        except _ExhaustedError:
            if depth:
                raise
            found = none
        finally:
            self._active.pop(key, None)
            outer.add(self._course)
            self._course = outer
        return found

    def _count(self) -> None:
        """Note that one more question is followed.

        Raises:
            OverLimitError: they are too many, or take too long.
        """
        self._all_steps += 1
        if self._all_steps > self.limits.steps:
            raise OverLimitError(f"limit: its names take over {self.limits.steps:,} steps to follow")
        if self._all_steps % _STEPS_A_LOOK == 0 and time.monotonic() > self._ends_at:
            raise OverLimitError(f"{TIME_OUT}its names take over {self.limits.file_s:g} s to follow")

    def _keep(self, question: Hashable, depth: int, found: object, begin: _Begin) -> None:
        course, key = self._course, (self.level, question)
        del self._active[key]
        looks, taken = tuple(set(self.looks[begin.looks :])), tuple(set(self._taken[begin.taken :]))
        answer = Answer(found, looks, taken, course.reach - depth, self.level - course.lowest)
        del self.looks[begin.looks :]
        self._taken[begin.taken :] = [answer]
        if course.is_pure:
            self._kept[key if course.is_short else question] = answer
        else:
            self._keep_of_cycle(key, depth, answer, begin)

    def _keep_of_cycle(self, key: Hashable, depth: int, answer: Answer[Any], begin: _Begin) -> None:
        course, trail = self._course, self._trail
        if course.head < depth:
            self._partial[key] = answer, course.head
        elif not course.is_cut:
            self._of_file[key] = answer
            trail.stored.append((key, answer))
        if course.head == depth:
            self._partial = {one: part for one, part in self._partial.items() if part[1] < depth}
        trail.steps += 1
        trail.followed.append(key)
        if trail.steps > _STEPS and depth:
            raise _ExhaustedError
        if course.head >= depth and trail.steps - begin.trail.steps >= FEWEST_STEPS:
            self._cycles.keep(key, trail.cycle(begin.trail, answer, depth, course))
