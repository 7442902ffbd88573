"""Erasing the rows that runs have shown: Dagster keeps them with each event, and what they are of may be gone."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import dagster as dg

from docindex_dagster.core.errors import StoreError
from docindex_dagster.defs.internals import INDEX_SHARD_NAME, SqliteEventLogStorage

_TABLE = "TableMetadataEntryData"  # as Dagster writes one, with its rows as `records`
_COLUMNS = (
    ("event_logs", "event"),
    ("asset_keys", "last_materialization"),
    ("asset_check_executions", "evaluation_event"),
)
_PATIENCE_S = 10.0  # for who uses a database now


def erase_samples(instance: dg.DagsterInstance) -> None:
    """Take the rows of all tables out of what is kept of runs, and leave no copy of them. Numbers and words stay.

    Raises:
        StoreError: the instance keeps events in no SQLite files, or another process uses them.
    """
    storage = instance.event_log_storage
    if not isinstance(storage, SqliteEventLogStorage):
        raise StoreError(f"rows that runs have shown stay in {type(storage).__name__}: delete the events there")
    for database in sorted(Path(storage.path_for_shard(INDEX_SHARD_NAME)).parent.glob("*.db")):
        try:
            _erase(database)
        except sqlite3.OperationalError as error:
            raise StoreError(f"{database}: {error}: stop what uses Dagster's record and prune again") from error


def _erase(database: Path) -> None:
    with closing(sqlite3.connect(database, isolation_level=None, timeout=_PATIENCE_S)) as connection:
        connection.create_function("without_rows", 1, _without_rows, deterministic=True)
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table, column in _COLUMNS:
            if table in tables:
                connection.execute(f"UPDATE {table} SET {column} = without_rows({column})")  # noqa: S608 both are ours
        connection.execute("VACUUM")  # what was replaced or deleted before stays in the file without
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _without_rows(event: str | None) -> str | None:
    """An event as Dagster wrote it, with empty tables."""
    if event is None or _TABLE not in event:
        return event
    return json.dumps(json.loads(event, object_hook=_emptied))


def _emptied(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "records": []} if value.get("__class__") == _TABLE else value
