"""Dagster's SQLite storage for a process that writes many events in a row.

The classes that they extend make an engine, and open and close a connection, for each of the hundred events of a run,
which takes longer than the run itself. These keep both. The files are the same, so the UI reads them as ever.
"""

import os
import shutil
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import dagster as dg
from sqlalchemy import Connection, Engine, create_engine, event, inspect
from sqlalchemy.pool import QueuePool

from docindex_dagster.core.files import replacing
from docindex_dagster.defs.internals import INDEX_SHARD_NAME, SqliteEventLogStorage, SqliteRunStorage

# A run has a database of its own; runs that are over are not written again.
_MOST_ENGINES = 8
# How long a write waits for another process; the SQLite driver's own 5 s are too short beside a UI and its daemon.
_BUSY_TIMEOUT_S = 30


class Engines:
    """Engines by database, each with its open connections; those used longest ago are closed. Threads share them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._engines: OrderedDict[str, Engine] = OrderedDict()

    def get(self, database: str) -> Engine:
        """The engine of a database, given by its URL."""
        with self._lock:
            if database not in self._engines:
                self._engines[database] = _engine(database)
                if len(self._engines) > _MOST_ENGINES:
                    self._engines.popitem(last=False)[1].dispose()
            self._engines.move_to_end(database)
            return self._engines[database]

    def dispose(self) -> None:
        """Close all connections."""
        with self._lock:
            while self._engines:
                self._engines.popitem()[1].dispose()


def _engine(database: str) -> Engine:
    engine = create_engine(
        database,
        poolclass=QueuePool,
        connect_args={"timeout": _BUSY_TIMEOUT_S, "check_same_thread": False},
    )
    event.listen(engine, "connect", _sync_less)
    return engine


def _sync_less(connection: Any, _record: Any) -> None:
    """Sync the write-ahead log when it is written back, not at each commit: a power cut may cost the last events."""
    connection.execute("PRAGMA synchronous=NORMAL")


class EventLogStorage(SqliteEventLogStorage):
    """The event log, with connections that are kept."""

    def __init__(self, base_dir: str, inst_data: Any = None) -> None:
        self._engines = Engines()
        self._tables: set[str] = set()
        self._has_index_columns = False
        super().__init__(base_dir, inst_data)

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> "EventLogStorage":
        """The storage that an instance's settings describe."""
        return cls(inst_data=inst_data, **config_value)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock:
            engine = self._engines.get(self.conn_string_for_shard(shard))
            if shard not in self._initialized_dbs:
                if shard == INDEX_SHARD_NAME or not self._copied(Path(self.path_for_shard(shard))):
                    self._initdb(engine)
                self._initialized_dbs.add(shard)
            with engine.begin() as connection:
                yield connection

    def _copied(self, database: Path) -> bool:
        """Make the database of a new run as a copy of an empty one, and say whether it did.

        Making its tables and indexes takes a third as long as the run of a source in which nothing changed.
        """
        if database.exists():
            return False
        empty = database.with_name(f"empty-{dg.__version__}")  # another Dagster may make other tables
        if not empty.exists():
            with replacing(empty) as temporary:
                engine = _engine(f"sqlite:///{temporary}")
                self._initdb(engine)
                engine.dispose()
        copy = database.with_name(f".{database.name}.{os.getpid()}.tmp")
        shutil.copyfile(empty, copy)
        try:
            database.hardlink_to(copy)
        except OSError:  # another process was first, or the file system has no links
            return False
        finally:
            copy.unlink()
        return True

    def _has_asset_key_index_cols_on_connection(self, conn: Connection) -> bool:
        """Whether the table of assets has columns of an index; asked for each of their events, so it is remembered."""
        self._has_index_columns = self._has_index_columns or super()._has_asset_key_index_cols_on_connection(conn)
        return self._has_index_columns

    def has_table(self, table_name: str) -> bool:
        """Whether the index of the log has a table; asked for each event, so one that was there is remembered."""
        if table_name not in self._tables:
            with self._engines.get(self.conn_string_for_shard(INDEX_SHARD_NAME)).connect() as connection:
                if not inspect(connection).has_table(table_name):
                    return False
            self._tables.add(table_name)
        return True

    def dispose(self) -> None:
        """Close all connections."""
        self._engines.dispose()
        super().dispose()


class RunStorage(SqliteRunStorage):
    """The runs, with connections that are kept."""

    def __init__(self, conn_string: str, inst_data: Any = None) -> None:
        self._engines = Engines()
        super().__init__(conn_string, inst_data)

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> "RunStorage":
        """The storage that an instance's settings describe."""
        return cls.from_local(inst_data=inst_data, **config_value)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """A connection with a transaction."""
        with self._engines.get(self._conn_string).begin() as connection:
            yield connection

    def dispose(self) -> None:
        """Close all connections."""
        self._engines.dispose()
        super().dispose()
