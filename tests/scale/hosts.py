"""Simulated hosts: each has its own name, disk and processes, and they share the loopback network.

A host is a set of Linux namespaces. It sees this machine's programs read-only and nothing of the other hosts. Hosts
require root or a user namespace.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.scale import boot
from tests.scale.processes import CHECKOUT, PATIENCE_S, kill, start

DISK = Path("/tmp/host")  # where each host mounts its own disk
_ORDINARY_USER = ("--user", "--map-root-user")
_NAMESPACES = ("--mount", "--uts", "--pid")
_FOLDERS = ("home", "tmp", "logs")


@dataclass(frozen=True, slots=True)
class Program:
    """A command started on a host, with all processes of its session."""

    host: "Host"
    name: str
    process: "subprocess.Popen[bytes]"

    @property
    def log(self) -> Path:
        return self.host.log(self.name)

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """Kill the program, as the kernel does when memory runs out."""
        kill(self.process)

    def pause(self) -> None:
        """Stop the program, as on a frozen machine."""
        _stop(self._processes)

    def resume(self) -> None:
        """Resume the program."""
        _resume(self._processes())

    def _processes(self) -> "list[Process]":
        return [process for process in self.host.processes() if process.session == self.process.pid]


@dataclass(frozen=True, slots=True)
class Process:
    """A process of a host, by its PID outside the host."""

    pid: int
    parent: int
    session: int
    command: str

    def kill(self) -> None:
        """Kill this process alone."""
        _send(self.pid, signal.SIGKILL)


@dataclass(slots=True)
class Host:
    """A simulated host; its disk outlives it."""

    name: str
    folder: Path
    variables: Mapping[str, str]
    _boot: "subprocess.Popen[bytes] | None" = None
    _first: int = 0  # PID of its init process
    _programs: list[Program] = field(default_factory=list)

    @property
    def is_up(self) -> bool:
        return self._boot is not None

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variables of its programs."""
        home = str(DISK / "home")
        return {
            "PATH": f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": home,
            "TMPDIR": str(DISK / "tmp"),
            "LANG": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            **self.variables,
        }

    def log(self, name: str) -> Path:
        """Return the log file of a program, readable from outside the host."""
        return self.folder / "logs" / f"{name}.log"

    def boot(self) -> None:
        """Start the host."""
        for name in _FOLDERS:
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        programs = dict.fromkeys((CHECKOUT, Path(sys.prefix), Path(sys.base_prefix)))
        first = [sys.executable, "-I", boot.__file__, self.name, str(self.folder), str(DISK), *map(str, programs)]
        command = [
            "setpriv",
            "--pdeathsig",
            "KILL",
            "unshare",
            *_user(),
            *_NAMESPACES,
            "--fork",
            "--kill-child",
            *first,
        ]
        self._boot = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        if self._boot.stdout.readline() != b"up\n":
            reason = self._boot.stderr.read().decode().strip()[-300:]
            self.crash()
            raise HostError(reason)
        self._first = int(Path(f"/proc/{self._boot.pid}/task/{self._boot.pid}/children").read_text())

    def crash(self) -> None:
        """Simulate a power failure: kill all processes immediately and keep the disk."""
        if self._boot is None:
            return
        if self._first:  # the init process ends after all others
            _send(self._first, signal.SIGKILL)
            for program in self._programs:
                program.kill()
            self._boot.wait()
        kill(self._boot)
        self._boot.stdout.close()
        self._boot.stderr.close()
        self._boot, self._first = None, 0
        self._programs.clear()

    def wipe(self) -> None:
        """Erase the disk of a stopped host, except for its programs' logs."""
        assert not self.is_up
        for part in self.folder.iterdir():
            if part.name == "logs":
                continue
            if part.is_dir() and not part.is_symlink():
                shutil.rmtree(part)
            else:
                part.unlink()

    def start(self, name: str, command: Sequence[str | Path], folder: Path = DISK, **variables: str) -> Program:
        """Start a command; its output goes to the log of this name."""
        process = start(self._entered(command, folder), self.log(name), self.environment | variables)
        program = Program(self, name, process)
        self._programs.append(program)
        return program

    def run(
        self, command: Sequence[str | Path], folder: Path = DISK, patience_s: float = PATIENCE_S, **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command and return its result."""
        return subprocess.run(
            self._entered(command, folder),
            env=self.environment | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=patience_s,
        )

    def pause(self) -> None:
        """Stop all processes of the host, like a frozen virtual machine."""
        _stop(self.processes)

    def resume(self) -> None:
        """Resume all processes of the host."""
        _resume(self.processes())

    def processes(self) -> list[Process]:
        """Return its processes except the init process, oldest first."""
        if not self.is_up:
            return []
        own = Path(f"/proc/{self._first}/ns/pid").stat().st_ino
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == self._first:
                continue
            with suppress(OSError):
                if (entry / "ns/pid").stat().st_ino == own:
                    _, parent, _, session, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found.append(Process(int(entry.name), int(parent), int(session), command.strip()))
        return sorted(found, key=lambda process: process.pid)

    def _entered(self, command: Sequence[str | Path], folder: Path) -> list[str | Path]:
        assert self.is_up
        user = () if os.geteuid() == 0 else ("--user", "--preserve-credentials")
        return ["nsenter", f"--target={self._first}", *user, *_NAMESPACES, "env", "-C", folder, *command]


class HostError(Exception):
    """Hosts are not supported on this machine."""


def _user() -> Sequence[str]:
    return () if os.geteuid() == 0 else _ORDINARY_USER


def _stop(processes: Callable[[], list[Process]]) -> None:
    """Stop processes, including any that they start meanwhile."""
    stopped: set[int] = set()
    while new := [process for process in processes() if process.pid not in stopped]:
        for process in new:
            _send(process.pid, signal.SIGSTOP)
            stopped.add(process.pid)


def _resume(processes: Sequence[Process]) -> None:
    """Resume processes, and their waiting parents outside the host, which were stopped with them."""
    for pid in {number for process in processes for number in (process.parent, process.pid)}:
        _send(pid, signal.SIGCONT)


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


@contextmanager
def host(folder: Path, name: str, **variables: str) -> Iterator[Host]:
    """Boot a host with its disk in a new subfolder of this folder."""
    made = Host(name, folder / name, variables)
    try:
        made.boot()
    except HostError as error:
        pytest.skip(f"no host can be made here, that takes root or a namespace of one's own: {error}")
    try:
        yield made
    finally:
        made.crash()
