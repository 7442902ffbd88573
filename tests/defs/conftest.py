"""A project on disk and the Dagster runs that index it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest

from docindex_dagster.core.layout import Layout
from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs.tags import SOURCES_NAME
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Mode
from docindex_dagster.stores.reader import open_reader

KEY = "library/notes"
# Writing each event to the console takes as long as the run itself.
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
CONFIG = '[[source]]\nkind = "library"\nname = "notes"\npath = "notes"\n'
GUIDE = """# Guide

## Installing

Run the installer and wait. It unpacks the archive, checks every signature, and
writes the files to the folder that you named.

## Using

Open the application and press the green button. It reads the settings, connects to the server and
shows the first page.
"""
CODE = '''"""Sums."""

import math


def total(values: list[float]) -> float:
    """Add all values."""
    return math.fsum(values)
'''


@dataclass(frozen=True)
class Project:
    """A folder with a `docindex.toml` and one library, plus an instance to run it on."""

    root: Path
    instance: dg.DagsterInstance

    @property
    def notes(self) -> Path:
        return self.root / "notes"

    @property
    def layout(self) -> Layout:
        return Layout(self.root / ".docindex")

    def index(self, key: str = KEY, *, tags: dict[str, str] | None = None, **resources) -> dg.ExecuteInProcessResult:
        self.instance.add_dynamic_partitions(SOURCES_NAME, [key])
        job = build_definitions(self.root, resources).resolve_job_def("index_source")
        return job.execute_in_process(
            instance=self.instance, partition_key=key, raise_on_error=False, tags=tags, run_config=QUIET
        )

    def search(self, query: str) -> list[str]:
        """Return the paths of the hits, best first."""
        return [hit.path for hit in search(open_reader(self.layout), query, StaticEmbedder, mode=Mode.BM25)]


@contextmanager
def new_project(root: Path) -> Iterator[Project]:
    """Return a project with a library of two files below `root` and its own instance."""
    (root / "notes").mkdir()
    (root / "docindex.toml").write_text(CONFIG)
    (root / "notes" / "guide.md").write_text(GUIDE)
    (root / "notes" / "sums.py").write_text(CODE)
    with dg.DagsterInstance.ephemeral() as instance:
        yield Project(root, instance)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with new_project(tmp_path) as made:
        yield made


@pytest.fixture
def daemon(project):
    from tests.defs.daemon import Daemon  # the daemon module imports this one

    return Daemon(project, build_definitions(project.root))


@pytest.fixture
def deployment(tmp_path, monkeypatch):
    from tests.defs.deployment import new_deployment  # the deployment module imports this one

    with new_deployment(tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture
def clock(monkeypatch) -> Callable[[float], None]:
    """Return a function that advances the sensors' clock by some seconds."""
    now, now_ns, moved = time.time, time.time_ns, [0.0]
    monkeypatch.setattr(time, "time", lambda: now() + moved[0])
    monkeypatch.setattr(time, "time_ns", lambda: now_ns() + int(moved[0] * 1e9))  # used by logs from Python 3.13 on

    def forward(seconds: float) -> None:
        moved[0] += seconds

    return forward
