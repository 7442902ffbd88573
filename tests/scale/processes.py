"""Child processes that end with their parent, however it ends."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[2]
PATIENCE_S = 60.0
_STOP_S = 10.0
# Kill the child when its parent dies.
_TIED = ("setpriv", "--pdeathsig", "KILL")


def program(name: str) -> Path:
    """Return the executable of a package in the environment that `make test-scale` installs."""
    for folder in (Path(sys.executable).parent, CHECKOUT / ".venv-scale" / "bin"):
        if (folder / name).exists():
            return folder / name
    pytest.skip(f"there is no {name}: make test-scale installs it")


def system_program(name: str, package: str) -> Path:
    """Return a system executable."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name}: apt-get install {package}")
    return Path(found)


def free_port() -> int:
    """Return an unused port on the loopback device."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    """Return whether a server listens on a port of the loopback device."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def wait_for(condition: Callable[[], Any], what: str, patience_s: float = PATIENCE_S, every_s: float = 0.1) -> Any:
    """Poll a condition until it is true."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(every_s)
    raise AssertionError(f"waited {patience_s:.0f} s for {what}")


def start(
    command: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> "subprocess.Popen[bytes]":
    """Start a process in a new session and append its output to the log."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [*_TIED, *command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process started by `start` and its children, unless it has ended."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def running(
    command: Sequence[str | Path],
    log: Path,
    port: int,
    environment: Mapping[str, str] | None = None,
    ends_with: signal.Signals = signal.SIGTERM,
) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a server on a port of the loopback device; at the end, send it `ends_with`, then kill it."""
    process = start(command, log, environment)
    try:
        wait_for(lambda: answers(port) or process.poll() is not None, f"{Path(command[0]).name} to listen")
        assert process.poll() is None, f"{Path(command[0]).name} has ended: {tail(log)}"
        yield process
    finally:
        process.send_signal(ends_with)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_S)
        kill(process)


def tail(log: Path, size: int = 3000) -> str:
    """Return the end of a process's log."""
    return log.read_text(errors="replace")[-size:] if log.exists() else ""


def without_ours(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the settings of docindex, Dagster and object stores."""
    ours = ("DAGSTER_", "DOCINDEX_", "AWS_")
    return {name: value for name, value in environment.items() if not name.startswith(ours)}
