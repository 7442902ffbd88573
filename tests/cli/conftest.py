"""The command line, run as a user would: arguments in, output and an exit code out."""

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
def run(tmp_path, monkeypatch, capfd) -> Run:
    """Run `docindex ARGUMENTS` in a folder that holds a library `manual`."""
    monkeypatch.chdir(tmp_path)
    for name in ("DAGSTER_HOME", "DOCINDEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    manual = tmp_path / "manual"
    manual.mkdir()
    (manual / "guide.md").write_text(GUIDE)
    (manual / "pump.py").write_text(CODE)

    def invoke(*arguments: str) -> Output:
        monkeypatch.setattr(sys, "argv", ["docindex", *arguments])
        capfd.readouterr()
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capfd.readouterr()
        return Output(code, captured.out, captured.err)

    return invoke


@pytest.fixture
def upstream(tmp_path, git) -> Path:
    """A repository elsewhere, whose branch `feature/x` has a file more."""
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
