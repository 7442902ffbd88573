"""`docindex serve` as a child process."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

LONGEST_S = 120.0  # allows for slow machines; startup takes about two seconds


@dataclass(frozen=True)
class Server:
    """A server that accepts requests."""

    process: "subprocess.Popen[str]"
    url: str
    output: Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def running(
    root: Path, *options: str, environment: Mapping[str, str] | None = None, stores_token: bool = False
) -> Iterator[Server]:
    """Start a server on a project, wait until it responds, and stop it as Ctrl-C does.

    The server requires the token in the environment, if any. Otherwise it requires none or, with `stores_token`, the
    one that it stores.
    """
    port, output = free_port(), root / "serve.log"
    variables = {**os.environ, **(environment or {})}
    access = () if stores_token or "DOCINDEX_SERVE__TOKEN" in variables else ("--no-token",)
    command = [sys.executable, "-m", "docindex_dagster.cli", "serve", "--port", str(port), *access, *options]
    with output.open("wb") as log:
        process = subprocess.Popen(command, cwd=root, env=variables, stdout=log, stderr=log, text=True)
    server = Server(process, f"http://127.0.0.1:{port}", output)
    try:
        _wait(server)
        yield server
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=LONGEST_S)
        finally:
            process.kill()


def _wait(server: Server) -> None:
    ends_at = time.monotonic() + LONGEST_S
    while time.monotonic() < ends_at:
        assert server.process.poll() is None, server.output.read_text()
        try:
            httpx.get(f"{server.url}/api/v1/health")
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(server.output.read_text())
