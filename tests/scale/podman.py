"""A Docker host: podman (Debian package), which implements Docker's API, and a locally built image.

It has its own mount, PID and UTS namespaces, so containers and their mounts end with it. Containers share the network
of this machine, where the other parts of a deployment run.
"""

import io
import os
import socket
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.scale.processes import CHECKOUT, kill, start, system_program, tail, wait_for

NAME = "docker-host"
NETWORK = "host"
IMAGE = "localhost/docindex:test"
_SOCKETS = "/run"  # visible to hosts, and short enough for socket paths
# Programs, and the certificates that HTTP clients need to start.
_MOUNTED = dict.fromkeys((Path("/usr"), Path("/etc/ssl"), CHECKOUT, Path(sys.prefix), Path(sys.base_prefix)))
# The same as in deploy/Dockerfile.
_USER = 10001
_FOLDERS = {"srv/docindex": 0, "var/lib/docindex": _USER, "opt/dagster/docker": _USER, "home/docindex": _USER}
_VARIABLES = {
    "PATH": f"{Path(sys.executable).parent}:/usr/bin",
    "HOME": "/home/docindex",
    "PYTHONPATH": str(CHECKOUT),
    "DAGSTER_HOME": "/opt/dagster/docker",
    "DOCINDEX_ROOT": "/srv/docindex",
    "DOCINDEX_HOME": "/var/lib/docindex",
}
# crun, podman's default, rejects mixed cgroup versions; runc rejects limits above the parent's.
_SETTINGS = """\
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
[network]
network_backend = "netavark"
"""
_IN_NAMESPACES = ("unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc")
_BEGIN = f'echo {NAME} > /proc/sys/kernel/hostname && exec "$@"'


@dataclass(frozen=True, slots=True)
class Podman:
    """A running podman service that has the image."""

    program: Path
    socket: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """Return the environment variables of Docker clients."""
        return {"DOCKER_HOST": f"unix://{self.socket}"}

    @property
    def volumes(self) -> list[str]:
        """Return the volumes of this machine that containers of the image need."""
        return [f"{folder}:{folder}:ro" for folder in _MOUNTED]

    def run(self, *arguments: str | Path) -> str:
        """Run a command on the service and return its output."""
        command: list[str | Path] = [self.program, "--url", f"unix://{self.socket}", *arguments]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def is_up(self) -> bool:
        """Return whether the service responds."""
        with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.socket))
            return True
        return False


@contextmanager
def podman() -> Iterator[Podman]:
    """Start a service that stores images and containers in a temporary folder, and remove everything at the end."""
    program = system_program("podman", "podman runc netavark")
    system_program("runc", "runc")
    if os.geteuid() != 0:
        pytest.skip("podman has a Docker host of its own made for it here, which takes root")
    with ExitStack() as stack:
        folder, place = (
            Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="docindex-podman-", dir=parent)))
            for parent in (None, _SOCKETS)
        )
        made = Podman(program, place / "docker.sock")
        process = _start(made, folder)
        stack.callback(kill, process)
        wait_for(lambda: made.is_up() or process.poll() is not None, "podman to listen")
        assert process.poll() is None, f"podman has ended: {tail(folder / 'log')}"
        _make_image(made, folder / "image.tar")
        stack.callback(made.run, "rm", "--all", "--force", "--time", "0")
        yield made


def _start(made: Podman, folder: Path) -> "subprocess.Popen[bytes]":
    (folder / "containers.conf").write_text(_SETTINGS)
    places = [f"--{name}={folder / name}" for name in ("root", "runroot", "tmpdir")]
    service: list[str | Path] = [made.program, *places, "system", "service", "--time=0", f"unix://{made.socket}"]
    environment = dict(os.environ) | {"CONTAINERS_CONF": str(folder / "containers.conf")}
    return start([*_IN_NAMESPACES, "sh", "-c", _BEGIN, "sh", *service], folder / "log", environment)


def _make_image(made: Podman, archive: Path) -> None:
    """Import an image with our folders, user and variables; its programs are those of this machine."""
    with tarfile.open(archive, "w") as image:
        for name, owner in _FOLDERS.items():
            _add(image, name, tarfile.DIRTYPE, uid=owner, mode=0o755)
        _add(image, "tmp", tarfile.DIRTYPE, mode=0o1777)
        _add(image, "etc/passwd", content=f"docindex:x:{_USER}:{_USER}::/home/docindex:/bin/sh\n")
        for name in ("bin", "lib", "lib64"):
            _add(image, name, tarfile.SYMTYPE, linkname=f"usr/{name}")
    changes = [f"ENV {name}={value}" for name, value in _VARIABLES.items()]
    changes += [f"USER {_USER}", "WORKDIR /srv/docindex"]
    made.run("import", *(word for change in changes for word in ("--change", change)), archive, IMAGE)


def _add(
    image: tarfile.TarFile, name: str, kind: bytes = tarfile.REGTYPE, *, content: str = "", **fields: object
) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.size, entry.mode = kind, len(content), 0o644
    for field, value in fields.items():
        setattr(entry, field, value)
    image.addfile(entry, io.BytesIO(content.encode()))
