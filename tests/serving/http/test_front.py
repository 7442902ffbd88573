"""What a server says of itself whose index is on other machines."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from docindex_dagster.core.settings import CONFIG_NAME
from tests.search import cell_server
from tests.search.cell_server import CellServer
from tests.serving.http.conftest import serving

TOKEN = "a-long-secret-of-all-servers-of-the-deployment"


@pytest.fixture
def cells(tmp_path: Path) -> Iterator[list[CellServer]]:
    with ExitStack() as stack:
        yield [stack.enter_context(cell_server.serving(one)) for one in cell_server.indexed(tmp_path / "cells")]


def front(root: Path, cells: list[CellServer]) -> Path:
    root.mkdir()
    urls = ", ".join(f'"{cell.url}"' for cell in cells)
    (root / CONFIG_NAME).write_text(f"[serve]\ncells = [{urls}]\n")
    return root


def test_it_is_well_while_a_cell_answers(tmp_path: Path, cells: list[CellServer]) -> None:
    cells[1].broken = frozenset({""})

    with serving(front(tmp_path / "front", cells)) as client:
        health, metrics = client.get("/api/v1/health"), client.get("/metrics")

    assert (health.status_code, health.json()["sources"]) == (200, 1)
    assert "docindex_ready 1.0" in metrics.text


def test_it_tells_nobody_without_a_token_what_the_cells_hold(tmp_path: Path, cells: list[CellServer]) -> None:
    with serving(front(tmp_path / "front", cells), token=TOKEN) as client:
        assert client.get("/api/v1/health").status_code == 200
        for cell in cells:
            cell.broken = frozenset({"", "AskCounts"})
        search = client.get("/api/v1/search?query=wheat&mode=bm25", headers={"Authorization": f"Bearer {TOKEN}"})
        health = client.get("/api/v1/health")

    assert search.status_code == health.status_code == 503
    assert cell_server.KEYS[0] in search.json()["detail"]
    assert "library" not in health.text
    assert cells[0].url not in health.text
