"""A file reuses results found in a cycle only if it would find the same results itself."""

from collections.abc import Mapping, Sequence
from random import Random

import pytest

from docindex_dagster.callgraph import tabling
from docindex_dagster.callgraph.cycles import Cycles
from docindex_dagster.callgraph.tabling import Query, Table

Leads = Mapping[int, Sequence[int]]


class Asked:
    """Query over numbers that lead to other numbers. Counts the evaluations."""

    def __init__(self, leads: Leads) -> None:
        self.leads = leads
        self.table = Table()
        self.ask: Query[[int], tuple[int, ...]] = Query(self.table, "numbers", ())
        self.ask.answered_by(self._find)
        self.followed = 0

    def file(self, numbers: Sequence[int]) -> tuple[list[tuple[int, ...]], list[int]]:
        """Return the results for each number in a file, and the numbers read for them."""
        self.table.start()
        return [self.ask(number) for number in numbers], self.table.looked()

    def _find(self, number: int) -> tuple[int, ...]:
        self.followed += 1
        self.table.reads.append(number)
        found = [number]
        for lead in self.leads[number]:
            if lead % 7 == 0:
                found += self.table.asking_callers((), self.ask, lead)
            elif lead % 5 == 0:
                found += self.table.without_callers(self.ask, lead)
            elif len(found) < 4 or number % 3:  # the results so far decide which queries follow
                found += self.ask(lead)
        return tuple(dict.fromkeys(found))


RING: Leads = {number: [(number + 1) % 20, (number + 3) % 20] for number in range(20)}


def test_a_cycle_that_another_file_enters_at_the_same_place_is_followed_once():
    asked = Asked(RING)
    first = asked.file([1])
    followed = asked.followed

    assert [asked.file([1]) for _ in range(100)] == [first] * 100
    assert asked.followed == followed


def test_what_a_file_knows_decides_whether_it_is_followed_again():
    asked = Asked(RING)
    asked.file([1])
    followed = asked.followed

    assert asked.file([2, 1]) == Asked(RING).file([2, 1])
    assert asked.followed > followed


@pytest.mark.parametrize("most_steps", [40, 30_000])
@pytest.mark.parametrize("most_depth", [5, 12, 60])
@pytest.mark.parametrize("seed", range(8))
def test_each_file_finds_what_it_finds_alone(
    seed: int, most_depth: int, most_steps: int, monkeypatch: pytest.MonkeyPatch
):
    """Compare results and reads in random programs, with and without queries that exceed the depth limit."""
    random = Random(seed)
    leads = {number: random.choices(range(40), k=random.randint(0, 3)) for number in range(40)}
    files = [random.choices(range(40), k=6) for _ in range(40)]
    monkeypatch.setattr(tabling, "_DEPTH", most_depth)
    monkeypatch.setattr(tabling, "_STEPS", most_steps)
    together = Asked(leads)
    found = [together.file(file) for file in files]

    with monkeypatch.context() as anew:
        anew.setattr(Cycles, "of", lambda *_: ())
        without = Asked(leads)
        assert found == [without.file(file) for file in files]

    assert together.followed <= without.followed


def test_cycles_are_forgotten_where_they_are_many(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("docindex_dagster.callgraph.cycles._MAX_FOLLOWED", 0)
    asked = Asked(RING)
    first = asked.file([1])
    followed = asked.followed

    assert asked.file([1]) == first
    assert asked.followed == 2 * followed
