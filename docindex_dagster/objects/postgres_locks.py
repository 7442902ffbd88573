"""Locks between machines: the advisory locks of the Postgres in which Dagster keeps its runs.

Each is held by a session of its own, so that a process that dies leaves none behind. A machine that is gone, or a
process that was paused, sends nothing any more: who waits ends its session once that was silent for longer than the
lease, by the server's clock alone, and who looks for runs that are lost ends all such sessions. One that was ended is
never made anew. `Held.check` says that it was, before anything is published; and what is published by a conditional put
is safe in any case.
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
_BEATS_A_LEASE = 6
_LONGEST_BEAT_S = 5.0
_CONNECT_TIMEOUT_S = 10
_MOST_NAME = 63  # bytes of the name that Postgres shows of a session
_MARK = "docindex "  # how that of each session of ours begins
_ENDED_S = 5  # that the thread of the heartbeat may take to end
# How soon each end of a connection notices that the other is gone: within half a minute.
_KEEPALIVES = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
_USER_TIMEOUT_MS = 30_000

# The session that holds the lock, if one does.
_HOLDER = """
SELECT pid, pid = pg_backend_pid(), application_name, host(client_addr)
FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND classid = %(high)s AND objid = %(low)s AND objsubid = 1 AND granted
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
# The server's clock alone, which the session's last statement was seen by, says how long it was silent.
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
    """Locks by name.

    Attributes:
        url: of the database, as Dagster's settings have it.
        namespace: whose locks they are: those of two deployments are not the same.
        lease_s: how long a session that holds one may be silent.
    """

    url: str
    namespace: str
    lease_s: float = LEASE_S

    @contextmanager
    def exclusive(self, name: str, owner: str, on_wait: Callable[[str], None]) -> Iterator[Held]:
        """Hold a lock; when another holds it, call `on_wait` with its `owner` text once, and wait.

        Raises:
            LockError: Postgres cannot be reached, or went away before the lock was held.
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
            with _beating(session, min(self.lease_s / _BEATS_A_LEASE, _LONGEST_BEAT_S)):
                yield session

    def is_held(self, name: str) -> bool:
        """Whether a lock is held by one who was heard of within the lease; the session of another is ended.

        Raises:
            LockError: Postgres cannot be reached.
        """
        try:
            with closing(_Session.begin(self.url, digest_parts(self.namespace, name), name, "a look")) as session:
                session.end_silent_holder(self.lease_s)
                return session.has_holder()
        except psycopg2.Error as error:
            raise _unusable(error) from error

    def end_silent(self) -> None:
        """End all sessions that were silent for longer than the lease, whichever locks they hold.

        Raises:
            LockError: Postgres cannot be reached.
        """
        try:
            with closing(_Session.begin(self.url, digest_parts(self.namespace), "all", "a look")) as session:
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
def _beating(session: "_Session", interval_s: float) -> Iterator[None]:
    """Let the session be heard of while the block lasts, or until it is ended."""
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
        thread.join(_ENDED_S)


@dataclass(frozen=True, slots=True)
class _Session:
    """A connection to Postgres, for one lock. Threads may share it."""

    connection: Any
    key: dict[str, int]  # the number of the lock, as two halves
    name: str
    owner: str

    @classmethod
    def begin(cls, url: str, digest: str, name: str, owner: str) -> "_Session":
        """Connect."""
        _, _, place = url.partition("://")
        connection = psycopg2.connect(
            f"postgresql://{place}",  # without the name of SQLAlchemy's driver
            application_name=_shown(owner),
            connect_timeout=_CONNECT_TIMEOUT_S,
            keepalives=1,
            tcp_user_timeout=_USER_TIMEOUT_MS,
            **_KEEPALIVES,
        )
        connection.autocommit = True
        session = cls(connection, {"high": int(digest[:8], 16), "low": int(digest[8:16], 16)}, name, owner)
        for setting, value in (*_KEEPALIVES.items(), ("user_timeout", _USER_TIMEOUT_MS)):
            session._ask(f"SET tcp_{setting} = {value}")
        return session

    def take(self) -> bool:
        """Hold the lock, if it is free."""
        number = self.key["high"] << 32 | self.key["low"]
        signed = number - (1 << 64) if number >> 63 else number
        return bool(self._ask("SELECT pg_try_advisory_lock(%(number)s)", number=signed)[0][0])

    def holder(self) -> str:
        """What the one who holds it is called, and where it is."""
        for _, _, name, place in self._ask(_HOLDER):
            return " at ".join(filter(None, (name.removeprefix(_MARK), place)))
        return "one that has just ended"

    def has_holder(self) -> bool:
        """Whether any session holds it."""
        return bool(self._ask(_HOLDER))

    def end_silent_holder(self, lease_s: float) -> None:
        """End the session that holds the lock if it was silent for too long."""
        for pid, *_ in self._ask(_HOLDER):
            self._ask(_END_IF_SILENT, pid=pid, lease=lease_s)

    def end_all_silent(self, lease_s: float) -> None:
        """End each session of ours that was silent for too long."""
        self._ask(_END_ALL_SILENT, mark=_MARK, lease=lease_s)

    def is_held(self) -> bool:
        """Whether this session holds the lock."""
        try:
            return any(is_this for _, is_this, *_ in self._ask(_HOLDER))
        except psycopg2.Error:
            return False

    def __call__(self, text: str, /) -> None:
        """Show what its owner is doing at the session, for as long as that lives."""
        with suppress(psycopg2.Error):
            self._ask("SET application_name = %(shown)s", shown=_shown(f"{self.owner}: {text}"))

    def check(self) -> None:
        """Make sure that the lock is held still.

        Raises:
            LostLockError: it is not.
        """
        if not self.is_held():
            raise LostLockError(
                f"the lock of {self.name} is lost: this process was paused for too long, or Postgres was restarted; "
                "nothing of this run is published, and another run does its work"
            )

    def close(self) -> None:
        """End the session, and with it the lock."""
        with suppress(psycopg2.Error):
            self.connection.close()

    def _ask(self, statement: str, **values: object) -> list[Any]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement, {**self.key, **values})
            return list(cursor.fetchall()) if cursor.description else []


def _shown(text: str) -> str:
    return f"{_MARK}{text}".encode("utf-8", "replace")[:_MOST_NAME].decode("utf-8", "ignore")


def _unusable(error: psycopg2.Error) -> LockError:
    return LockError(f"the locks in Postgres cannot be used: {first_line(error)}; is its server well?")
