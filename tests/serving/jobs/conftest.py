"""A project with a library, and its jobs."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from docindex_dagster.cli.dagster_runs import RecordedRuns, job_queue
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.settings import load_settings
from docindex_dagster.serving.jobs.model import Job, JobEvent, JobRequest
from docindex_dagster.serving.jobs.queue import Jobs
from tests.defs.conftest import CODE, CONFIG, GUIDE, KEY

LONGEST_S = 120.0  # allows for busy machines
INDEX = JobRequest("index", KEY)


@pytest.fixture(autouse=True)
def _only_the_settings_of_the_test(monkeypatch):
    for name in ("DAGSTER_HOME", "DOCINDEX_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    (tmp_path / "docindex.toml").write_text(CONFIG)
    (tmp_path / "notes" / "guide.md").write_text(GUIDE)
    (tmp_path / "notes" / "sums.py").write_text(CODE)
    return tmp_path


@pytest.fixture
def layout(root: Path) -> Layout:
    return Layout(root / ".docindex")


Opened = Callable[..., Jobs]


@pytest.fixture
def opened(root: Path) -> Iterator[Opened]:
    """Yield a function that opens the project's jobs; with `program`, a Python script runs them instead of docindex."""
    with ExitStack() as stack:

        def open_jobs(program: str | None = None) -> Jobs:
            settings = load_settings(root)
            if program is None:
                return stack.enter_context(job_queue(settings))
            return stack.enter_context(Jobs(settings, RecordedRuns(settings), (sys.executable, "-c", program)))

        yield open_jobs


@contextmanager
def busy(layout: Layout, key: str = KEY) -> Iterator[None]:
    """Hold a source as another process would, so that its runs wait."""
    with exclusive(layout.source_lock(key), f"another process than {os.getpid()}", on_wait=print):
        yield


def events_until(jobs: Jobs, job: Job, name: str) -> list[JobEvent]:
    """Return the events of a job up to the first with this name, as a following client receives them."""
    found: list[JobEvent] = []
    until = time.monotonic() + LONGEST_S
    while not found or found[-1].name != name:
        assert time.monotonic() < until, f"no {name}: {found}"
        assert found[-1:] == [] or found[-1].name != "ended", f"no {name}: {found}"
        for event in jobs.events(job.id, found[-1].number if found else 0):
            found.append(event)
            if event.name == name:
                break
        time.sleep(0.02)
    return found


def ended(jobs: Jobs, job: Job) -> Job:
    """Wait until a job has ended, and return it."""
    until = time.monotonic() + LONGEST_S
    while not jobs.get(job.id).state.has_ended:
        assert time.monotonic() < until, jobs.get(job.id)
        time.sleep(0.02)
    return jobs.get(job.id)
