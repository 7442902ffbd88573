"""Dagster's SQLite storage for a process that writes many events in a row.

The classes that they extend make an engine, and open and close a connection, for each of the hundred events of a run,
which takes longer than the run itself. These keep both. The files are the same, so the UI reads them as ever.
"""

import os
import shutil
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path
from threading import Lock, RLock
from typing import Any

import dagster as dg
from sqlalchemy import Connection, Engine, create_engine, event, inspect
from sqlalchemy.pool import QueuePool

from docindex_dagster.core.files import replacing
from docindex_dagster.defs.internals import EVENTS, INDEX_SHARD_NAME, SqliteEventLogStorage, SqliteRunStorage
from docindex_dagster.defs.step_events import PLAIN, Answers, kind_of, may_wait

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
        self._answers = Answers()
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
        """Write an event with those that were gathered before, or gather it.

        Raises:
            Exception: one of them cannot be written; none of them is.
        """
        with self._turn:
            self._answers.note(event)
            self._gathered.append(event)
            if may_wait(event):
                return
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
            for is_plain, events in groupby(self._gathered, lambda event: kind_of(event) in PLAIN):
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
        self,
        records_filter: Any,
        limit: int,
        cursor: str | None = None,
        ascending: bool = False,  # noqa: FBT001, FBT002 as Dagster has it
    ) -> Any:
        """The materialisations of an asset, which a run asks for once."""
        asset = records_filter if isinstance(records_filter, dg.AssetKey) else records_filter.asset_key
        arguments = records_filter, limit, cursor, ascending
        ask = super().fetch_materializations
        with self._turn:
            return self._answers.of(asset, ("materializations", arguments), lambda: ask(*arguments))

    def get_latest_tags_by_partition(  # noqa: PLR0917 as Dagster has it
        self,
        asset_key: dg.AssetKey,
        event_type: dg.DagsterEventType,
        tag_keys: Sequence[str],
        asset_partitions: Sequence[str] | None = None,
        before_cursor: int | None = None,
        after_cursor: int | None = None,
    ) -> Any:
        """The tags of the newest events of an asset, which a run asks for once."""
        arguments = asset_key, event_type, tag_keys, asset_partitions, before_cursor, after_cursor
        ask = super().get_latest_tags_by_partition
        with self._turn:
            return self._answers.of(asset_key, ("tags", arguments), lambda: ask(*arguments))

    def get_asset_records(self, asset_keys: Sequence[dg.AssetKey] | None = None) -> Any:
        """The newest of all that is known of assets, which a run asks for once an asset."""
        ask = super().get_asset_records
        with self._turn:
            if asset_keys is None or not self._answers.are_remembered:
                return ask(asset_keys)
            records = [self._answers.of(asset, "record", partial(ask, [asset])) for asset in asset_keys]
        return [record for found in records for record in found]

    def has_dynamic_partition(self, partitions_def_name: str, partition_key: str) -> bool:
        """Whether there is a partition, which a step asks for once."""
        arguments = partitions_def_name, partition_key
        ask = super().has_dynamic_partition
        with self._turn:
            return bool(self._answers.of(None, arguments, lambda: ask(*arguments)))

    def delete_dynamic_partition(self, partitions_def_name: str, partition_key: str) -> None:
        """Delete a partition."""
        super().delete_dynamic_partition(partitions_def_name, partition_key)
        with self._turn:
            self._answers.forget_partitions()

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
