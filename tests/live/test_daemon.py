"""Tests of a live daemon with its own ticks, queue and processes. Run them with `make test-live`."""

import os
import time
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from docindex_dagster.core.layout import Layout
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Mode
from docindex_dagster.stores.doctor import examine
from docindex_dagster.stores.generation import read_generation
from docindex_dagster.stores.reader import open_reader
from tests.defs.conftest import CONFIG, GUIDE, KEY
from tests.defs.dagster_dev import DagsterDev, wait_for

pytestmark = pytest.mark.live

OTHER = '[[source]]\nkind = "library"\nname = "other"\npath = "other"\n'
BACKFILL = """mutation($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
  __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""
BACKFILL_STATUS = """query($id: String!) { partitionBackfillOrError(backfillId: $id) {
  ... on PartitionBackfill { status error { message } } } }"""
DELETE = """mutation($selector: RepositorySelector!, $keys: [String!]!) {
  deleteDynamicPartitions(repositorySelector: $selector, partitionsDefName: "source", partitionKeys: $keys) {
    __typename } }"""
_STORES = ("lancedb_table", "tantivy_index", "knowledge_graph")
ASSETS = ("discovered_files", "commits", "chunks", "references", "embeddings", *_STORES)


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[DagsterDev]:
    for name in ("notes", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "guide.md").write_text(GUIDE)
    (tmp_path / "docindex.toml").write_text(CONFIG + OTHER)
    server = DagsterDev(tmp_path)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def finds(dev: DagsterDev, query: str) -> list[str]:
    layout = Layout(dev.root / ".docindex")
    if read_generation(layout) is None:
        return []
    return [hit.source for hit in search(open_reader(layout), query, StaticEmbedder, mode=Mode.BM25)]


def is_found(dev: DagsterDev, query: str) -> bool:
    return finds(dev, query) == [KEY]


def published(dev: DagsterDev) -> set[str]:
    generation = read_generation(Layout(dev.root / ".docindex"))
    return set(generation.sources) if generation else set()


def are_settled(dev: DagsterDev) -> bool:
    return all(run["status"] in {"SUCCESS", "FAILURE", "CANCELED"} for run in dev.runs())


def test_an_edit_is_searchable_within_a_minute_and_three_edits_are_three_runs(dev):
    wait_for(lambda: published(dev) == {KEY, "library/other"} and are_settled(dev), "the first runs")
    before = len(dev.runs(KEY))
    guide = dev.root / "notes" / "guide.md"

    seconds = []
    for word in ("marmot", "burrow", "marmot"):  # the third text equals the first
        guide.write_text(f"# Guide\n\nA page about the {word}.\n")
        started = time.monotonic()
        wait_for(partial(is_found, dev, word), f"{word} to be searchable", 60)
        seconds.append(round(time.monotonic() - started, 1))
        wait_for(lambda: are_settled(dev), "the run to end")

    print(f"edit to searchable: {seconds} s")
    assert len(dev.runs(KEY)) == before + 3


def test_an_unreachable_source_fails_alone_and_backs_off(dev):
    config = dev.root / "docindex.toml"
    config.write_text(CONFIG + OTHER + '[[source]]\nkind = "git"\nname = "gone"\nurl = "file:///nowhere/at/all"\n')

    failures = wait_for(lambda: [run for run in dev.runs("git/gone") if run["status"] == "FAILURE"][1:], "two failures")
    assert failures
    wait_for(lambda: published(dev) == {KEY, "library/other"}, "the other sources")

    time.sleep(100)  # the second delay is at least one minute, the third two
    runs = [run for run in dev.runs("git/gone") if run["startTime"]]
    starts = sorted(run["startTime"] for run in runs)
    waits = [later - earlier for earlier, later in pairwise(starts)]
    print(f"seconds between the starts of failing runs: {[round(wait) for wait in waits]}")
    assert waits == sorted(waits)
    assert waits[0] >= 55
    assert {run["status"] for key in (KEY, "library/other") for run in dev.runs(key)} == {"SUCCESS"}


def test_a_backfill_of_all_partitions_materialises_them(dev):
    wait_for(lambda: published(dev) == {KEY, "library/other"} and are_settled(dev), "the first runs")
    before = {key: len(dev.runs(key)) for key in (KEY, "library/other")}
    keys = [{"path": [name]} for name in (*ASSETS, "index_catalog")]

    launched = dev.ask(BACKFILL, params={"assetSelection": keys, "partitionNames": [KEY, "library/other"]})
    backfill = launched["launchPartitionBackfill"]
    assert backfill["__typename"] == "LaunchBackfillSuccess", backfill

    def is_done() -> bool:
        found = dev.ask(BACKFILL_STATUS, id=backfill["backfillId"])["partitionBackfillOrError"]
        assert found["status"] not in {"FAILED", "COMPLETED_FAILED"}, found
        return bool(found["status"] in {"COMPLETED", "COMPLETED_SUCCESS"})

    wait_for(is_done, "the backfill")
    assert {key: len(dev.runs(key)) for key in before} == {key: count + 1 for key, count in before.items()}
    assert {run["status"] for run in dev.runs()} == {"SUCCESS"}


def test_a_partition_deleted_in_the_ui_leaves_the_index(dev):
    wait_for(lambda: published(dev) == {KEY, "library/other"} and are_settled(dev), "the first runs")

    dev.ask(DELETE, selector=dev.selector, keys=[KEY])

    wait_for(lambda: published(dev) == {"library/other"}, "the source to leave", 90)
    wait_for(lambda: are_settled(dev), "the run to end")
    time.sleep(35)  # includes another tick
    assert published(dev) == {"library/other"}
    assert dev.runs(KEY) == []


def test_a_killed_dagster_dev_loses_nothing(dev):
    wait_for(lambda: published(dev) == {KEY, "library/other"} and are_settled(dev), "the first runs")
    # Enough files to keep the run busy for a while.
    for number in range(3000):
        text = "\n\n".join(f"Paragraph {part} of page {number} about marmots." for part in range(20))
        (dev.root / "notes" / f"page{number}.md").write_text(f"# Page {number}\n\n{text}\n")
    lost = wait_for(lambda: [run for run in dev.runs(KEY) if run["status"] == "STARTED"], "a run", 90)[0]
    time.sleep(2)
    dev.kill()
    assert finds(dev, "marmots") == []  # previously published text stays searchable, and nothing else

    started = time.monotonic()
    dev.start()
    again = wait_for(
        lambda: [run for run in dev.runs(KEY) if run["creationTime"] > lost["creationTime"]], "another run", 120
    )
    print(f"asked for again {time.monotonic() - started:.0f} s after the start")
    assert next(run for run in dev.runs(KEY) if run["runId"] == lost["runId"])["status"] == "FAILURE"
    wait_for(lambda: finds(dev, "marmots"), "the index")
    wait_for(lambda: are_settled(dev), "the run to end")
    assert again
    assert list(examine(Layout(dev.root / ".docindex"))) == []
    assert os.listdir(dev.root / "notes")  # noqa: PTH208 nothing touched the files
