"""Run launchers for a deployment: Celery, Docker or Ray, each configured by its file in `deploy/dagster/`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.scale.podman import IMAGE, NETWORK, podman
from tests.scale.processes import CHECKOUT, free_port, program
from tests.scale.redis import redis

DEPLOY = CHECKOUT / "deploy"
_PUBLISHER = "docindex-publisher"
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Role:
    """The commands of a host, by log name; they start whenever the host boots."""

    programs: tuple[tuple[str, tuple[str, ...]], ...]
    has_project: bool = True


@dataclass(frozen=True, slots=True)
class Launcher:
    """A run launcher and the processes it needs.

    Attributes:
        instance: additions to the deployment's `dagster.yaml`.
        variables: environment variables of every host that has the project.
        worker: role of hosts that prepare sources, or None if the launcher creates a host for each run.
        publisher: role of hosts that publish, or None as for `worker`.
        head: role that runs alongside the daemon.
        port: port of the head, which must accept connections before a run starts.
    """

    instance: Mapping[str, Any]
    variables: Mapping[str, str]
    worker: Role | None = None
    publisher: Role | None = None
    head: Role = field(default=Role(()))
    port: int | None = None


@contextmanager
def celery(project: Path) -> Iterator[Launcher]:
    """Run Celery with its own Redis."""
    with redis() as broker:
        variables = {
            "DAGSTER_CELERY_BROKER_URL": broker,
            "DAGSTER_CELERY_BACKEND_URL": broker.removesuffix("/0") + "/1",
        }
        yield Launcher(_instance("celery"), variables, _celery("dagster"), _celery(_PUBLISHER))


def _celery(queue: str) -> Role:
    return Role(
        (("celery", ("celery", "--app", "dagster_celery.app", "worker", "--queues", queue, "--loglevel", "info")),)
    )


@contextmanager
def docker(project: Path) -> Iterator[Launcher]:
    """Run Docker, with podman as the container host; the Docker host sees the project at the same path."""
    instance = _instance("docker")
    with podman() as service:
        options = instance["run_launcher"]["config"]["container_kwargs"]
        own = [volume.replace("/srv/docindex:", f"{project}:", 1) for volume in options["volumes"]]
        options["volumes"] = [*own, *service.volumes]
        variables = {"DOCINDEX_IMAGE": IMAGE, "DOCINDEX_DOCKER_NETWORK": NETWORK}
        yield Launcher(instance, {**service.environment, **variables})


@contextmanager
def ray(project: Path) -> Iterator[Launcher]:
    """Run Ray with a head, a preparing node and a publishing node.

    Ray's daemons listen on all addresses, so enter a separate network first.
    """
    program("ray")
    head, dashboard = free_port(), free_port()

    def node(name: str) -> Role:
        ports = [f"--{use}-port={free_port()}" for use in ("dashboard-agent-listen", "metrics-export")]
        return _node(f"--address=127.0.0.1:{head}", "--num-cpus=1", f'--resources={{"{name}": 1}}', *ports)

    yield Launcher(
        _instance("ray"),
        {"RAY_API_SERVER_ADDRESS": f"http://127.0.0.1:{dashboard}"},
        node("docindex-worker"),
        node(_PUBLISHER),
        _node("--head", f"--port={head}", "--num-cpus=0", f"--dashboard-port={dashboard}"),
        dashboard,
    )


def _node(*options: str) -> Role:
    """Return the command for a Ray node, restarted until it is up: Ray gives up after 30 s, even on a busy machine."""
    start = ("ray", "start", "--block", "--node-ip-address=127.0.0.1", "--disable-usage-stats", *options)
    return Role((("ray", ("sh", "-c", 'until "$@"; do sleep 1; done', "sh", *start)),))


def _instance(launcher: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "dagster" / f"{launcher}.yaml").read_text())
    return found
