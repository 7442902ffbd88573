"""A real `dagster dev` for a project, queried over GraphQL as the UI does."""

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
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.nights import distant_night

ROOT = Path(__file__).parents[2]
PATIENCE_S = 180

REPOSITORIES = """{ repositoriesOrError { ... on RepositoryConnection { nodes { name location { name } } }
  ... on PythonError { message } } }"""
RUNS = """query($filter: RunsFilter) { runsOrError(filter: $filter) { ... on Runs { results {
  runId status jobName startTime creationTime endTime tags { key value } } } } }"""
TICKS = """query($sensor: SensorSelector!, $limit: Int) { sensorOrError(sensorSelector: $sensor) {
  ... on Sensor { sensorState { status ticks(limit: $limit) {
    status timestamp endTimestamp skipReason runIds error { message } } } } } }"""


def wait_for(condition: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
    """Poll until the result is truthy."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.5)
    raise AssertionError(f"waited {patience_s} s for {what}")


@dataclass
class DagsterDev:
    """`dagster dev` in a project folder, using the project's own instance and workspace files."""

    root: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> None:
        """Start the server and wait until the code location is loaded."""
        for name in ("dagster.yaml", "workspace.yaml"):
            shutil.copy(ROOT / name, self.root)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        ours = ("DAGSTER_", "DOCINDEX_")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        # A copy of the project without its own installation runs its own code.
        environment |= {**distant_night(), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "dagster", "dev", "--port", str(self.port), "--host", "127.0.0.1"]
        with (self.root / "dev.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self.root, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        wait_for(self.repositories, "the code location")

    def stop(self) -> None:
        """Stop it as Ctrl-C does, then kill whatever is left."""
        if self.process is None:
            return
        os.killpg(self.process.pid, signal.SIGINT)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process = None

    def kill(self) -> None:
        """Kill it with all its processes, like a power cut."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """Return the data of a GraphQL response."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        headers = {"Content-Type": "application/json"}
        call = urllib.request.Request(f"http://127.0.0.1:{self.port}/graphql", body, headers)
        with urllib.request.urlopen(call, timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
        assert "errors" not in found, found["errors"]
        data: dict[str, Any] = found["data"]
        return data

    def repositories(self) -> list[dict[str, Any]]:
        """Return the code locations, or an empty list while the server starts."""
        try:
            nodes: list[dict[str, Any]] = self.ask(REPOSITORIES)["repositoriesOrError"].get("nodes", [])
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return []
        return nodes

    @property
    def selector(self) -> dict[str, str]:
        """The GraphQL selector of the code location."""
        (repository,) = self.repositories()
        return {"repositoryName": repository["name"], "repositoryLocationName": repository["location"]["name"]}

    def runs(self, key: str | None = None) -> list[dict[str, Any]]:
        """Return the runs of one partition or of all, newest first."""
        tags = [{"key": "dagster/partition", "value": key}] if key else []
        found = self.ask(RUNS, filter={"tags": tags})["runsOrError"]["results"]
        return [{**run, "tags": {tag["key"]: tag["value"] for tag in run["tags"]}} for run in found]

    def ticks(self, sensor: str, limit: int = 50) -> list[dict[str, Any]]:
        """Return the ticks of a sensor, newest first."""
        found = self.ask(TICKS, sensor={**self.selector, "sensorName": sensor}, limit=limit)["sensorOrError"]
        ticks: list[dict[str, Any]] = found["sensorState"]["ticks"]
        return ticks
