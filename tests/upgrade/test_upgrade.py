"""An index that an older version made opens, answers and is brought up to date by this one.

The older versions are the last three that are tagged `vX.Y.Z`; as long as there are fewer, commits that lie back in the
history stand for them, or those that DOCINDEX_TEST_COMMITS names. They run in the environment of this version.
"""

import json
import os
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from tests.upgrade.history import NoHistoryError, git, number, older

pytestmark = pytest.mark.upgrade
ROOT = Path(__file__).parents[2]


def docindex(code: Path, folder: Path, *arguments: str) -> str:
    """What a command of the version whose code lies there prints."""
    return python(code, folder, "-m", "docindex_dagster.cli", *arguments)


def python(code: Path, folder: Path, *arguments: str) -> str:
    """What Python prints, for which the code of a version comes before that which is installed."""
    variables = {**os.environ, "PYTHONPATH": str(code), "DOCINDEX_CEILING_DIRECTORIES": str(folder.parent)}
    command = [sys.executable, *arguments]
    ended = subprocess.run(
        command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, f"{arguments}: {ended.stdout}{ended.stderr}"
    return ended.stdout


@pytest.fixture(params=range(number()))
def code(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The code of an older version."""
    try:
        version = older(ROOT)[request.param]
    except NoHistoryError as error:
        pytest.fail(str(error))
    with tarfile.open(fileobj=BytesIO(git(ROOT, "archive", version, "docindex_dagster"))) as archive:
        archive.extractall(tmp_path / "code", filter="data")
    return tmp_path / "code"


def paths(found: str) -> list[str]:
    return [hit["path"] for hit in json.loads(found)]


def test_an_index_of_an_older_version_answers_and_is_brought_up_to_date(code, tmp_path):
    project = tmp_path / "project"
    (project / "manual").mkdir(parents=True)
    (project / "manual/pumps.md").write_text("# Pumps\n\nThe pump moves water from the well to the tank.\n")
    (project / "manual/pump.py").write_text('def prime_pump(litres):\n    """Fill the pump."""\n    return litres\n')
    (project / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "manual"\n')
    ran = python(code, project, "-c", "import docindex_dagster; print(docindex_dagster.__file__)")
    assert Path(ran.strip()).is_relative_to(code)
    docindex(code, project, "index")

    assert paths(docindex(ROOT, project, "search", "water from the well", "--json"))[0] == "pumps.md"

    (project / "manual/valves.md").write_text("# Valves\n\nThe valve lets steam out of the boiler.\n")
    docindex(ROOT, project, "index")
    assert paths(docindex(ROOT, project, "search", "steam out of the boiler", "--json"))[0] == "valves.md"
    assert paths(docindex(ROOT, project, "search", "water from the well", "--json"))[0] == "pumps.md"
    assert json.loads(docindex(ROOT, project, "doctor", "--json"))["findings"] == []
