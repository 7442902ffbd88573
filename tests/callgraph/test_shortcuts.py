"""Optimizations of call resolution change no graph, in any language."""

from collections.abc import Callable

import pytest

from docindex_dagster.callgraph.ir import Expression
from docindex_dagster.callgraph.resolver import classes
from docindex_dagster.callgraph.resolver.queries import Queries
from docindex_dagster.callgraph.units import Unit
from tests.graph.built import build_graph
from tests.graph.calls import PROGRAMS, built, programs

LANGUAGES = sorted({program.parent.name for program in programs()})


def follow_everything_where_it_stands(patch: pytest.MonkeyPatch) -> None:
    def at_its_place(_self: Queries, _unit: Unit, scope: str, _expression: Expression) -> str:
        return scope

    patch.setattr(Queries, "hoisted", at_its_place)


def ask_every_class(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(classes, "lacks", lambda *_: False)


@pytest.mark.parametrize(
    ("without", "tables"),
    [
        (follow_everything_where_it_stands, ["triples"]),  # nodes record the files read, which differ
        (ask_every_class, ["triples", "nodes"]),
    ],
)
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_graph_is_that_of_doing_without(
    language: str,
    without: Callable[[pytest.MonkeyPatch], None],
    tables: list[str],
    monkeypatch: pytest.MonkeyPatch,
):
    chunks, graph = built(PROGRAMS / language)
    without(monkeypatch)

    slowly = build_graph(chunks)

    assert [table for table in tables if not getattr(graph, table).equals(getattr(slowly, table))] == []
