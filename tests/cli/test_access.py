"""Access permissions of files that commands write."""

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def _modes(bits: int) -> dict[str, int]:
    """Return the masked mode of each file and folder in the home."""
    found = [Path(".docindex"), *Path(".docindex").rglob("*")]
    return {str(path): path.stat().st_mode & bits for path in found if not path.name.endswith(".lock")}


def test_an_index_is_private_and_can_be_shared_with_a_group(run, monkeypatch):
    run("source", "add", "manual")
    run("index")
    assert not any(_modes(0o077).values())

    monkeypatch.setenv("DOCINDEX_ACCESS__GROUP", "true")
    Path("manual/guide.md").write_text("# Guide\n\nThe windmill lifts the water now, all day and all night.\n")
    run("index")

    assert [path for path, mode in _modes(0o040).items() if not mode] == []
    assert not any(_modes(0o027).values())
    run("source", "remove", "manual")
    assert Path("docindex.toml").stat().st_mode & 0o777 == 0o644
