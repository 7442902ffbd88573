"""A Redis server from Debian's package, unpacked but not installed."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.scale.processes import CHECKOUT, free_port, running

_PACKAGES = ("redis-server", "redis-tools")  # the second package contains the program
_LIBRARIES = ("libjemalloc2", "liblzf1", "libatomic1")
_UNPACKED = CHECKOUT / "build" / "redis"


@contextmanager
def redis() -> Iterator[str]:
    """Run an empty server and yield its URL."""
    program, libraries = _program()
    with tempfile.TemporaryDirectory(prefix="docindex-redis-") as folder:
        port = free_port()
        options = ("--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", folder)
        environment = {"LD_LIBRARY_PATH": libraries}
        with running([program, *options], Path(folder, "log"), port, environment):
            yield f"redis://127.0.0.1:{port}/0"


def _program() -> tuple[Path, str]:
    """Return the program and its library path."""
    if installed := shutil.which("redis-server"):
        return Path(installed), ""
    unpacked = _UNPACKED / "usr" / "bin" / "redis-check-rdb"  # the same executable as the server
    if not unpacked.exists():
        _unpack(_UNPACKED)
    return unpacked.with_name("redis-server"), str(next(unpacked.parents[1].glob("lib/*-linux-gnu"), ""))


def _unpack(folder: Path) -> None:
    """Download the packages and their dependencies, and unpack them without installing."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        pytest.skip("there is no Redis, and no apt-get to fetch it: install redis-server")
    with tempfile.TemporaryDirectory() as fetched:
        fetch = ["apt-get", "download", "-qq", *_PACKAGES, *_LIBRARIES]
        done = subprocess.run(fetch, cwd=fetched, check=False, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"there is no Redis, and it cannot be fetched: {done.stderr.strip()[-300:]}")
        for package in sorted(Path(fetched).glob("*.deb")):
            subprocess.run(["dpkg", "-x", package, folder], check=True)
