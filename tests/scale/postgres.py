"""A temporary Postgres cluster from Debian's package."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.scale.processes import free_port, running, wait_for

_USER = "docindex"
_DATABASE = "docindex"
# The data need not survive a power failure.
_QUICK = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=200")


@dataclass(slots=True)
class Postgres:
    """A running cluster with one database."""

    programs: Path
    folder: Path
    port: int
    _process: ExitStack = field(default_factory=ExitStack)

    @property
    def url(self) -> str:
        """Return the database URL for psycopg and libpq."""
        return f"postgresql://{_USER}@127.0.0.1:{self.port}/{_DATABASE}"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def start(self) -> None:
        """Start the server on the existing cluster."""
        settings = (f"unix_socket_directories={self.folder}", "listen_addresses=127.0.0.1", *_QUICK)
        options = [word for setting in settings for word in ("-c", setting)]
        program = (self.programs / "postgres", "-D", self.folder / "data", "-p", str(self.port))
        command: list[str | Path] = [*as_owner(), *program, *options]
        self._process.enter_context(running(command, self.log, self.port, ends_with=signal.SIGINT))
        wait_for(self._is_ready, "Postgres to be ready")

    def _is_ready(self) -> bool:
        """Return whether the server accepts sessions: it listens before that."""
        command: list[str | Path] = [self.programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(command, check=False).returncode == 0

    def stop(self) -> None:
        """Stop the server and end open sessions."""
        self._process.close()

    def restart(self) -> None:
        """Restart the server and end open sessions."""
        self.stop()
        self.start()

    def ask(self, statement: str, database: str = _DATABASE) -> list[str]:
        """Run a statement and return the rows of its result, with columns separated by `|`."""
        command: list[str | Path] = [
            self.programs / "psql",
            "-XAtq",
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
            "-U",
            _USER,
        ]
        done = subprocess.run([*command, "-d", database, "-c", statement], check=True, capture_output=True, text=True)
        return done.stdout.splitlines()

    def terminate_backends(self) -> int:
        """End all other sessions and return their number."""
        others = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        return self.ask(f"SELECT pg_terminate_backend(pid) {others}").count("t")

    def advisory_locks(self) -> list[str]:
        """Return the sessions that hold advisory locks, each with its name and the seconds since its last activity."""
        return self.ask(
            "SELECT application_name, extract(epoch FROM clock_timestamp() - state_change)::int "
            "FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND granted"
        )


@contextmanager
def postgres() -> Iterator[Postgres]:
    """Create and start a cluster, and remove it at the end."""
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="docindex-postgres-"))
    made = Postgres(programs, folder, free_port())
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, _owner())
        cluster = ("-D", folder / "data", "-U", _USER, "-E", "UTF8", "--locale=C", "--auth=trust", "--no-sync")
        subprocess.run([*as_owner(), programs / "initdb", *cluster], check=True, capture_output=True)
        made.log.touch()
        made.start()
        made.ask(f"CREATE DATABASE {_DATABASE}", database="postgres")
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not found:
        pytest.skip("there is no Postgres: apt-get install postgresql")
    return found[-1].parent


def as_owner() -> Sequence[str]:
    """Return a command prefix that switches to the cluster's owner: Postgres refuses to run as root."""
    return ("setpriv", f"--reuid={_owner()}", "--clear-groups", "--pdeathsig", "KILL") if os.geteuid() == 0 else ()


def _owner() -> str:
    names = {user.pw_name for user in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"
