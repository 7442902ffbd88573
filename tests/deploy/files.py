"""Readers for the files of `deploy/`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
BASE = DEPLOY / "dagster" / "base.yaml"
LAUNCHERS = {path.stem: path for path in sorted((DEPLOY / "dagster").glob("*.yaml")) if path != BASE}
COMPOSE = DEPLOY / "compose.yaml"
VALUES = DEPLOY / "helm" / "values.yaml"
VALUES_OF_KUBERNETES = DEPLOY / "helm" / "kubernetes.yaml"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
YAML = sorted(DEPLOY.rglob("*.yaml"))


def read(path: Path) -> Any:
    """Return the single document of a YAML file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def documents(*paths: Path) -> list[dict[str, Any]]:
    """Return all documents of YAML files."""
    return [document for path in paths for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))]


def dagster_yaml(launcher: str) -> str:
    """Return a launcher's `dagster.yaml`, composed as in the image."""
    return BASE.read_text(encoding="utf-8") + LAUNCHERS[launcher].read_text(encoding="utf-8")


def example() -> dict[str, str]:
    """Return the variables of `env.example`."""
    lines = (DEPLOY / "env.example").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def commands() -> Iterator[list[str]]:
    """Yield the commands of the containers in Compose and Kubernetes."""
    for service in read(COMPOSE)["services"].values():
        if isinstance(service.get("command"), list):
            yield service["command"]
    for manifest in documents(*MANIFESTS):
        if "template" in manifest["spec"]:
            yield from (container["args"] for container in manifest["spec"]["template"]["spec"]["containers"])


def queues() -> set[str]:
    """Return the Celery queues that at least one worker consumes."""
    return {command[command.index("--queues") + 1] for command in commands() if "--queues" in command}
