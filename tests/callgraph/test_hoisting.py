"""What does not depend on a function is followed in the class or file around it, and means the same there."""

from pathlib import Path

import pytest

from docindex_dagster.callgraph.ir import THIS, Attribute, Call, Expression, Name, New, Union, path
from docindex_dagster.callgraph.resolver.hoisting import Hoisting
from docindex_dagster.callgraph.resolver.queries import Queries
from docindex_dagster.callgraph.table_reading import References
from docindex_dagster.callgraph.units import Chunks, Unit
from tests.graph.built import build_graph, references_of
from tests.graph.calls import PROGRAMS, chunks_of, programs

LANGUAGES = sorted({program.parent.name for program in programs()})


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_graph_is_that_of_following_everything_where_it_stands(language: str, monkeypatch: pytest.MonkeyPatch):
    chunks = chunks_of(PROGRAMS / language)
    graph = build_graph(chunks)

    def at_its_place(_self: Queries, _unit: Unit, scope: str, _expression: Expression) -> str:
        return scope

    monkeypatch.setattr(Queries, "hoisted", at_its_place)

    assert graph.triples.equals(build_graph(chunks).triples)


PYTHON = """
import os


class Store:
    def load(self, path):
        name = os.fspath(path)
        return self.cache.get(os.path.join(name))

    @classmethod
    def make(cls):
        return cls.load
"""


def unit_of(folder: Path) -> Unit:
    file_ir = References(references_of(chunks_of(folder)))["store.py"]
    return Unit("store.py", "python", file_ir, is_test=False, chunks=Chunks(["chunk"], [1], [0]))


@pytest.mark.parametrize(
    ("expression", "outermost"),
    [
        (Call(path("os.path.join")), ""),
        (New(Name("Store")), ""),
        (Attribute(THIS, "cache"), "Store"),
        (Call(path("name.strip")), "Store.load"),
        (Name("path"), "Store.load"),
        (Union((Name("name"), Name("os"))), "Store.load"),
    ],
)
def test_names_that_a_function_introduces_are_followed_in_it(tmp_path: Path, expression: Expression, outermost: str):
    (tmp_path / "store.py").write_text(PYTHON)
    hoisting = Hoisting(unit_of(tmp_path))

    assert hoisting.of("Store.load", expression) == outermost


def test_a_method_of_the_class_has_another_this(tmp_path: Path):
    (tmp_path / "store.py").write_text(PYTHON)
    hoisting = Hoisting(unit_of(tmp_path))

    assert hoisting.of("Store.make", Attribute(THIS, "load")) == "Store.make"
