"""Locks between machines: advisory locks in the Postgres database that stores Dagster's runs.

Each lock has its own session, so Postgres releases the locks of a process that dies. A lost machine or a paused process
sends no heartbeats. A process that waits for its lock terminates its session once that has been silent for longer than
the lease, measured only by the server's clock. The detection of lost runs terminates all such sessions. A terminated
session is never reopened. `Held.check` detects the loss before anything is published, and a publication with a
conditional put is safe in any case.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psycopg2

from docindex_dagster.core.errors import LockError, LostLockError, first_line
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.locks import Held

LEASE_S = 60.0
_POLL_S = 0.1
_HEARTBEATS_PER_LEASE = 6
_MAX_INTERVAL_S = 5.0
_CONNECT_TIMEOUT_S = 10
_MAX_NAME_BYTES = 63  # limit of Postgres for the application name of a session
_PREFIX = "docindex "  # of the application names of our sessions
_JOIN_TIMEOUT_S = 5  # for the heartbeat thread to end
# Each end of a connection notices within half a minute that the other is gone.
_KEEPALIVES = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
_USER_TIMEOUT_MS = 30_000

# The session that holds the lock, if any.
_HOLDER = """
SELECT pid, pid = pg_backend_pid(), application_name, host(client_addr)
FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND classid = %(high)s AND objid = %(low)s AND objsubid = 1 AND granted
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
# Only the server's clock counts: it also timestamps the session's last statement.
_END_IF_SILENT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid = %(pid)s AND clock_timestamp() - state_change > %(lease)s * interval '1 second'
"""
_END_ALL_SILENT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE starts_with(application_name, %(mark)s) AND datname = current_database() AND pid <> pg_backend_pid()
AND clock_timestamp() - state_change > %(lease)s * interval '1 second'
"""


@dataclass(frozen=True, slots=True)
class PostgresLocks:
    """Named locks.

    Attributes:
        url: The URL of the database, as in Dagster's settings.
        namespace: The namespace of the locks, which separates deployments.
        lease_s: How long a session that holds a lock may be silent, in seconds.
    """

    url: str
    namespace: str
    lease_s: float = LEASE_S

    @contextmanager
    def exclusive(self, name: str, owner: str, on_wait: Callable[[str], None]) -> Iterator[Held]:
        """Hold a lock. If another owner holds it, call `on_wait` once with that `owner` text, then wait.

        Raises:
            LockError: Postgres is unreachable, or the connection broke before the lock was held.
        """
        try:
            session = _Session.begin(self.url, digest_parts(self.namespace, name), name, owner)
        except psycopg2.Error as error:
            raise _unusable(error) from error
        with closing(session):
            try:
                _wait_for(session, self.lease_s, on_wait)
            except psycopg2.Error as error:
                raise _unusable(error) from error
            with _heartbeats(session, min(self.lease_s / _HEARTBEATS_PER_LEASE, _MAX_INTERVAL_S)):
                yield session

    def is_held(self, name: str) -> bool:
        """Return whether a lock has an owner; terminate the owner's session if it was silent beyond the lease.

        Raises:
            LockError: Postgres is unreachable.
        """
        try:
            with closing(
                _Session.begin(self.url, digest_parts(self.namespace, name), name, "a status query")
            ) as session:
                session.end_silent_holder(self.lease_s)
                return session.has_holder()
        except psycopg2.Error as error:
            raise _unusable(error) from error

    def end_silent(self) -> None:
        """Terminate all sessions that were silent beyond the lease, whichever locks they hold.

        Raises:
            LockError: Postgres is unreachable.
        """
        try:
            with closing(_Session.begin(self.url, digest_parts(self.namespace), "all", "a status query")) as session:
                session.end_all_silent(self.lease_s)
        except psycopg2.Error as error:
            raise _unusable(error) from error


def _wait_for(session: "_Session", lease_s: float, on_wait: Callable[[str], None]) -> None:
    if session.take():
        return
    on_wait(session.holder())
    while not session.take():
        session.end_silent_holder(lease_s)
        time.sleep(_POLL_S)


@contextmanager
def _heartbeats(session: "_Session", interval_s: float) -> Iterator[None]:
    """Send heartbeats from the session until the block ends or the session is terminated."""
    is_over = threading.Event()

    def beat() -> None:
        while not is_over.wait(interval_s) and session.is_held():
            pass

    thread = threading.Thread(target=beat, name=f"lock of {session.name}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(_JOIN_TIMEOUT_S)


@dataclass(frozen=True, slots=True)
class _Session:
    """A connection to Postgres for one lock. Thread-safe."""

    connection: Any
    key: dict[str, int]  # the 64-bit lock number, split into two halves
    name: str
    owner: str

    @classmethod
    def begin(cls, url: str, digest: str, name: str, owner: str) -> "_Session":
        """Connect."""
        _, _, location = url.partition("://")
        connection = psycopg2.connect(
            f"postgresql://{location}",  # drops SQLAlchemy's driver name
            application_name=_application_name(owner),
            connect_timeout=_CONNECT_TIMEOUT_S,
            keepalives=1,
            tcp_user_timeout=_USER_TIMEOUT_MS,
            **_KEEPALIVES,
        )
        connection.autocommit = True
        session = cls(connection, {"high": int(digest[:8], 16), "low": int(digest[8:16], 16)}, name, owner)
        for setting, value in (*_KEEPALIVES.items(), ("user_timeout", _USER_TIMEOUT_MS)):
            session._execute(f"SET tcp_{setting} = {value}")
        return session

    def take(self) -> bool:
        """Try to acquire the lock, and return whether that succeeded."""
        number = self.key["high"] << 32 | self.key["low"]
        signed = number - (1 << 64) if number >> 63 else number
        return bool(self._execute("SELECT pg_try_advisory_lock(%(number)s)", number=signed)[0][0])

    def holder(self) -> str:
        """Return the owner text and the host of the session that holds the lock."""
        for _, _, name, host in self._execute(_HOLDER):
            return " at ".join(filter(None, (name.removeprefix(_PREFIX), host)))
        return "an owner that has just finished"

    def has_holder(self) -> bool:
        """Return whether any session holds the lock."""
        return bool(self._execute(_HOLDER))

    def end_silent_holder(self, lease_s: float) -> None:
        """Terminate the session that holds the lock if it was silent beyond the lease."""
        for pid, *_ in self._execute(_HOLDER):
            self._execute(_END_IF_SILENT, pid=pid, lease=lease_s)

    def end_all_silent(self, lease_s: float) -> None:
        """Terminate each of docindex's sessions that was silent beyond the lease."""
        self._execute(_END_ALL_SILENT, mark=_PREFIX, lease=lease_s)

    def is_held(self) -> bool:
        """Return whether this session holds the lock."""
        try:
            return any(is_this for _, is_this, *_ in self._execute(_HOLDER))
        except psycopg2.Error:
            return False

    def __call__(self, text: str, /) -> None:
        """Show the owner's current activity in the application name, as long as the session lives."""
        with suppress(psycopg2.Error):
            self._execute("SET application_name = %(shown)s", shown=_application_name(f"{self.owner}: {text}"))

    def check(self) -> None:
        """Check that the lock is still held.

        Raises:
            LostLockError: The lock was lost.
        """
        if not self.is_held():
            raise LostLockError(
                f"lost the lock of {self.name}: this process was paused for too long, or Postgres was restarted; "
                "this run publishes nothing, and another run will do its work"
            )

    def close(self) -> None:
        """Close the session, which releases the lock."""
        with suppress(psycopg2.Error):
            self.connection.close()

    def _execute(self, statement: str, **values: object) -> list[Any]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement, {**self.key, **values})
            return list(cursor.fetchall()) if cursor.description else []


def _application_name(text: str) -> str:
    return f"{_PREFIX}{text}".encode("utf-8", "replace")[:_MAX_NAME_BYTES].decode("utf-8", "ignore")


def _unusable(error: psycopg2.Error) -> LockError:
    return LockError(f"cannot use locks in Postgres: {first_line(error)}; check that the server is running")
