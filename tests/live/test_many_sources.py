"""Hundreds of sources under a live daemon: the cost of ticks as recorded by Dagster."""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.defs.dagster_dev import DagsterDev, wait_for

pytestmark = pytest.mark.live

LIBRARIES, FILES = 150, 500
WORK_TREES, FILES_OF_A_TREE = 50, 50
SENSORS = ("sources_changed", "library_files_changed", "git_head_changed")
PARTITIONS = """{ assetNodeOrError(assetKey: {path: ["chunks"]}) {
  ... on AssetNode { partitionKeysByDimension { partitionKeys } } } }"""


def write_pages(folder: Path, count: int) -> None:
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"page{number}.md").write_text(f"# Page {number} of {folder.name}\n\nA page about marmots.\n")


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Iterator[Path]:
    """Create a project of 150 libraries and 50 work trees."""
    folder = tmp_path_factory.mktemp("many")
    for number in range(LIBRARIES):
        write_pages(folder / "docs" / f"library{number}", FILES)
    trees = [folder / "code" / f"tree{number}" for number in range(WORK_TREES)]
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    for tree in trees:
        write_pages(tree, FILES_OF_A_TREE)
        for command in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "Pages")):
            subprocess.run(["git", *command], cwd=tree, check=True)
    declared = "".join(f'[[source]]\nkind = "git"\npath = "code/{tree.name}"\n' for tree in trees)
    config = f'[[source]]\nkind = "library"\npath = "docs/{{library}}"\n{declared}'
    (folder / "docindex.toml").write_text(config)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def dev(root: Path) -> Iterator[DagsterDev]:
    server = DagsterDev(root)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def partitions(dev: DagsterDev) -> int:
    (dimension,) = dev.ask(PARTITIONS)["assetNodeOrError"]["partitionKeysByDimension"]
    return len(dimension["partitionKeys"])


def ticks(dev: DagsterDev, count: int) -> dict[str, list[dict[str, Any]]]:
    """Wait for `count` new ticks of each sensor and return them, newest first."""
    before = {name: len(dev.ticks(name, 500)) for name in SENSORS}
    wait_for(lambda: all(len(dev.ticks(name, 500)) > before[name] + count for name in SENSORS), "ticks")
    return {name: [tick for tick in dev.ticks(name, count + 1) if tick["endTimestamp"]][:count] for name in SENSORS}


def tell(found: dict[str, list[dict[str, Any]]]) -> None:
    for name, some in found.items():
        seconds = [round(tick["endTimestamp"] - tick["timestamp"], 2) for tick in some]
        print(f"  {name}: {seconds} s; {some[0]['skipReason']}")


def test_new_sources_get_their_partitions_without_a_tick_that_fails(dev):
    started = time.monotonic()
    wait_for(lambda: partitions(dev) == LIBRARIES + WORK_TREES, "all partitions")
    print(f"\n{LIBRARIES + WORK_TREES} partitions {time.monotonic() - started:.0f} s after the start; then, with runs:")

    busy = ticks(dev, 2)

    tell(busy)
    first = dev.ticks("sources_changed", 500)[-1]
    print(f"  the first tick: {first['endTimestamp'] - first['timestamp']:.1f} s")
    assert {tick["status"] for name in SENSORS for tick in dev.ticks(name, 500)} <= {"SUCCESS", "SKIPPED", "STARTED"}


def test_idle_ticks_are_short_and_ask_for_nothing(root, request):
    command = [sys.executable, "-m", "docindex_dagster.cli", "index"]
    started = time.monotonic()
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    print(f"\nindexed by a command in {time.monotonic() - started:.0f} s")
    dev = request.getfixturevalue("dev")
    ticks(dev, 3)  # earlier requests are settled
    wait_for(lambda: not [run for run in dev.runs() if run["status"] in {"QUEUED", "STARTED"}], "old runs", 600)

    idle = ticks(dev, 3)

    tell(idle)
    assert all("nothing" in tick["skipReason"] for some in idle.values() for tick in some)
