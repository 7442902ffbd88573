"""Tests of `docindex mcp --watch`: one process answers an agent and indexes saved files."""

import os
import sys
import time
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive_if_free
from docindex_dagster.runner import journal
from docindex_dagster.runner.entries import State

LONGEST_S = 60  # allows for slow machines; indexing takes about a second


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "pump.py").write_text("def start_pump():\n    return 'started'\n")
    (tmp_path / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "code"\n')
    return tmp_path


def server(root: Path, errors: Path) -> StdioServerParameters:
    shell = f"exec '{sys.executable}' -m docindex_dagster.cli mcp --watch 2>'{errors}'"
    return StdioServerParameters(command="/bin/sh", args=["-c", shell], cwd=root, env=dict(os.environ))


async def found(client: Client, name: str) -> bool:
    """Search until a name is found or the time is up, and return whether it was found."""
    ends_at = time.monotonic() + LONGEST_S
    while time.monotonic() < ends_at:
        result = await client.call_tool("search", {"query": name, "top_k": 1})
        if f"def {name}" in result.content[0].text:
            return True
        await anyio.sleep(0.1)
    return False


def processes_of(root: Path) -> list[str]:
    """Return the processes that run in a folder."""
    here = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() == root:
                here.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return here


def test_what_is_saved_is_found_in_the_same_session_by_a_run_in_the_journal(root, tmp_path):
    async def session() -> None:
        async with Client(stdio_client(server(root, tmp_path / "errors"))) as client:
            assert await found(client, "start_pump")
            (root / "code" / "valve.py").write_text("def open_valve():\n    return 'open'\n")
            assert await found(client, "open_valve")

    anyio.run(session)

    runs = [entry for _, entry in journal.runs(Layout(root / ".docindex"))]
    assert len(runs) >= 2
    assert {run.state for run in runs} == {State.SUCCEEDED}
    reported = (tmp_path / "errors").read_text()
    assert "watching 1 source" in reported
    assert "Traceback" not in reported
    ends_at = time.monotonic() + LONGEST_S
    while processes_of(root) and time.monotonic() < ends_at:
        time.sleep(0.1)
    assert processes_of(root) == []


def test_the_watching_is_left_to_a_process_that_does_it_already(root, tmp_path):
    async def session() -> None:
        async with Client(stdio_client(server(root, tmp_path / "errors"))) as client:
            result = await client.call_tool("status", {})
            assert "library/code" in result.content[0].text

    with exclusive_if_free(Layout(root / ".docindex").watch_lock, "another process") as is_ours:
        assert is_ours
        anyio.run(session)

    assert "another process watches this project" in (tmp_path / "errors").read_text()
    assert not (root / ".docindex" / "stores" / "CURRENT").exists()
