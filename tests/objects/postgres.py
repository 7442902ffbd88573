"""Private Postgres server for tests: Debian's version, run by an ordinary user as it requires."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
_QUICK = ("fsync=off", "full_page_writes=off", "synchronous_commit=off", "log_min_messages=fatal")


@dataclass(frozen=True)
class Postgres:
    """Postgres cluster in its own folder, which tests can start and stop."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        return f"postgresql+psycopg2://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def plain_url(self) -> str:
        """The URL without the name of SQLAlchemy's driver."""
        return self.url.replace("+psycopg2", "")

    def create(self) -> None:
        self._run("initdb", "--auth=trust", "--username=postgres", "--no-sync", "--pgdata", str(self.folder / "data"))

    def start(self) -> None:
        settings = " ".join(f"-c {one}" for one in (*_QUICK, f"unix_socket_directories={self.folder}"))
        options = f"-p {self.port} -h 127.0.0.1 {settings}"
        self._control("start", "--options", options, "--log", str(self.folder / "log"))

    def stop(self) -> None:
        self._control("stop", "--mode", "immediate")

    def restart(self) -> None:
        self.stop()
        self.start()

    def holders(self) -> list[str]:
        """Return the sorted names of the sessions that hold advisory locks."""
        names = "SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory'"
        psql = [str(_PROGRAMS[-1] / "psql"), "-XAtq", self.plain_url, "-c", f"{names} AND granted ORDER BY 1"]
        return subprocess.run(psql, check=True, capture_output=True, text=True).stdout.splitlines()

    def _control(self, action: str, *arguments: str) -> None:
        self._run("pg_ctl", action, "--wait", "--silent", "--pgdata", str(self.folder / "data"), *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(_PROGRAMS[-1] / program), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **_ordinary_user())


def _ordinary_user() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    found = pwd.getpwnam("postgres")
    return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}


@contextmanager
def serving() -> Iterator[Postgres]:
    """Run the server during the block, or skip the test if Postgres is not installed."""
    if not _PROGRAMS:
        pytest.skip("there is no Postgres: install Debian's package postgresql")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="docindex-postgres-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    server = Postgres(folder, port)
    try:
        server.create()
        server.start()
        yield server
        server.stop()
    finally:
        shutil.rmtree(folder)
