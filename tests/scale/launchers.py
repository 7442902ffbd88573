"""What starts the runs of a deployment: Celery, Docker or Ray, each by its file in `deploy/dagster/`."""

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
    """What runs on a host, by the names of its logs; it is started again whenever the host is."""

    programs: tuple[tuple[str, tuple[str, ...]], ...]
    has_project: bool = True


@dataclass(frozen=True, slots=True)
class Launcher:
    """A run launcher, and what it needs.

    Attributes:
        instance: what it adds to the `dagster.yaml` of a deployment.
        variables: of all hosts that have the project.
        worker: what runs on hosts that prepare sources; None where the launcher makes a host for each run.
        publisher: the same of those that publish.
        head: what runs beside the daemon.
        port: where the head listens; it has to before a run is started.
    """

    instance: Mapping[str, Any]
    variables: Mapping[str, str]
    worker: Role | None = None
    publisher: Role | None = None
    head: Role = field(default=Role(()))
    port: int | None = None


@contextmanager
def celery(project: Path) -> Iterator[Launcher]:
    """Celery with a Redis of its own."""
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
    """Docker, with podman as the host of containers; the project's folder is that of the Docker host, too."""
    instance = _instance("docker")
    with podman() as service:
        options = instance["run_launcher"]["config"]["container_kwargs"]
        own = [volume.replace("/srv/docindex:", f"{project}:", 1) for volume in options["volumes"]]
        options["volumes"] = [*own, *service.volumes]
        variables = {"DOCINDEX_IMAGE": IMAGE, "DOCINDEX_DOCKER_NETWORK": NETWORK}
        yield Launcher(instance, {**service.environment, **variables})


@contextmanager
def ray(project: Path) -> Iterator[Launcher]:
    """Ray: a head, a node that prepares and one that publishes.

    Its daemons listen at all addresses: to be entered in a network of its own.
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
    """A node of Ray, which is started again until it has come up: it gives up after 30 s, however busy the machine."""
    start = ("ray", "start", "--block", "--node-ip-address=127.0.0.1", "--disable-usage-stats", *options)
    return Role((("ray", ("sh", "-c", 'until "$@"; do sleep 1; done', "sh", *start)),))


def _instance(launcher: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "dagster" / f"{launcher}.yaml").read_text())
    return found
