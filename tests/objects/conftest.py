"""Bucket in memory, homes that share it, and a real Postgres."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from docindex_dagster.core.layout import Layout
from docindex_dagster.objects.bucket import Bucket
from tests.objects.postgres import Postgres, serving


@pytest.fixture
def bucket() -> Bucket:
    return Bucket("memory", MemoryStore())


@pytest.fixture
def publisher(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "publisher")


@pytest.fixture
def replica(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "replica")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with serving() as server:
        yield server
