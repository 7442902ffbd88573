"""Plain `dagster dev` in a project's folder, asked over GraphQL like the UI asks."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.defs.conftest import CODE, CONFIG, GUIDE, KEY

ROOT = Path(__file__).parents[2]
PATIENCE_S = 180

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
REPOSITORIES = """{ repositoriesOrError { ... on RepositoryConnection { nodes { name location { name } } }
  ... on PythonError { message } } }"""

Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    """GraphQL of a `dagster dev` that serves a project with one library."""
    for name in ("dagster.yaml", "workspace.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "docindex.toml").write_text(CONFIG)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "guide.md").write_text(GUIDE)
    (tmp_path / "notes" / "sums.py").write_text(CODE)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DAGSTER_", "DOCINDEX_"))}
    command = [sys.executable, "-m", "dagster", "dev", "--port", str(port), "--host", "127.0.0.1"]
    with (tmp_path / "dev.log").open("wb") as log:
        server = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=log, stderr=log, start_new_session=True
        )

    def request(query: str, **variables: Any) -> dict[str, Any]:
        body = json.dumps({"query": query, "variables": variables}).encode()
        headers = {"Content-Type": "application/json"}
        call = urllib.request.Request(f"http://127.0.0.1:{port}/graphql", body, headers)
        with urllib.request.urlopen(call, timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
        assert "errors" not in found, found["errors"]
        data: dict[str, Any] = found["data"]
        return data

    try:
        wait_for(lambda: repositories(request), "the code location")
        yield request
    finally:
        os.killpg(server.pid, signal.SIGINT)
        try:
            server.wait(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def wait_for(condition: Callable[[], Any], what: str) -> Any:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.5)
    raise AssertionError(f"waited {PATIENCE_S} s for {what}")


def repositories(ask: Ask) -> list[dict[str, Any]]:
    try:
        nodes: list[dict[str, Any]] = ask(REPOSITORIES)["repositoriesOrError"].get("nodes", [])
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return []
    return nodes


def test_a_launched_partition_shows_all_assets_their_metadata_and_passed_checks(ask):
    (repository,) = repositories(ask)
    location = repository["location"]["name"]
    selector = {"repositoryName": repository["name"], "repositoryLocationName": location}
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
    nodes = {node["assetKey"]["path"][-1]: node for node in ask(ASSETS, key=KEY)["assetNodes"]}
    partitioned = {name: node for name, node in nodes.items() if node["isMaterializable"] and node["isPartitioned"]}
    assert set(partitioned) == {
        "discovered_files",
        "commits",
        "chunks",
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
    checks = [check for node in nodes.values() for check in node["assetChecksOrError"].get("checks", [])]
    assert len(checks) == 15
    for check in checks:
        execution = check["executionForLatestMaterialization"]
        assert execution["status"] == "SUCCEEDED", check["name"]
        assert execution["evaluation"]["success"], check["name"]
