"""A separate log for each test."""

import pytest

from docindex_dagster.core.layout import Layout
from docindex_dagster.memory.log import Log, open_log
from tests.memory.logs import DOMAIN


@pytest.fixture
def log(layout: Layout) -> Log:
    return open_log(layout, DOMAIN)
