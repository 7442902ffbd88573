"""Pytest plugin that disables a mechanism before collection: `pytest -p tests.mutants.plugin`."""

import os

from tests.mutants.mutant import take_out
from tests.mutants.table import MUTANTS

VARIABLE = "DOCINDEX_TEST_MUTANT"
"""Environment variable with the name of the mechanism. If it is empty, nothing is disabled."""


def pytest_configure() -> None:
    """Disable the mechanism that the environment names.

    Raises:
        KeyError: the table has no such mechanism.
    """
    if name := os.environ.get(VARIABLE):
        take_out({mutant.name: mutant for mutant in MUTANTS}[name])
