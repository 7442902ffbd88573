"""Each command of the installed wheel prints its expected output, with each Python.

This module has the quick checks. `test_installed` covers commands whose output takes more than a word to check.
"""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer

from docindex_dagster.cli.app import Commands, app
from docindex_dagster.llm.chat import Delta, Usage
from tests.installation.installed import LONGEST_S, Installed
from tests.llm.chats import MODEL, OPENAI, serving
from tests.llm.server import KEY

SCIP = Path(__file__).parents[1] / "fixtures/scip"
# Related command lines, in order, with a part of their output. {shelf} is a folder with a page.
LINES = {
    "a project is begun": (("init {shelf} --dry-run", "would write"),),
    "what is similar": (("similar src/sessions.py", "src/basket.py"),),
    "sources": (
        ("source add {shelf}", "added library/shelf"),
        ("source list", "library/shelf"),
        ("index library/shelf", "1 file, 1 chunk"),
        ("source use library/shelf", "searches use library/shelf"),
        ("source use --all", "searches use all sources"),
        ("source remove library/shelf", "removed library/shelf"),
    ),
    "generations": (
        ("source add {shelf}", "added library/shelf"),
        ("index", "library/shelf: 1 file"),
        ("rollback", "restored generation 1"),
        ("rollback", "restored generation 2"),
        ("prune", "freed"),
        ("source remove shelf", "removed library/shelf"),
    ),
    "trust": (("trust", "requests nothing that requires trust"),),
    "projects": (("project list", "project"), ("project forget project", "from the list")),
    "agents": (
        ("agents list", ".mcp.json"),
        ("agents show claude", '"mcpServers"'),
        ("agents add claude", "wrote .mcp.json"),
        ("agents remove claude", "removed .mcp.json"),
    ),
    "the graph": (
        ("graph callees price", "price calls src/sessions.py::sign_session"),
        ("graph neighbors price", "src/basket.py defines price"),
        ("graph path price sign_session", "price calls src/sessions.py::sign_session"),
        ("graph impact sign_session", "price calls src/sessions.py::sign_session"),
        ("graph cycles", "no import cycles"),
        ("graph stats", "resolved"),
        ("graph export", "<graphml"),
    ),
    "the index of a compiler": (
        ("source add {scip}/python", "added library/python"),
        ("index python", "library/python: "),
        ("graph import {scip}/python.scip library/python", "of scip-python"),
    ),
    "memory": (
        ("memory ingest --session two closed", "memory/main  two"),
        ("memory status", "memory/main"),
        ("memory domains", "memory/main"),
        ("memory export", '"session":"two"'),
        ("memory fold", "1 message"),
        ("memory forget --session two", "forgot 1 message"),
        ("memory erase", "erased 1 message"),
    ),
}
ELSEWHERE = {
    *("ask", "watch"),  # tested below
    *("index", "search", "status", "show", "why", "log", "doctor", "evaluate", "help", "version", "support"),
    *("init", "serve", "ui", "mcp", "graph callers", "memory ingest", "memory recall"),
}
"""Commands covered by other tests of the wheel."""


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    (tmp_path / "shelf").mkdir()
    (tmp_path / "shelf/books.md").write_text("# Books\n\nThose about pumps stand here.\n")
    return tmp_path / "shelf"


@pytest.fixture
def project(installed: Installed, repository: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    installed.run(folder, "index", str(repository), "--yes")
    return folder


@pytest.mark.dist
@pytest.mark.parametrize("lines", LINES.values(), ids=LINES)
def test_commands_print_what_they_are_for(lines, installed, project, shelf):
    for line, word in lines:
        printed = installed.run(project, *line.format(shelf=shelf, scip=SCIP).split())
        assert word in printed, line


@pytest.mark.dist
def test_a_question_is_answered(installed, project):
    with serving() as server:
        server.replies = [OPENAI.reply(Delta("A cookie is signed with a key [1]."), Usage(120, 30))]
        address = server.address + OPENAI.prefix
        values = {"PROVIDER": OPENAI.provider, "MODEL": MODEL, "BASE_URL": address, "API_KEY": KEY}
        before = ("env", *(f"DOCINDEX_LLM__{name}={value}" for name, value in values.items()))
        printed = installed.run(project, "ask", "how is a cookie signed?", before=before)
    assert printed.startswith("A cookie is signed with a key [1].")


@pytest.mark.dist
def test_an_edit_is_indexed_as_it_happens(installed, project, shelf):
    installed.run(project, "source", "add", str(shelf))
    with watching(installed, project) as process:
        wanted = iter(process.stdout.readline, "")
        assert next(wanted).startswith("watching 2 sources")
        assert any("library/shelf: 1 file" in line for line in wanted)
        (shelf / "valves.md").write_text("# Valves\n\nThey let steam out.\n")
        assert any("library/shelf: 2 files" in line for line in wanted)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=LONGEST_S) == 0


@contextmanager
def watching(installed: Installed, folder: Path) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [installed.docindex, "watch"], cwd=folder, env=installed.variables, text=True, stdout=subprocess.PIPE
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_no_command_is_left_out():
    lines = [f"{line} " for group in LINES.values() for line, _ in group]
    here = {name for name in commands() if any(line.startswith(f"{name} ") for line in lines)}
    assert sorted({*commands()} - here - ELSEWHERE) == []


def commands() -> list[str]:
    """Return all commands; those of a group include the group name."""
    top = typer.main.get_command(app)
    assert isinstance(top, Commands)
    context = typer.Context(top)
    found = []
    for name in top.list_commands(context):
        command = top.get_command(context, name)
        below = getattr(command, "commands", None)
        found += [f"{name} {one}" for one in below] if below else [name]
    return found
