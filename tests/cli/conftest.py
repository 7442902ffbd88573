"""The command line, run as a user would: arguments in, output and exit code out."""

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from docindex_dagster import cli

GUIDE = "# Guide\n\n## Pumps\n\nThe pump moves water from the well to the tank. Prime it before the first use.\n"
CODE = 'def prime_pump(litres: int) -> None:\n    """Fill the pump with water."""\n    print(litres)\n'


@dataclass(frozen=True)
class Output:
    code: int
    out: str
    err: str


Run = Callable[..., Output]


@pytest.fixture
def run(tmp_path, tmp_path_factory, monkeypatch, capfd) -> Run:
    """Run `docindex ARGUMENTS` in a folder with an unindexed library `manual`."""
    user = tmp_path_factory.mktemp("user")
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(user / name))
    write_manual(tmp_path)
    enter(tmp_path, monkeypatch)

    def invoke(*arguments: str) -> Output:
        monkeypatch.setattr(sys, "argv", ["docindex", *arguments])
        capfd.readouterr()
        code = exit_code()
        captured = capfd.readouterr()
        return Output(code, captured.out, captured.err)

    return invoke


@pytest.fixture
def run_indexed(run: Run, indexed_once: Path, tmp_path: Path) -> Run:
    """Run `docindex ARGUMENTS` after `docindex index manual`."""
    shutil.copytree(indexed_once, tmp_path, dirs_exist_ok=True)
    return run


@pytest.fixture(scope="session")
def indexed_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return index_in(tmp_path_factory.mktemp("indexed"))


def index_in(folder: Path, *others: str, write: Callable[[Path], None] = lambda _: None) -> Path:
    """Index the library `manual`, plus whatever `write` creates, in a folder that tests copy."""
    write_manual(folder)
    write(folder)
    with pytest.MonkeyPatch.context() as patch:
        enter(folder, patch)
        patch.setattr(sys, "argv", ["docindex", "index", "manual", *others])
        assert exit_code() == 0
    return folder


def write_manual(folder: Path) -> None:
    manual = folder / "manual"
    manual.mkdir()
    (manual / "guide.md").write_text(GUIDE)
    (manual / "pump.py").write_text(CODE)


def enter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for name in ("DAGSTER_HOME", "DOCINDEX_HOME"):
        monkeypatch.delenv(name, raising=False)


def exit_code() -> int:
    try:
        cli.main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


@pytest.fixture
def upstream(tmp_path, git) -> Path:
    """A remote repository whose branch `feature/x` has one more file."""
    root: Path = tmp_path / "elsewhere" / "upstream"
    root.mkdir(parents=True)
    git(root, "init", "-q")
    (root / "pump.py").write_text(CODE)
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "Add the pump")
    git(root, "switch", "-q", "-c", "feature/x")
    (root / "valve.md").write_text("# Valves\n\nThe valve closes when the tank is full, and opens again by itself.\n")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "Add the valve")
    git(root, "switch", "-q", "main")
    return root
