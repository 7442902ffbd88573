"""The cache of units for the next edit: bounded, and valid only for the same chunks and references."""

import pyarrow as pa
import pytest

from docindex_dagster.callgraph.ir import FileIR, Return, Unknown
from docindex_dagster.callgraph.units import Chunks, Unit
from docindex_dagster.graph import build
from docindex_dagster.graph.build import build_graph, update_graph
from docindex_dagster.graph.reuse import RecentUnits
from tests.conftest import chunks_of, references_of

FILES = {
    "a.py": ["def alpha():\n    return beta()\n"],
    "b.py": ["def beta():\n    return 1\n"],
    "c.py": ["GAMMA = 3\n"],
}


def unit(statements: int = 0) -> Unit:
    returns = tuple(Return("", Unknown()) for _ in range(statements))
    return Unit("a.py", "python", FileIR(returns=returns), is_test=False, chunks=Chunks(["id"], [1], [0]))


def test_what_is_made_from_the_same_is_made_once():
    recent = RecentUnits()
    made, offers = recent.get("one", unit)

    again = recent.get("one", lambda: pytest.fail("it was made again"))

    assert again[0] is made
    assert again[1] is offers
    assert offers.unit is made
    assert recent.get("other", unit)[0] is not made


def test_no_more_statements_stay_than_are_allowed_and_those_used_last_do():
    recent = RecentUnits(most=25)
    first, _ = recent.get("first", lambda: unit(10))
    second, _ = recent.get("second", lambda: unit(10))
    recent.get("first", unit)

    recent.get("third", lambda: unit(10))

    assert recent.get("first", unit)[0] is first
    assert recent.get("second", lambda: unit(10))[0] is not second


def test_one_that_is_larger_than_all_that_may_stay_is_given_and_does_not_stay():
    recent = RecentUnits(most=5)

    large, _ = recent.get("large", lambda: unit(10))

    assert len(large.ir.returns) == 10
    assert recent.get("large", lambda: unit(10))[0] is not large


def test_units_give_what_a_file_offers_without_making_it_twice():
    recent, made = RecentUnits(), list[str]()

    def make(path: str) -> Unit:
        made.append(path)
        return unit()

    units = recent.units({"a.py": "one"}, make)

    assert units.offers("a.py").unit is units["a.py"]
    assert recent.units({"a.py": "one"}, make).offers("a.py") is units.offers("a.py")
    assert recent.units({"a.py": "changed"}, make)["a.py"] is not units["a.py"]
    assert made == ["a.py", "a.py"]


def test_a_second_edit_makes_the_units_of_files_that_changed_alone(monkeypatch):
    monkeypatch.setattr(build, "_recent", RecentUnits())
    made: list[str] = []

    class Noted(Unit):
        def __init__(self, path, *rest, **more):
            made.append(path)
            super().__init__(path, *rest, **more)

    monkeypatch.setattr(build, "Unit", Noted)

    def edited(text: str) -> tuple[pa.Table, pa.Table]:
        chunks = chunks_of({**FILES, "a.py": [text]})
        return chunks, references_of(chunks)

    first, second = edited("def alpha():\n    return beta() + 1\n"), edited("def alpha():\n    return beta() + 2\n")
    chunks = chunks_of(FILES)
    graph = update_graph(build_graph(chunks, references_of(chunks)), *first)
    made.clear()

    updated = update_graph(graph, *second)

    assert made == ["a.py"]
    assert updated.triples.equals(build_graph(*second).triples)
    assert updated.nodes.equals(build_graph(*second).nodes)
