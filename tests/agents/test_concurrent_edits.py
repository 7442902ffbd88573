"""Real processes edit one file of an agent at the same time, and none of them loses an edit of another."""

import json
import os
import random
import subprocess
import sys
import time

import pytest

ADD = """
import os, sys
from docindex_dagster.cli.agents import app
print("ready", flush=True)
sys.stdin.readline()
for name in sys.argv[1:]:
    if os.path.exists("enough"):
        break
    app(["add", "claude", "--command", "docindex", "--name", name], standalone_mode=False)
"""
EDITS = 30
PAUSE_S = 0.1  # at most, between two edits of another program


@pytest.fixture
def file(tmp_path, monkeypatch):
    """The file of Claude Code in a project."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "docindex.toml").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(project)
    (project / ".mcp.json").write_text("{}\n")
    return project / ".mcp.json"


def adding(names, **environment):
    """Start a process that runs `docindex agents add` once for each name, as soon as it gets a line."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", ADD, *names],
        env=os.environ | environment,
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


def replace(file, text):
    new = file.with_name("written-by-an-editor")
    new.write_text(text)
    new.replace(file)


def write_in_place(file, text):
    file.write_text(text)


@pytest.mark.parametrize("has_lock", [True, False])
def test_processes_of_docindex_keep_the_entries_of_each_other(file, tmp_path, has_lock):
    names = [[f"p{process}-{at}" for at in range(10)] for process in range(3 if has_lock else 2)]
    # The lock is beside the user's list of projects, so that users with lists of their own do not share it.
    homes = [tmp_path / "config" / ("" if has_lock else some[0]) for some in names]
    processes = [adding(some, XDG_CONFIG_HOME=str(home)) for some, home in zip(names, homes, strict=True)]
    start(processes)
    end(processes)

    found = json.loads(file.read_text())["mcpServers"]
    assert {name for some in names for name in some} - found.keys() == set()
    assert sorted(path.name for path in file.parent.iterdir()) == [".mcp.json", "CLAUDE.md", "docindex.toml"]


@pytest.mark.parametrize("write", [replace, write_in_place])
def test_what_another_program_writes_meanwhile_stays(file, write):
    process = adding([f"p-{at}" for at in range(1000)])
    start([process])
    chance = random.Random(1)
    for _ in range(EDITS):
        before = json.loads(file.read_text())
        write(file, json.dumps(before | {"edits": before.get("edits", 0) + 1}))
        time.sleep(chance.uniform(PAUSE_S / 4, PAUSE_S))
    (file.parent / "enough").touch()
    end([process])

    found = json.loads(file.read_text())
    assert found["edits"] == EDITS
    assert "mcpServers" in found
