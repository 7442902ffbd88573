"""Read access is enough to search: on read-only media and as another user."""

import os
from pathlib import Path

import pytest

from tests.privileges import as_ordinary_user


def _home() -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in Path(".docindex").rglob("*")}


def _allow(mode: int) -> None:
    for parent, _, names in os.walk(".docindex"):
        for path in (Path(parent), *(Path(parent, name) for name in names)):
            path.chmod(mode | (0o111 if path.is_dir() else 0))


@pytest.fixture
def run_reading(run_indexed):
    run_indexed("index", "--run")
    _allow(0o444)
    before = _home()
    yield run_indexed
    assert _home() == before
    _allow(0o644)


def test_all_that_reads_the_index_needs_only_to_read(run_reading):
    with as_ordinary_user():
        for arguments, answer in {
            ("search", "pump"): "pump.py",
            ("search", "--mode", "graph", "pump"): "pump.py",
            ("search", "--mode", "literal", "litres"): "pump.py",
            ("log",): "No commits found. Try other words or fewer filters.",
            ("show", "manual/pump.py"): "prime_pump",
            ("graph", "callees", "prime_pump"): "print",
            ("why", "manual/pump.py"): "1 chunk is searchable",
            ("status",): "library/manual",
            ("doctor",): "the index is consistent",
        }.items():
            done = run_reading(*arguments)
            assert (done.code, answer in done.out) == (0, True), (arguments, done)
        assert "cannot read the outcomes of runs: " in run_reading("status").err
