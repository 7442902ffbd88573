"""A small project with a library, indexed once, and the application that serves it with telemetry."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from docindex_dagster.cli import dagster_runs
from docindex_dagster.cli.dagster_runs import job_queue
from docindex_dagster.core.settings import load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.search.live_index import Live
from docindex_dagster.serving.http.app import build_app
from docindex_dagster.serving.http.security import Access
from docindex_dagster.serving.http.served_project import ServedProject
from docindex_dagster.serving.telemetry.tracing import Tracing
from docindex_dagster.sources import registry

ADDRESS = "http://127.0.0.1:8090"
TANK = '''\
class Tank:
    """Holds water."""

    def fill(self, litres):
        """Fill the tank."""
        return pump(litres)


def pump(litres):
    """Move water from the well."""
    return litres
'''


def write_project(root: Path) -> Path:
    """Write a project with one library, and index nothing."""
    (root / "shop").mkdir(parents=True)
    (root / "shop" / "tank.py").write_text(TANK)
    (root / "shop" / "pumps.md").write_text("# Pumps\n\nHow a pump is started: open the valve first.\n")
    (root / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "shop"\n')
    return root


@pytest.fixture(scope="session")
def indexed(tmp_path_factory) -> Path:
    """Return the indexed project; tests must not write to it."""
    root = write_project(tmp_path_factory.mktemp("measured") / "project")
    settings = load_settings(root)
    for source in registry.sources(settings).values():
        index(settings, source, StaticEmbedder())
    return root


def served_of(root: Path, token: str | None = None) -> ServedProject:
    """Return the served project of a server without jobs."""
    settings = load_settings(root)
    access = Access(frozenset({"127.0.0.1"}), token)
    return ServedProject(Live(settings), access, dagster_runs.outcomes, job_queue(settings, is_on=False))


@contextmanager
def serving(root: Path, *, token: str | None = None, traces: Tracing | None = None) -> Iterator[TestClient]:
    """Yield a client of an application that serves a project without jobs."""
    with TestClient(
        build_app(served_of(root, token), traces=traces), base_url=ADDRESS, raise_server_exceptions=False
    ) as client:
        yield client


@pytest.fixture
def client(indexed: Path) -> Iterator[TestClient]:
    """Yield a client of an application that has received no requests yet."""
    with serving(indexed) as made:
        yield made


def samples(text: str) -> dict[str, float]:
    """Return the samples of a text in Prometheus format, keyed by name and labels as written there."""
    lines = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def reported(client: TestClient) -> dict[str, float]:
    """Return the samples of an application's `/metrics`."""
    answer = client.get("/metrics")
    assert answer.status_code == 200
    return samples(answer.text)


def call_tool(client: TestClient, name: str, **arguments: object) -> None:
    """Call an agent tool over HTTP."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    headers = {"Accept": "application/json, text/event-stream"}
    assert client.post("/mcp", json=call, headers=headers).status_code == 200


def families(text: str) -> list[tuple[str, str, str]]:
    """Return the name, type and help text of each metric in Prometheus format."""
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    return [
        (name, types[name], help_text) for name, help_text in re.findall(r"^# HELP (\S+) (.+)$", text, re.MULTILINE)
    ]
