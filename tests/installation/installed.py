"""docindex as users install it: from a wheel into a separate environment, in a folder without a clone."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2 as httpx

LONGEST_S = 180  # timeout for slow machines; a slower server counts as failed
_STEP_S = 0.2


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel, and a user's empty home."""

    environment: Path
    user: Path

    @property
    def python(self) -> Path:
        return self.environment / "bin" / "python"

    @property
    def docindex(self) -> Path:
        return self.environment / "bin" / "docindex"

    @property
    def variables(self) -> dict[str, str]:
        """The complete environment of a command's process, free of the tests' own variables."""
        return {
            "PATH": f"{self.environment / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.user),
            "XDG_CACHE_HOME": str(self.user / "cache"),
            "XDG_CONFIG_HOME": str(self.user / "config"),
            "LANG": "C.UTF-8",
        }

    def run(self, folder: Path, *arguments: str, code: int = 0, before: tuple[str, ...] = ()) -> str:
        """Return the output of a command; `before` is a prefix such as `env`."""
        command = [*before, str(self.docindex), *arguments]
        ended = subprocess.run(
            command, cwd=folder, env=self.variables, capture_output=True, text=True, check=False, timeout=600
        )
        assert ended.returncode == code, f"{arguments}: {ended.stdout}{ended.stderr}"
        assert "Traceback" not in ended.stderr
        return ended.stdout

    @contextmanager
    def serving(self, folder: Path, path: str, command: str, *options: str) -> Iterator[str]:
        """Yield the address of `docindex COMMAND` once it answers, then stop the server as Ctrl-C does."""
        port = free_port()
        address = f"http://127.0.0.1:{port}"
        with (folder.parent / f"{command}.log").open("w+") as log:
            process = subprocess.Popen(
                [self.docindex, command, "--port", str(port), *options],
                cwd=folder,
                env=self.variables,
                stdout=log,
                stderr=log,
            )
            try:
                _wait(process, f"{address}{path}", Path(log.name))
                yield address
                process.send_signal(signal.SIGINT)
                assert process.wait(timeout=LONGEST_S) in {0, 130, -signal.SIGINT}
            finally:
                process.kill()
                process.wait()


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    ends_at = time.monotonic() + LONGEST_S
    while time.monotonic() < ends_at and process.poll() is None:
        try:
            if httpx.get(url).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(_STEP_S)
    raise AssertionError(f"{url} does not answer: {log.read_text()}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def made(environment: Path, python: Path, wheel: Path, tools: Path) -> None:
    """Create an environment with a wheel and its dependencies from the package index only."""
    uv = str(tools / "uv")
    # Run outside the clone so that its settings are ignored.
    where = environment.parent
    for command in (
        [uv, "venv", "--quiet", "--python", str(python), str(environment)],
        [uv, "pip", "install", "--quiet", "--python", str(environment / "bin" / "python"), str(wheel)],
    ):
        subprocess.run(command, cwd=where, check=True, env={**os.environ, "UV_PYTHON_DOWNLOADS": "never"})
