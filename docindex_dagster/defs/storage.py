"""Dagster's SQLite storage for a process that writes many events in a row.

The classes that they extend make an engine, and open and close a connection, for each of the hundred events of a run,
which takes longer than the run itself. These keep both. The files are the same, so the UI reads them as ever.
"""

import os
import shutil
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from threading import Lock, RLock
from typing import Any

import dagster as dg
from sqlalchemy import Connection, Engine, create_engine, event, inspect
from sqlalchemy.pool import QueuePool

from docindex_dagster.core.files import replacing
from docindex_dagster.defs.internals import EVENTS, INDEX_SHARD_NAME, RUNLESS_RUN_ID, SqliteEventLogStorage, SqliteRunStorage

# A run has a database of its own; runs that are over are not written again.
_MOST_ENGINES = 8
# What a step says between its beginning and its end, and a run before it begins.
_KINDS = dg.DagsterEventType
_GATHERED = frozenset(
    {
        _KINDS.ASSET_MATERIALIZATION_PLANNED,
        _KINDS.ASSET_CHECK_EVALUATION_PLANNED,
        _KINDS.LOADED_INPUT,
        _KINDS.STEP_INPUT,
        _KINDS.STEP_OUTPUT,
        _KINDS.HANDLED_OUTPUT,
        _KINDS.ASSET_MATERIALIZATION,
        _KINDS.ASSET_CHECK_EVALUATION,
    }
)
# Those that Dagster writes into the log of the run alone.
_PLAIN = frozenset(
    {
        _KINDS.STEP_START,
        _KINDS.LOADED_INPUT,
        _KINDS.STEP_INPUT,
        _KINDS.STEP_OUTPUT,
        _KINDS.HANDLED_OUTPUT,
        _KINDS.STEP_SUCCESS,
    }
)
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
    """The event log, with connections that are kept, and events of a step that are written together.

    What a step loads, makes and checks is gathered until something is asked of the log, or the step ends. So a process
    that is killed loses of the step under way at most.
    """

    def __init__(self, base_dir: str, inst_data: Any = None) -> None:
        self._engines = Engines()
        self._tables: set[str] = set()
        self._columns: set[str] = set()
        self._indexes: set[str] = set()
        self._turn = RLock()
        self._begun: dict[str, Connection] = {}  # the transactions under way
        self._gathered: list[dg.EventLogEntry] = []
        # What was answered since the step under way began, or made something; None where no step is.
        self._answers: dict[str, Any] | None = None
        super().__init__(base_dir, inst_data)

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> "EventLogStorage":
        """The storage that an instance's settings describe."""
        return cls(inst_data=inst_data, **config_value)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        """A transaction of a database: the one under way, or a new one that sees all that was gathered."""
        with self._turn:
            if shard in self._begun:
                yield self._begun[shard]
                return
            self._write_gathered()
            with self._transaction(shard) as connection:
                yield connection

    @contextmanager
    def _transaction(self, shard: str) -> Iterator[Connection]:
        engine = self._engines.get(self.conn_string_for_shard(shard))
        if shard not in self._initialized_dbs:
            if shard == INDEX_SHARD_NAME or not self._copied(Path(self.path_for_shard(shard))):
                self._initdb(engine)
            self._initialized_dbs.add(shard)
        with engine.begin() as connection:
            self._begun[shard] = connection
            try:
                yield connection
            finally:
                del self._begun[shard]

    def store_event(self, event: dg.EventLogEntry) -> None:
        """Write an event, and all that were gathered before; or gather it.

        Raises:
            Exception: something cannot be written: the event, or others that are lost as well.
        """
        with self._turn:
            kind = _kind(event)
            self._gathered.append(event)
            if event.run_id != RUNLESS_RUN_ID and kind in _GATHERED:
                if kind is _KINDS.ASSET_MATERIALIZATION and self._answers:
                    self._answers.clear()
                return
            self._answers = {} if kind is _KINDS.STEP_START else None
            try:
                self._write_gathered()
            except Exception:
                self._gathered.clear()
                raise

    def _write_gathered(self) -> None:
        """Write what was gathered in one transaction a database; it stays gathered where that fails."""
        if not self._gathered or self._begun:
            return
        with ExitStack() as begun:
            for shard in (INDEX_SHARD_NAME, *{event.run_id for event in self._gathered}):
                begun.enter_context(self._transaction(shard))
            for is_plain, events in groupby(self._gathered, lambda event: _kind(event) in _PLAIN):
                if is_plain:
                    self._write_plain(list(events))
                else:
                    for event in events:
                        super().store_event(event)
        self._gathered.clear()

    def _write_plain(self, events: list[dg.EventLogEntry]) -> None:
        """Write events of which no index is made, a statement for all of a run."""
        for run_id, of_run in groupby(events, lambda event: event.run_id):
            with self.run_connection(run_id) as connection:
                connection.execute(EVENTS.insert(), [self._event_to_row(event) for event in of_run])

    def fetch_materializations(
        self, records_filter: Any, limit: int, cursor: str | None = None, ascending: bool = False
    ) -> Any:
        """The materialisations of an asset; each check asks for the newest one twice, so it is remembered."""
        question = repr((records_filter, limit, cursor, ascending))
        ask = super().fetch_materializations
        return self._answer(question, lambda: ask(records_filter, limit, cursor, ascending))

    def has_dynamic_partition(self, partitions_def_name: str, partition_key: str) -> bool:
        """Whether there is a partition; asked sixty times in a run, so it is remembered while a step is under way."""
        question = repr((partitions_def_name, partition_key))
        ask = super().has_dynamic_partition
        found: bool = self._answer(question, lambda: ask(partitions_def_name, partition_key))
        return found

    def delete_dynamic_partition(self, partitions_def_name: str, partition_key: str) -> None:
        """Delete a partition, and forget whether it was there."""
        super().delete_dynamic_partition(partitions_def_name, partition_key)
        with self._turn:
            if self._answers:
                self._answers.clear()

    def _answer(self, question: str, ask: Callable[[], Any]) -> Any:
        with self._turn:
            if self._answers is None:
                return ask()
            if question not in self._answers:
                self._answers[question] = ask()
            return self._answers[question]

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

    def _has_asset_key_col_on_connection(self, conn: Connection, column_name: str) -> bool:
        """Whether the table of assets has a column; asked for each of their events, so one that was there is known."""
        if column_name not in self._columns and super()._has_asset_key_col_on_connection(conn, column_name):
            self._columns.add(column_name)
        return column_name in self._columns

    def has_secondary_index(self, name: str) -> bool:
        """Whether an index of the log was made; asked twice a step, so one that was there is remembered."""
        if name not in self._indexes and super().has_secondary_index(name):
            self._indexes.add(name)
        return name in self._indexes

    def has_table(self, table_name: str) -> bool:
        """Whether the index of the log has a table; asked for each event, so one that was there is remembered."""
        if table_name not in self._tables:
            with self._engines.get(self.conn_string_for_shard(INDEX_SHARD_NAME)).connect() as connection:
                if not inspect(connection).has_table(table_name):
                    return False
            self._tables.add(table_name)
        return True

    def dispose(self) -> None:
        """Write what was gathered, and close all connections."""
        try:
            with self._turn:
                self._write_gathered()
        finally:
            self._engines.dispose()
            super().dispose()


def _kind(event: dg.EventLogEntry) -> dg.DagsterEventType | None:
    return event.dagster_event.event_type if event.dagster_event else None


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
