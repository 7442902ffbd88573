"""Plain `dagster dev` in a project folder, queried over GraphQL as the UI does."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.defs.conftest import CODE, CONFIG, GUIDE, KEY
from tests.defs.dagster_dev import DagsterDev, wait_for

pytestmark = pytest.mark.live

ASSETS = """query($key: String!) { assetNodes { assetKey { path } isMaterializable isPartitioned
  partitionStats { numMaterialized }
  assetMaterializations(partitions: [$key], limit: 1) { partition metadataEntries { label } }
  assetChecksOrError { ... on AssetChecks { checks { name
    executionForLatestMaterialization { status evaluation { success } } } } } } }"""
UNPARTITIONED = """{ assetNodes { assetKey { path }
  assetMaterializations(limit: 1) { metadataEntries { label } } } }"""
ADD = """mutation($selector: RepositorySelector!, $key: String!) {
  addDynamicPartition(repositorySelector: $selector, partitionsDefName: "source", partitionKey: $key) {
    __typename } }"""
LAUNCH = """mutation($params: ExecutionParams!) { launchPipelineExecution(executionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
RUN = """query($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[DagsterDev]:
    """A `dagster dev` that serves a project with one library."""
    (tmp_path / "docindex.toml").write_text(CONFIG)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "guide.md").write_text(GUIDE)
    (tmp_path / "notes" / "sums.py").write_text(CODE)
    dev = DagsterDev(tmp_path)
    try:
        dev.start()
        yield dev
    finally:
        dev.stop()


def test_a_launched_partition_shows_all_assets_their_metadata_and_passed_checks(server):
    ask, selector = server.ask, server.selector
    ask(ADD, selector=selector, key=KEY)
    launched = ask(
        LAUNCH,
        params={
            "selector": {**selector, "jobName": "index_source"},
            "executionMetadata": {"tags": [{"key": "dagster/partition", "value": KEY}]},
        },
    )["launchPipelineExecution"]
    assert launched["__typename"] == "LaunchRunSuccess", launched
    run_id = launched["run"]["runId"]

    def status() -> str:
        found = ask(RUN, id=run_id)["runOrError"]["status"]
        return found if found in {"SUCCESS", "FAILURE", "CANCELED"} else ""

    assert wait_for(status, "the run") == "SUCCESS"
    # The sensor may also have requested a run before the partition existed.
    wait_for(lambda: all(run["status"] == "SUCCESS" for run in server.runs()), "all runs")
    nodes = {node["assetKey"]["path"][-1]: node for node in ask(ASSETS, key=KEY)["assetNodes"]}
    partitioned = {name: node for name, node in nodes.items() if node["isMaterializable"] and node["isPartitioned"]}
    assert set(partitioned) == {
        "discovered_files",
        "commits",
        "chunks",
        "references",
        "embeddings",
        "lancedb_table",
        "tantivy_index",
        "knowledge_graph",
    }
    for name, node in partitioned.items():
        assert node["partitionStats"]["numMaterialized"] == 1, name
        (materialization,) = node["assetMaterializations"]
        assert {"seconds"} <= {entry["label"] for entry in materialization["metadataEntries"]}, name
    catalog = {node["assetKey"]["path"][-1]: node for node in ask(UNPARTITIONED)["assetNodes"]}["index_catalog"]
    assert {"sources", "overview"} <= {
        entry["label"] for entry in catalog["assetMaterializations"][0]["metadataEntries"]
    }
    del nodes["source"]  # the sensors handle its checks
    checks = [check for node in nodes.values() for check in node["assetChecksOrError"].get("checks", [])]
    assert len(checks) == 15
    for check in checks:
        execution = check["executionForLatestMaterialization"]
        assert execution["status"] == "SUCCEEDED", check["name"]
        assert execution["evaluation"]["success"], check["name"]
