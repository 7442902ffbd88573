"""Embedders of other packages: the example of the documentation, installed by pip and used from end to end."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from docindex_dagster import tables
from docindex_dagster.layout import Layout

PAGE = Path(__file__).parent.parent.parent / "docs" / "embedders.md"
BROKEN = """
from docindex_dagster.errors import EmbeddingError

def fails(settings):
    raise EmbeddingError("the model is at the cleaner's: ask for it tomorrow")
"""
PUMP = "# The pump\n\nIt moves water from the cellar to the roof whenever the thermostat asks for it.\n"
LEDGER = "# The ledger\n\nEach invoice is booked on the day on which somebody signs it.\n"


def blocks(language: str) -> list[str]:
    section = PAGE.read_text().partition("## An embedder of your own")[2]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example as pip installs it, and two embedders that cannot be used."""
    package = tmp_path_factory.mktemp("docindex-trigrams")
    project = next(block for block in blocks("toml") if "[project]" in block)
    project += 'fails = "docindex_trigrams_broken:fails"\ngone = "docindex_trigrams_broken:gone"\n'
    project += '[tool.hatch.build.targets.wheel]\ninclude = ["*.py"]\n'
    (package / "pyproject.toml").write_text(project)
    (package / "docindex_trigrams.py").write_text(blocks("python")[0])
    (package / "docindex_trigrams_broken.py").write_text(BROKEN)
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(target), str(package)]
    subprocess.run([*pip, *offline], check=True)
    return target


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, site: Path) -> Path:
    """A project whose settings name it, indexed."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "pages").mkdir()
    (folder / "pages" / "pump.md").write_text(PUMP)
    (folder / "pages" / "ledger.md").write_text(LEDGER)
    (folder / "docindex.toml").write_text(
        '[[source]]\nkind = "library"\npath = "pages"\n\n[embedding]\nprovider = "trigrams"\ndimensions = 512\n'
    )
    assert docindex(folder, site, "index").returncode == 0
    return folder


def docindex(project: Path, site: Path | None, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("DAGSTER", "DOCINDEX"))}
    path = os.pathsep.join(filter(None, (str(site or ""), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        [sys.executable, "-m", "docindex_dagster.cli", *arguments],
        cwd=project,
        env={**inherited, **variables, "PYTHONPATH": path},
        text=True,
        capture_output=True,
        check=False,
    )


def told(result: subprocess.CompletedProcess[str]) -> str:
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
    assert "the model is at the cleaner's: ask for it tomorrow" in told(result)
    assert "Traceback" not in told(result)


def test_one_that_cannot_be_imported_is_told(project, site):
    result = docindex(project, site, "index", DOCINDEX_EMBEDDING__PROVIDER="gone")

    assert result.returncode != 0
    assert "the embedding provider 'gone' cannot be loaded" in told(result)


def test_one_whose_package_is_gone_is_told_with_those_that_are_there(project):
    result = docindex(project, None, "index")

    assert result.returncode != 0
    assert "embedding.provider" in told(result)
    assert "there is no 'trigrams'" in told(result)
    assert "'static'" in told(result)
    assert "'minilm'" in told(result)
