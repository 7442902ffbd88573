"""Tables fit into sixty columns: no cell is truncated or wrapped into a column of few characters."""

from itertools import pairwise
from pathlib import Path

import pytest

from docindex_dagster.core.settings import load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.sources import projects, registry
from tests.terminals import Terminal

LONG = "a-library-with-a-name-that-is-long-for-a-table"


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    root: Path = tmp_path_factory.mktemp("narrow")
    for name in ("manual", LONG):
        (root / name).mkdir()
        (root / name / "pump.py").write_text(
            "def prime_pump():\n    return open_valve()\n\n\ndef open_valve():\n    pass\n"
        )
    (root / "docindex.toml").write_text(
        f'[[source]]\nkind="library"\npath="manual"\n\n[[source]]\nkind="library"\npath="{LONG}"\n'
    )
    settings = load_settings(root)
    for source in registry.sources(settings).values():
        index(settings, source, StaticEmbedder())
    return root


@pytest.fixture(autouse=True)
def _listed(root, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))  # hides the projects of other tests
    projects.register(load_settings(root))


COMMANDS = (["status"], ["source", "list"], ["project", "list"], ["graph", "stats"])


@pytest.mark.parametrize(
    ("command", "columns"),
    [
        pytest.param(command, columns, id=f"{' '.join(command)}-{columns}")
        for command in COMMANDS
        for columns in ((60, 40) if command == ["status"] else (40,))
    ],
)
def test_a_table_fits_and_loses_nothing(root, command, columns):
    terminal = Terminal(command, root, columns)
    assert terminal.end() == 0, terminal.plain

    lines = [line.rstrip() for line in terminal.plain.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("index: /")]  # a path is never wrapped, so it can be copied
    assert max(map(len, lines)) <= columns
    together = "".join(line.strip() for line in lines)
    assert LONG in together
    assert "…" not in together
    # A cell wrapped into a narrow column leaves consecutive lines of a few characters.
    short = [len(line.strip()) < 6 for line in lines]
    assert not any(above and below for above, below in pairwise(short)), terminal.plain


def test_a_wide_terminal_shows_a_table(root):
    terminal = Terminal(["status"], root, 140)
    terminal.end()

    first = terminal.plain.splitlines()[0].split()
    assert first[:3] == ["source", "state", "files"]


@pytest.mark.parametrize(
    "command", [["search", "prime the pump"], ["show", "pump.py"], ["graph", "callers", "open_valve"]]
)
def test_results_are_readable_at_sixty_columns(root, command):
    terminal = Terminal(command, root, 60)
    assert terminal.end() == 0, terminal.plain
    assert "prime_pump" in terminal.plain
