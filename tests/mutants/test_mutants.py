"""The table of mechanisms matches the code: each row names existing code that can be disabled."""

import importlib
import inspect
from collections import Counter

import pytest

from tests.mutants.mutant import PACKAGE, Argument, Mutant, take_out
from tests.mutants.table import MUTANTS


def double(number: int) -> int:
    return 2 * number


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_what_a_row_names_is_there(mutant: Mutant):
    module, _, qualified = mutant.where.partition(":")
    owner = importlib.import_module(f"{PACKAGE}.{module}")
    *outer, name = qualified.split(".")
    for part in outer:
        owner = getattr(owner, part)

    assert inspect.getattr_static(owner, name) is not None


def test_each_row_has_a_name_of_its_own():
    assert [name for name, count in Counter(mutant.name for mutant in MUTANTS).items() if count > 1] == []


@pytest.mark.parametrize(("returns", "found"), [((), ()), (None, None), (Argument(0), 3)])
def test_a_function_that_is_taken_out_returns_what_the_table_says(monkeypatch, returns, found):
    monkeypatch.setattr("tests.mutants.mutant.PACKAGE", "tests.mutants")
    code = double.__code__

    take_out(Mutant("double", "twice a number", "test_mutants:double", returns))

    assert double(3) == found
    double.__code__ = code
