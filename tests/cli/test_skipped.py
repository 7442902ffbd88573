"""`docindex status --skipped SOURCE` lists the files that a source skipped, by reason."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import index_in


def write(folder: Path) -> None:
    manual = folder / "manual"
    (manual / "yarn.lock").write_text("pump@1.0\n")
    (manual / ".env").write_text("KEY=1\n")
    (manual / "nothing.md").touch()
    for number in range(60):
        (manual / f"picture{number:02}.png").write_bytes(b"\x89PNG\r\n")


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory):
    return index_in(tmp_path_factory.mktemp("indexed"), write=write)


@pytest.fixture
def indexed(run_indexed):
    return run_indexed


def test_files_are_listed_by_reason(indexed):
    lines = indexed("status", "--skipped", "manual").out.splitlines()

    assert lines[:2] == ["always-skipped: 1 file", "  yarn.lock  9 bytes  *.lock"]
    assert "secret: 1 file" in lines
    assert "  .env  6 bytes  .env*" in lines
    assert "empty: 1 file" in lines


def test_of_very_many_the_first_are_listed_and_the_others_counted(indexed):
    lines = indexed("status", "--skipped", "library/manual").out.splitlines()

    assert "binary: 60 files" in lines
    assert len([line for line in lines if "picture" in line]) == 50
    assert "  and 10 more; list all with `docindex status --skipped library/manual --json`" in lines


def test_json_lists_all(indexed):
    found = json.loads(indexed("status", "--skipped", "manual", "--json").out)

    assert len(found) == 63
    assert found[0] == {"path": "yarn.lock", "size": 9, "rule": "always-skipped", "detail": "*.lock"}


def test_a_source_that_skips_nothing_says_so(run):
    run("index", "manual")
    assert run("status", "--skipped", "manual").out == "library/manual has no skipped files\n"


def test_a_source_that_is_not_known_or_not_indexed_is_an_error(run):
    run("source", "add", "manual")
    assert "library/manual is not indexed yet: run `docindex index library/manual`" in run(
        "status", "--skipped", "manual"
    ).err.replace("\n", " ")
    assert run("status", "--skipped", "nowhere").code == 1
