"""The small project, indexed once, and the application that serves it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser
from starlette.testclient import TestClient

from docindex_dagster.cli import dagster_runs
from docindex_dagster.cli.dagster_runs import job_queue
from docindex_dagster.core.settings import load_settings
from docindex_dagster.search.live_index import Live
from docindex_dagster.serving.http.app import build_app
from docindex_dagster.serving.http.security import Access
from docindex_dagster.serving.http.served_project import ServedProject
from tests.serving.web import project

ADDRESS = "http://127.0.0.1:8090"
Reader = Callable[[str], LexborHTMLParser]


@contextmanager
def serving(root: Path, token: str | None = None) -> Iterator[TestClient]:
    """Yield a client of a server without jobs that sends a browser's headers."""
    settings = load_settings(root)
    access = Access(frozenset({"127.0.0.1"}), token)
    served = ServedProject(Live(settings), access, dagster_runs.outcomes, job_queue(settings, is_on=False))
    with TestClient(build_app(served), ADDRESS, headers={"Accept": "text/html"}, follow_redirects=False) as client:
        yield client


@pytest.fixture(scope="session")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the indexed project; tests must not write to it."""
    root = project.make(tmp_path_factory.mktemp("page"))
    project.index_all(root)
    return root


@pytest.fixture(scope="session")
def client(indexed: Path) -> Iterator[TestClient]:
    with serving(indexed) as made:
        yield made


@pytest.fixture(scope="session")
def read(client: TestClient) -> Reader:
    """Return a function that fetches an existing page."""

    def page(address: str) -> LexborHTMLParser:
        answer = client.get(address)
        assert answer.status_code == 200, answer.text[:2000]
        return LexborHTMLParser(answer.text)

    return page
