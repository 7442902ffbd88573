"""Shell completion of sources, languages, kinds and projects from existing names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from docindex_dagster.cli import completion
from tests.cli.conftest import index_in


def write(folder: Path) -> None:
    (folder / "pumps").mkdir()
    (folder / "pumps/pump.go").write_text("package pump\n\nfunc Prime() {}\n")


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory):
    return index_in(tmp_path_factory.mktemp("indexed"), "pumps", write=write)


@pytest.fixture
def indexed(run_indexed):
    return run_indexed


def completed(line: str) -> list[str]:
    """Return what bash would offer for a line whose last word is incomplete."""
    words = line.split(" ")
    environment = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_CLI_COMPLETE": "complete_bash"}
    ended = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv[0] = 'cli'; from docindex_dagster.cli import main; main()"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not ended.stderr
    return ended.stdout.split()


def test_names_that_shells_evaluate_are_not_shown(tmp_path, monkeypatch):
    (tmp_path / "docindex.toml").write_text(
        "".join(
            f"[[source]]\nkind = 'library'\npath = '{name}'\n"
            for name in ("pumps", r"d\\$(touch x)", "d$(touch${IFS}x)", "-rf", "a;b", "`id`", "a b", "d{a,b}")
        )
    )
    monkeypatch.setenv("DOCINDEX_ROOT", str(tmp_path))

    assert completion.sources("") == ["library/pumps", "library/-rf", "pumps"]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("docindex search pump --source library/", ["library/manual", "library/pumps"]),
        ("docindex search pump -s pu", ["pumps"]),
        ("docindex search pump --language g", ["go"]),
        ("docindex search pump --kind cl", ["class"]),
        ("docindex search pump --mode li", ["literal"]),
        ("docindex index libr", ["library/manual", "library/pumps"]),
        ("docindex source remove pu", ["pumps"]),
        ("docindex status --skipped man", ["manual"]),
        ("docindex gr", ["graph"]),
        ("docindex search pump --source nothing", []),
    ],
)
def test_names_that_begin_so_are_shown(indexed, line, shown):
    assert completed(line) == shown


def test_projects_are_shown_by_their_names(indexed, tmp_path):
    indexed("index")
    assert tmp_path.name in completed(f"docindex project forget {tmp_path.name[:4]}")


def test_where_there_is_no_project_nothing_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert completed("docindex search pump --source x") == []
