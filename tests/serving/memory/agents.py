"""Agents bound to a memory domain: one server process each, called through the official MCP client."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters, stdio_client

from docindex_dagster.core.settings import load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.sources import registry

Call = Callable[..., tuple[bool, str]]
STATION = '''\
def start_pump(valve):
    """Open the valve, then start."""
    valve.open()
    return "started"


def run_station(valve):
    return start_pump(valve)
'''
SETTINGS = '[[source]]\nkind = "library"\npath = "docs"\n\n[memory]\nper_second = 10000\n'


def write_project(root: Path) -> Path:
    """Write and index a library with a page and a program."""
    (root / "docs").mkdir()
    (root / "docs" / "pump.md").write_text("# Pumps\n\n## Start\n\nHow a pump is started: open the valve first.\n")
    (root / "docs" / "station.py").write_text(STATION)
    (root / "docindex.toml").write_text(SETTINGS)
    index_all(root)
    return root


def index_all(root: Path) -> None:
    settings = load_settings(root)
    for source in registry.sources(settings).values():
        index(settings, source, StaticEmbedder())


@contextmanager
def client(root: Path, *options: str) -> Iterator[tuple[Any, Client]]:
    """Start a server on standard input and output, with a client in its own thread."""
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "docindex_dagster.cli", "mcp", *options], cwd=root, env=dict(os.environ)
    )
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(stdio_client(server))) as made,
    ):
        yield portal, made


@contextmanager
def agent(root: Path, *options: str) -> Iterator[Call]:
    """Yield a function that calls a tool and returns whether it failed, and its text."""
    with client(root, *options) as (portal, made):

        def call(tool: str, **arguments: Any) -> tuple[bool, str]:
            result = portal.call(made.call_tool, tool, arguments)
            return bool(result.is_error), result.content[0].text

        yield call


def answer(call: Call, tool: str, **arguments: Any) -> str:
    """Call a tool, assert that it succeeds, and return its text."""
    is_error, text = call(tool, **arguments)
    assert not is_error, text
    return text
