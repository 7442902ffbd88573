"""Sandbox that runs the examples of a page as a new user would, with the example repository."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.pages.page import Command, File

ROOT = Path(__file__).parents[2]
HOME = "/home/you"
"""Path that pages show instead of the sandbox's."""
_ADDRESS = re.compile(r"http://(127\.0\.0\.1):(\d+)")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_TIMEOUT = 120  # seconds
_START_TIMEOUT = 60  # seconds until a background command must have printed its output


class Sandbox:
    """Home folder with the example repository, and its background processes."""

    def __init__(self, home: Path) -> None:
        """Copy the example to `home/shop`, as a git repository with one commit."""
        self.home = home
        self.folder = home / "shop"
        self._background: list[subprocess.Popen[bytes]] = []
        shutil.copytree(ROOT / "examples" / "shop", self.folder)
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        names = ("KF_RULE_CACHE_DIR", "LANG", "PYTHONPATH", "TMPDIR")
        kept = {name: os.environ[name] for name in names if name in os.environ}
        identity = {f"GIT_{role}_{key}": "you" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
        self._environment = {**kept, **identity, "HOME": str(home), "PATH": path, "COLUMNS": "100", "TERM": "dumb"}
        self.shell("git init -q -b main && git add -A && git commit -q -m 'Open the shop'")

    def write(self, file: File) -> None:
        """Write or extend a file, relative to the current folder."""
        path = self.folder / file.name.replace("~", str(self.home))
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a" if file.appends else "w", encoding="utf-8") as stream:
            stream.write(file.content)

    def run(self, command: Command) -> str:
        """Run a command and return its output; a command that ends with `&` keeps running."""
        if command.folder:
            self.folder = self.home / command.folder
        if changed := re.fullmatch(r"cd (\S+)", command.text):
            self.folder = (self.folder / changed[1].replace("~", str(self.home))).resolve()
            return ""
        if command.text.endswith("&"):
            return self._start(command)
        return self.shell(command.text)

    def shell(self, text: str) -> str:
        """Run a shell command and return its output, followed by a line with its exit code unless it is 0."""
        done = subprocess.run(
            ["bash", "-c", text],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT,
            check=False,
        )
        return self._as_shown(done.stdout) + (f"exit code {done.returncode}\n" if done.returncode else "")

    def _start(self, command: Command) -> str:
        log = self.home / f"background-{len(self._background)}.log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command.text.removesuffix('&')}"],
                cwd=self.folder,
                env=self._environment,
                stdout=stream,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._background.append(process)
        deadline = time.monotonic() + _START_TIMEOUT
        while time.monotonic() < deadline and process.poll() is None:
            shown = self._as_shown(log.read_bytes())
            if matches(command.output, shown) and _listens(shown):
                return shown
            time.sleep(0.1)
        return self._as_shown(log.read_bytes())

    def _as_shown(self, output: bytes) -> str:
        text = _ANSI.sub("", output.decode("utf-8", "replace")).replace("\r\n", "\n")
        return text.replace(str(self.home.resolve()), HOME).replace(str(self.home), HOME)

    def close(self) -> None:
        """Stop the background processes."""
        for process in self._background:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _listens(shown: str) -> bool:
    """Return whether the server whose address an output shows accepts connections; true if it shows none."""
    if not (address := _ADDRESS.search(shown)):
        return True
    try:
        socket.create_connection((address[1], int(address[2])), timeout=1).close()
    except OSError:
        return False
    return True


def matches(expected: tuple[str, ...], output: str) -> bool:
    """Return whether output matches a page: `…` matches any text in a line, and any lines if it is alone."""
    lines = [line.rstrip() for line in expected if line.strip()]
    pattern = "".join(
        r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*?") + r"[ ]*\n" for line in lines
    )
    got = "".join(f"{line.rstrip()}\n" for line in output.splitlines() if line.strip())
    return re.fullmatch(pattern, got) is not None
