"""A small project with a library and a repository, indexed once, and the application that serves it."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from docindex_dagster.cli import dagster_runs
from docindex_dagster.cli.dagster_runs import job_queue
from docindex_dagster.cli.memory import memory_of
from docindex_dagster.core.settings import load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.search.live_index import Live
from docindex_dagster.serving.http.app import build_app
from docindex_dagster.serving.http.security import Access
from docindex_dagster.serving.http.served_project import ServedProject
from docindex_dagster.sources import registry
from tests.llm.chats import ChatServer
from tests.llm.chats import serving as chatting
from tests.serving.http.scripted import WORDS, script, use_model, write_settings

ADDRESS = "http://127.0.0.1:8090"
HERE = ("127.0.0.1", 50_000)
MANUAL = """\
# Pumps

## Start

How a pump is started: open the valve first, then prime it with water.

## Stop

How a pump is stopped: close the valve slowly, so that no water hammers.
"""
TANK = '''\
class Tank:
    """Holds water."""

    def fill(self, litres):
        """Fill the tank."""
        return pump(litres)


def pump(litres):
    """Move water from the well."""
    return check(litres)


def check(litres):
    """Refuse what is no amount."""
    if litres < 0:
        raise ValueError(litres)
    return litres
'''
Client = Callable[..., AbstractContextManager[TestClient]]


@pytest.fixture(scope="session")
def indexed(tmp_path_factory) -> Path:
    """Return the indexed project; tests must not write to it."""
    root: Path = tmp_path_factory.mktemp("served")
    (root / "manual" / "old").mkdir(parents=True)
    (root / "manual" / "pumps.md").write_text(MANUAL)
    for number in range(30):
        text = f"# Note {number}\n\nWhat was written down about the valve on day {number}.\n"
        (root / "manual" / "old" / f"note{number:02}.md").write_text(text)
    (root / "manual" / "yarn.lock").write_text("pump@1.0\n")
    shop = root / "shop"
    shop.mkdir()
    git(shop, "init", "-q")
    (shop / "tank.py").write_text(TANK)
    git(shop, "add", ".")
    git(shop, "commit", "-q", "-m", "Add the tank")
    (shop / "README.md").write_text("# Shop\n\nIt sells tanks.\n")
    git(shop, "add", ".")
    git(shop, "commit", "-q", "-m", "Say what the shop sells")
    write_settings(root)
    settings = load_settings(root)
    for source in registry.sources(settings).values():
        index(settings, source, StaticEmbedder())
    return root


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main")
    command = ["git", *identity, *arguments]
    environment = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "PATH": "/usr/bin:/bin"}
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env=environment)


@pytest.fixture
def root(indexed: Path, tmp_path: Path) -> Path:
    """Return a copy of the project that a test may change."""
    return Path(shutil.copytree(indexed, tmp_path / "project", symlinks=True))


@contextmanager
def serving(
    root: Path,
    *,
    token: str | None = None,
    host: str = "127.0.0.1",
    takes_jobs: bool = False,
    has_page: bool = True,
    client: Any = HERE,
    domain: str | None = None,
    may_read: Sequence[str] = (),
) -> Iterator[TestClient]:
    """Yield a client of the application that `docindex serve` creates for a project."""
    settings = load_settings(root)
    access = Access.of(host, token, settings.serve)
    live = Live(settings)
    memory = memory_of(live, domain, may_read)
    served = ServedProject(live, access, dagster_runs.outcomes, job_queue(settings, is_on=takes_jobs), memory)
    app = build_app(served, has_page=has_page)
    with TestClient(app, base_url=ADDRESS, client=client, raise_server_exceptions=False) as made:
        yield made


@pytest.fixture(scope="session")
def api(indexed: Path) -> Iterator[TestClient]:
    """Yield a client of a server without jobs and without a token."""
    with serving(indexed) as client:
        yield client


def command(root: Path, *arguments: str) -> Any:
    """Return the output of a command run with `--json`."""
    line = [sys.executable, "-m", "docindex_dagster.cli", *arguments, "--json"]
    return json.loads(subprocess.run(line, cwd=root, check=True, capture_output=True, text=True).stdout)


@pytest.fixture(scope="module")
def chats() -> Iterator[ChatServer]:
    """Yield a chat model server on the loopback device."""
    with chatting() as server:
        yield server


@pytest.fixture(scope="module")
def project(indexed: Path, tmp_path_factory: pytest.TempPathFactory, chats: ChatServer) -> Path:
    """Return a copy of the project that uses this model."""
    root = Path(shutil.copytree(indexed, tmp_path_factory.mktemp("asked") / "project", symlinks=True))
    use_model(root, chats.address)
    return root


@pytest.fixture(scope="module")
def started(project: Path) -> Iterator[TestClient]:
    with serving(project) as client:
        yield client


@pytest.fixture
def client(started: TestClient, chats: ChatServer) -> TestClient:
    """Yield a client of a server with a model that has received no requests yet."""
    chats.asked.clear()
    script(chats, *WORDS)
    return started
