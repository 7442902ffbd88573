"""A bucket in memory, and homes that share it."""

from pathlib import Path

import pytest
from obstore.store import MemoryStore

from docindex_dagster.core.layout import Layout
from docindex_dagster.objects.bucket import Bucket


@pytest.fixture
def bucket() -> Bucket:
    return Bucket("memory", MemoryStore())


@pytest.fixture
def publisher(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "publisher")


@pytest.fixture
def replica(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "replica")
