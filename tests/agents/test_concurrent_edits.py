"""Concurrency tests: real docindex processes edit one agent file simultaneously, and no edit is lost."""

import json
import subprocess
import sys

import pytest

ADD = """
import sys
from docindex_dagster.cli.agents.commands import app
print("ready", flush=True)
sys.stdin.readline()
for name in sys.argv[1:]:
    app(["add", "claude", "--command", "docindex", "--name", name], standalone_mode=False)
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Return Claude Code's file in a project."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "docindex.toml").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(project)
    (project / ".mcp.json").write_text("{}\n")
    return project / ".mcp.json"


def adding(names):
    """Start a process that waits for a line, then runs `docindex agents add` once per name."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", ADD, *names],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    return process


def start(processes):
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()


def end(processes):
    for process in processes:
        _, err = process.communicate()
        assert process.returncode == 0, err


def test_processes_of_docindex_keep_the_entries_of_each_other(file):
    names = [[f"p{process}-{at}" for at in range(10)] for process in range(3)]
    processes = [adding(some) for some in names]
    start(processes)
    end(processes)

    found = json.loads(file.read_text())["mcpServers"]
    assert {name for some in names for name in some} - found.keys() == set()
    assert sorted(path.name for path in file.parent.iterdir()) == [".mcp.json", "CLAUDE.md", "docindex.toml"]
