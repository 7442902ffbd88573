"""Hundreds of sources under a real daemon: what its ticks cost, as Dagster itself records them."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docindex_dagster.layout import Layout
from docindex_dagster.stores.generation import read_generation
from tests.defs.dagster_dev import DagsterDev, wait_for

pytestmark = pytest.mark.live

LIBRARIES, FILES = 150, 500
WORK_TREES, FILES_OF_A_TREE = 50, 50
PATIENCE_S = 40 * 60


def write_pages(folder: Path, count: int) -> None:
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"page{number}.md").write_text(f"# Page {number} of {folder.name}\n\nA page about marmots.\n")


@pytest.fixture
def dev(tmp_path: Path, git) -> Iterator[DagsterDev]:
    for number in range(LIBRARIES):
        write_pages(tmp_path / "docs" / f"library{number}", FILES)
    trees = [tmp_path / "code" / f"tree{number}" for number in range(WORK_TREES)]
    for tree in trees:
        write_pages(tree, FILES_OF_A_TREE)
        git(tree, "init", "-q")
        git(tree, "add", ".")
        git(tree, "commit", "-qm", "Pages")
    declared = "".join(f'[[source]]\nkind = "git"\npath = "code/{tree.name}"\n' for tree in trees)
    config = f'[[source]]\nkind = "library"\npath = "docs/{{library}}"\n{declared}'
    (tmp_path / "docindex.toml").write_text(config)
    server = DagsterDev(tmp_path)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        subprocess.run(["rm", "-rf", tmp_path / "docs", tmp_path / "code", tmp_path / ".docindex"], check=True)


def published(dev: DagsterDev) -> int:
    generation = read_generation(Layout(dev.root / ".docindex"))
    return len(generation.sources) if generation else 0


def seconds(ticks: list[dict[str, Any]]) -> list[float]:
    return [round(tick["endTimestamp"] - tick["timestamp"], 2) for tick in ticks if tick["endTimestamp"]]


def test_no_tick_fails_and_idle_ticks_are_short(dev):
    sensors = ("sources_changed", "library_files_changed", "git_head_changed")
    wait_for(lambda: published(dev) == LIBRARIES + WORK_TREES, "all sources to be indexed", PATIENCE_S)
    wait_for(lambda: not [run for run in dev.runs() if run["status"] != "SUCCESS"], "all runs to end", PATIENCE_S)
    busy = {sensor: dev.ticks(sensor, 200) for sensor in sensors}
    wait_for(lambda: all(len(dev.ticks(one, 200)) >= len(busy[one]) + 4 for one in sensors), "four idle ticks")

    for sensor in sensors:
        idle = dev.ticks(sensor, 3)
        print(f"{sensor}: longest tick {max(seconds(busy[sensor]))} s of {len(busy[sensor])}; idle {seconds(idle)} s")
        print(f"  {idle[0]['skipReason']}")
        assert {tick["status"] for tick in (*busy[sensor], *idle)} <= {"SUCCESS", "SKIPPED"}
        assert all("nothing" in tick["skipReason"] for tick in idle)
    runs = dev.runs()
    print(f"{len(runs)} runs for {LIBRARIES + WORK_TREES} sources")
    assert len(runs) == LIBRARIES + WORK_TREES
