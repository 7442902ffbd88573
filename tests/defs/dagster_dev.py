"""A real `dagster dev` on a project, asked over GraphQL like the UI asks."""

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
    """Ask again and again until the answer is true."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.5)
    raise AssertionError(f"waited {patience_s} s for {what}")


@dataclass
class DagsterDev:
    """`dagster dev` in the folder of a project, which gets the project's own instance and workspace files."""

    root: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> None:
        """Start it, and wait until the code location is there."""
        for name in ("dagster.yaml", "workspace.yaml"):
            shutil.copy(ROOT / name, self.root)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        ours = ("DAGSTER_", "DOCINDEX_")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        # A copy of the project without an installation of its own runs its own code.
        environment |= {**distant_night(), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "dagster", "dev", "--port", str(self.port), "--host", "127.0.0.1"]
        with (self.root / "dev.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self.root, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        wait_for(self.repositories, "the code location")

    def stop(self) -> None:
        """End it as Ctrl-C does, and whatever is left by force."""
        if self.process is None:
            return
        os.killpg(self.process.pid, signal.SIGINT)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process = None

    def kill(self) -> None:
        """Kill it with all its processes, as a power cut would."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """The data of a GraphQL answer."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        headers = {"Content-Type": "application/json"}
        call = urllib.request.Request(f"http://127.0.0.1:{self.port}/graphql", body, headers)
        with urllib.request.urlopen(call, timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
        assert "errors" not in found, found["errors"]
        data: dict[str, Any] = found["data"]
        return data

    def repositories(self) -> list[dict[str, Any]]:
        """The code locations; none while it starts."""
        try:
            nodes: list[dict[str, Any]] = self.ask(REPOSITORIES)["repositoriesOrError"].get("nodes", [])
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return []
        return nodes

    @property
    def selector(self) -> dict[str, str]:
        """What names the code location."""
        (repository,) = self.repositories()
        return {"repositoryName": repository["name"], "repositoryLocationName": repository["location"]["name"]}

    def runs(self, key: str | None = None) -> list[dict[str, Any]]:
        """The runs, of one partition or all, the newest first."""
        tags = [{"key": "dagster/partition", "value": key}] if key else []
        found = self.ask(RUNS, filter={"tags": tags})["runsOrError"]["results"]
        return [{**run, "tags": {tag["key"]: tag["value"] for tag in run["tags"]}} for run in found]

    def ticks(self, sensor: str, limit: int = 50) -> list[dict[str, Any]]:
        """The ticks of a sensor, the newest first."""
        found = self.ask(TICKS, sensor={**self.selector, "sensorName": sensor}, limit=limit)["sensorOrError"]
        ticks: list[dict[str, Any]] = found["sensorState"]["ticks"]
        return ticks
