"""Shared fixtures: the index folder of a test and its settings."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")
_ENOUGH = 1 << 30  # bytes


@pytest.fixture(autouse=True)
def _only_the_settings_of_the_test(monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("DAGSTER_HOME", "DOCINDEX_HOME", "DOCINDEX_ROOT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder, in memory if possible: syncing to disk dominates the time of a small run."""
    has_room = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ENOUGH
    where = _MEMORY if has_room else None
    with tempfile.TemporaryDirectory(prefix="docindex-", dir=where) as name:
        yield Path(name)


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Return a function that prints a line even if the test passes: figures, and how to repeat a run."""

    def write(line: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{line}\n")
            sys.stdout.flush()

    return write
