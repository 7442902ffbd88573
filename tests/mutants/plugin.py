"""A plugin of pytest that takes a mechanism out before any test is collected: `pytest -p tests.mutants.plugin`."""

import os

from tests.mutants.mutant import take_out
from tests.mutants.table import MUTANTS

VARIABLE = "DOCINDEX_TEST_MUTANT"
"""The name of the mechanism; where it is empty, nothing is taken out."""


def pytest_configure() -> None:
    """Take out what the environment names.

    Raises:
        KeyError: the table has no such mechanism.
    """
    if name := os.environ.get(VARIABLE):
        take_out({mutant.name: mutant for mutant in MUTANTS}[name])
