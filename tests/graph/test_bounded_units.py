"""A large source: no more units are held than are allowed, and the graph is the same."""

import pytest

from docindex_dagster.callgraph.program import Units
from docindex_dagster.callgraph.resolver import queries
from docindex_dagster.graph import build
from tests.graph.built import build_graph
from tests.graph.calls import PROGRAMS, chunks_of

MOST = 40  # statements; the programs have hundreds


@pytest.mark.parametrize("language", ["python", "cpp", "ruby", "rust", "typescript"])
def test_the_graph_is_the_same_where_few_units_are_held(language, monkeypatch):
    chunks = chunks_of(PROGRAMS / language)
    whole = build_graph(chunks)
    held: list[int] = []
    clear = Units.clear

    def noted(units: Units) -> None:
        held.append(units.statements)
        clear(units)

    monkeypatch.setattr(Units, "clear", noted)
    monkeypatch.setattr(build, "MOST_STATEMENTS", MOST)
    monkeypatch.setattr(queries, "MOST_STATEMENTS", MOST)

    bounded = build_graph(chunks)

    assert bounded.nodes.equals(whole.nodes)
    assert bounded.triples.equals(whole.triples)
    assert sum(statements > MOST for statements in held) > 3
