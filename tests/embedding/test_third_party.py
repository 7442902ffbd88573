"""Embedders from other packages: the example from the documentation, installed with pip and used end to end."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout
from tests.examples import docindex, install

BROKEN = """
from docindex_dagster.core.errors import EmbeddingError

def fails(settings):
    raise EmbeddingError("the model is at the cleaner's: ask for it tomorrow")
"""
PUMP = "# The pump\n\nIt moves water from the cellar to the roof whenever the thermostat asks for it.\n"
LEDGER = "# The ledger\n\nEach invoice is booked on the day on which somebody signs it.\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the example, with two broken embedders."""
    folder = tmp_path_factory.mktemp("docindex-trigrams")
    broken = ("fails", "gone")
    return install(folder, "how-to/write-an-embedder.md", broken=broken, code=BROKEN)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, site: Path) -> Path:
    """Index a project whose settings name the example."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "pages").mkdir()
    (folder / "pages" / "pump.md").write_text(PUMP)
    (folder / "pages" / "ledger.md").write_text(LEDGER)
    (folder / "docindex.toml").write_text(
        '[[source]]\nkind = "library"\npath = "pages"\n\n[embedding]\nprovider = "trigrams"\ndimensions = 512\n'
    )
    assert docindex(folder, site, "index").returncode == 0
    return folder


def reported(result: subprocess.CompletedProcess[str]) -> str:
    return " ".join((result.stdout + result.stderr).split())


def test_the_example_of_the_documentation_embeds_with_what_the_settings_say(project):
    table = tables.read(Layout(project / ".docindex").table("embeddings", "library/pages"))

    assert set(table["model"].to_pylist()) == {"trigrams/letters-1/512"}
    assert np.allclose(np.linalg.norm(np.array(table["vector"].to_pylist(), np.float32), axis=1), 1, atol=1e-3)


def test_it_finds_by_its_vectors_what_is_misspelt(project, site):
    found = docindex(project, site, "search", "thermostatt watr", "--mode", "vector", "--json")

    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)[0]["path"] == "pump.md"


def test_its_index_is_searched_by_it_while_the_settings_name_another(project, site):
    found = docindex(
        project, site, "search", "thermostatt", "--mode", "vector", "--json", DOCINDEX_EMBEDDING__PROVIDER="static"
    )

    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)[0]["path"] == "pump.md"


def test_one_that_fails_stops_the_run_with_its_own_words(project, site):
    result = docindex(project, site, "index", DOCINDEX_EMBEDDING__PROVIDER="fails")

    assert result.returncode != 0
    assert "the model is at the cleaner's: ask for it tomorrow" in reported(result)
    assert "Traceback" not in reported(result)


def test_one_that_cannot_be_imported_is_reported(project, site):
    result = docindex(project, site, "index", DOCINDEX_EMBEDDING__PROVIDER="gone")

    assert result.returncode != 0
    assert "cannot load the embedding provider 'gone'" in reported(result)


def test_one_whose_package_is_gone_is_reported_with_those_that_are_there(project):
    result = docindex(project, None, "index")

    assert result.returncode != 0
    assert "embedding.provider" in reported(result)
    assert "'trigrams' not found" in reported(result)
    assert "'static'" in reported(result)
    assert "'minilm'" in reported(result)
