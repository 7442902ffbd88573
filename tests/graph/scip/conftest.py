"""Programs with a SCIP index."""

from pathlib import Path

import pytest

from tests.graph.scip.samples import Shop


@pytest.fixture
def python(tmp_path: Path) -> Shop:
    return Shop.copy(tmp_path, "python")


@pytest.fixture
def typescript(tmp_path: Path) -> Shop:
    return Shop.copy(tmp_path, "typescript")
