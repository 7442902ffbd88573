"""Expressions that do not depend on a function are resolved in the enclosing class or file, with the same result."""

from pathlib import Path

import pytest

from docindex_dagster.callgraph.ir import THIS, Attribute, Call, Expression, Name, New, Union, path
from docindex_dagster.callgraph.resolver.hoisting import Hoisting
from docindex_dagster.callgraph.table import References
from docindex_dagster.callgraph.units import Chunks, Unit
from tests.graph.built import references_of
from tests.graph.calls import chunks_of

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
