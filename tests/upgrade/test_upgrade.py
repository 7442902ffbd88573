"""An index from an older version opens, answers and is updated by this version.

The older versions are the last three tags `vX.Y.Z`. If there are fewer, earlier commits from the history or those in
DOCINDEX_TEST_COMMITS replace them. Each version has its own environment.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from tests.installation.conftest import TOOLS
from tests.installation.installed import made
from tests.upgrade.history import NoHistoryError, git, number, older

pytestmark = pytest.mark.upgrade
ROOT = Path(__file__).parents[2]


THIS = Path(sys.executable).with_name("docindex")


def run(folder: Path, *command: str | Path) -> str:
    """Return the output of a command in a project."""
    variables = {**os.environ, "PYTHONPATH": "", "DOCINDEX_CEILING_DIRECTORIES": str(folder.parent)}
    ended = subprocess.run(
        command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, f"{command}: {ended.stdout}{ended.stderr}"
    return ended.stdout


@pytest.fixture(params=range(number()))
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """An environment with an older version and its dependencies."""
    try:
        version = older(ROOT)[request.param]
    except NoHistoryError as error:
        pytest.fail(str(error))
    with tarfile.open(fileobj=BytesIO(git(ROOT, "archive", version))) as archive:
        archive.extractall(tmp_path / "code", filter="data")
    made(tmp_path / "env", Path(sys.executable), tmp_path / "code", TOOLS)
    yield tmp_path / "env"
    shutil.rmtree(tmp_path / "env")  # a gigabyte


def paths(found: str) -> list[str]:
    return [hit["path"] for hit in json.loads(found)]


def test_an_index_of_an_older_version_answers_and_is_brought_up_to_date(environment, tmp_path):
    project = tmp_path / "project"
    (project / "manual").mkdir(parents=True)
    (project / "manual/pumps.md").write_text("# Pumps\n\nThe pump moves water from the well to the tank.\n")
    (project / "manual/pump.py").write_text('def prime_pump(litres):\n    """Fill the pump."""\n    return litres\n')
    (project / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "manual"\n')
    where = run(project, environment / "bin/python", "-c", "import docindex_dagster; print(docindex_dagster.__file__)")
    assert Path(where.strip()).is_relative_to(environment)
    run(project, environment / "bin/docindex", "index")

    assert paths(run(project, THIS, "search", "water from the well", "--json"))[0] == "pumps.md"

    (project / "manual/valves.md").write_text("# Valves\n\nThe valve lets steam out of the boiler.\n")
    run(project, THIS, "index")
    assert paths(run(project, THIS, "search", "steam out of the boiler", "--json"))[0] == "valves.md"
    assert paths(run(project, THIS, "search", "water from the well", "--json"))[0] == "pumps.md"
    assert json.loads(run(project, THIS, "doctor", "--json"))["findings"] == []
