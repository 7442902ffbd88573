"""Deletion of old runs, events and files; the open-source version of Dagster keeps all of them forever.

On SQLite, Dagster's `delete_run` leaves behind the database file of a run, its checks and its logs. Here, the runs are
deleted first, and then everything that belongs to no run. This includes leftovers of an interrupted clean-up or of
runs deleted in the UI. Transactions are small, because they block other writers. On other databases, only `delete_run`
is used.

The newest records are kept, however old they are: Dagster needs an event to count a partition as materialized, and
each page of its UI shows the newest record of a kind. These are the newest event of each kind for each asset and
partition, with the events of its inputs, the newest outcome of each check, and the newest run of each job and
partition. Runs to which any of these records belong are kept completely.

The sample rows that Dagster stores with each event can be erased, because their source may have been deleted.
"""

import json
import re
import shutil
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import dagster as dg
from sqlalchemy import Connection, delete, func, select

from docindex_dagster.core.errors import StoreError
from docindex_dagster.core.files import folder_bytes
from docindex_dagster.defs.internals import (
    BACKFILL_ID_TAG,
    BULK_ACTION_TERMINAL_STATUSES,
    CHECKS,
    EVENT_TAGS,
    EVENTS,
    INDEX_SHARD_NAME,
    RUN_TAGS,
    RUNLESS_RUN_ID,
    RUNS,
    BulkActionsFilter,
    BulkActionStatus,
    LocalComputeLogManager,
    SqlEventLogStorage,
    SqliteEventLogStorage,
    SqlRunStorage,
    extract_data_provenance_from_entry,
)
from docindex_dagster.defs.outcomes import FINISHED

_T = TypeVar("_T")
_PAGE = 500
_UNFINISHED = [status for status in BulkActionStatus if status not in BULK_ACTION_TERMINAL_STATUSES]
_EVENTS, _TAGS, _CHECKS, _RUNS = EVENTS.c, EVENT_TAGS.c, CHECKS.c, RUNS.c

# Ids grow with time, so the highest id of a kind is the newest, and is kept. So SQLite never reuses an id: a sensor
# would treat an event with a reused id as seen.
_NEWEST_EVENTS = select(func.max(_EVENTS.id)).group_by(_EVENTS.asset_key, _EVENTS.dagster_event_type, _EVENTS.partition)
# A planned check that was never evaluated would be the newest, but would not show how the check last went.
_IS_PLANNED = _CHECKS.execution_status == "PLANNED"
_NEWEST_CHECKS = select(func.max(_CHECKS.id)).group_by(
    _CHECKS.asset_key, _CHECKS.check_name, _CHECKS.partition, _IS_PLANNED
)
_NEWEST_RUNS = (
    select(func.max(_RUNS.id))
    .where(_RUNS.status.in_([status.value for status in FINISHED]))
    .group_by(_RUNS.pipeline_name, _RUNS.partition)
)
_FILE_OF_RUN = re.compile(r"(?P<run>.+)\.db(-wal|-shm|-journal)?")
_RUN_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MIN_FREE_SHARE = 0.25  # share of free pages from which a database is vacuumed
_MAX_VACUUM_BYTES = 256 << 20  # bytes; writers wait during a vacuum, and give up after half a minute
_TABLE = "TableMetadataEntryData"  # Dagster's name for a table, whose rows are `records`
_COLUMNS = (
    ("event_logs", "event"),
    ("asset_keys", "last_materialization"),
    ("asset_check_executions", "evaluation_event"),
)
_PATIENCE_S = 10.0  # for other users of a database


@dataclass(frozen=True, slots=True)
class Newest:
    """Ids of rows to keep in the index of the event log, and the runs that they belong to.

    Events without a run are copied to a second table with other ids, so their times identify them.
    """

    events: frozenset[int]
    checks: frozenset[int]
    runs: frozenset[str]
    runless: frozenset[datetime]


def newest(storage: SqlEventLogStorage) -> Newest:
    """Return what to keep of the event log."""
    check = select(_CHECKS.id, _CHECKS.evaluation_event_storage_id)
    event = select(_EVENTS.run_id, _EVENTS.timestamp)
    with storage.index_connection() as connection:
        checks = connection.execute(check.where(_CHECKS.id.in_(_NEWEST_CHECKS))).all()
        ids = set(connection.scalars(_NEWEST_EVENTS))
        ids |= {found.evaluation_event_storage_id for found in checks} - {None}
        ids |= _inputs(connection, ids)
        events = [row for page in _pages(ids) for row in connection.execute(event.where(_EVENTS.id.in_(page)))]
    return Newest(
        frozenset(ids),
        frozenset(found.id for found in checks),
        frozenset(found.run_id for found in events) - {RUNLESS_RUN_ID},
        frozenset(found.timestamp for found in events if found.run_id == RUNLESS_RUN_ID),
    )


def _inputs(connection: Connection, events: Collection[int]) -> set[int]:
    """Return the events that materializations were made from; without them, the UI shows current assets as stale."""
    found: set[int] = set()
    is_materialization = _EVENTS.dagster_event_type == dg.DagsterEventType.ASSET_MATERIALIZATION.value
    for page in _pages(events):
        for event in connection.scalars(select(_EVENTS.event).where(_EVENTS.id.in_(page), is_materialization)):
            provenance = extract_data_provenance_from_entry(dg.deserialize_value(event, dg.EventLogEntry))
            found.update(id_ for id_ in (provenance.input_storage_ids.values() if provenance else ()) if id_)
    return found


def _newest_runs(storage: SqlRunStorage) -> frozenset[str]:
    """Return the newest finished run of each job and partition, which shows whether the last one failed."""
    with storage.connect() as connection:
        return frozenset(connection.scalars(select(_RUNS.run_id).where(_RUNS.id.in_(_NEWEST_RUNS))))


def _runs_of_unfinished_backfills(instance: dg.DagsterInstance) -> frozenset[str]:
    """Return the runs from which Dagster derives the progress of a backfill."""
    unfinished = [backfill.backfill_id for backfill in instance.get_backfills(BulkActionsFilter(statuses=_UNFINISHED))]
    return frozenset(instance.get_run_ids(dg.RunsFilter(tags={BACKFILL_ID_TAG: unfinished})) if unfinished else ())


def _pages(items: Collection[_T]) -> Iterator[list[_T]]:
    """Yield pages of some hundred items, to limit statements and transactions."""
    remaining = iter(items)
    while page := list(islice(remaining, _PAGE)):
        yield page


@dataclass(frozen=True, slots=True)
class CleanUp:
    """Numbers of deleted items, and of old runs that were kept. Events and files are counted only on SQLite."""

    runs: int
    spared: int
    events: int = 0
    files: int = 0
    freed_bytes: int = 0


def clean_up(instance: dg.DagsterInstance, older_than: datetime) -> CleanUp:
    """Delete finished runs, and events without a run, that are older than a time, except the newest ones.

    Raises:
        StoreError: The instance does not keep its runs and events in SQL databases, which is required to query the
            newest ones.
    """
    events, runs = instance.event_log_storage, instance.run_storage
    if not isinstance(events, SqlEventLogStorage) or not isinstance(runs, SqlRunStorage):
        raise StoreError(
            f"cannot clean up {type(runs).__name__} and {type(events).__name__}: runs and events must be in SQL "
            "databases. Configure them in dagster.yaml, or stop the schedule that runs clean_up_dagster"
        )
    limit = older_than.astimezone(UTC).replace(tzinfo=None)  # the format of Dagster's tables
    outdated = instance.get_run_ids(dg.RunsFilter(statuses=FINISHED, updated_before=limit))
    kept = newest(events)
    spared = kept.runs | _newest_runs(runs) | _runs_of_unfinished_backfills(instance)
    obsolete = [run for run in outdated if run not in spared]
    if not isinstance(events, SqliteEventLogStorage):
        for run in obsolete:
            instance.delete_run(run)
        return CleanUp(len(obsolete), len(outdated) - len(obsolete))
    _free_slots(events, obsolete)
    _remove_runs(runs, obsolete)
    orphaned = _orphaned_runs(instance, events)
    removed = _remove_events(events, orphaned, kept, limit)
    _remove_checks(events, orphaned, kept, limit)
    _remove_runless_copies(events, kept, limit)
    sizes = list(_remove_files(instance, events))
    freed = sum(sizes) + _vacuum(Path(events.path_for_shard(INDEX_SHARD_NAME)))
    return CleanUp(len(obsolete), len(outdated) - len(obsolete), removed, len(sizes), freed)


def _free_slots(storage: SqliteEventLogStorage, runs: Collection[str]) -> None:
    """Free the slots that killed runs still hold in pools, while their ids are known."""
    if storage.supports_global_concurrency_limits:
        for run in storage.get_concurrency_run_ids().intersection(runs):
            storage.free_concurrency_slots_for_run(run)


def _remove_runs(storage: SqlRunStorage, runs: Collection[str]) -> None:
    for page in _pages(runs):
        with storage.connect() as connection:
            connection.execute(delete(RUN_TAGS).where(RUN_TAGS.c.run_id.in_(page)))
            connection.execute(delete(RUNS).where(RUNS.c.run_id.in_(page)))


def _orphaned_runs(instance: dg.DagsterInstance, storage: SqliteEventLogStorage) -> set[str]:
    """Return runs that the event log refers to but that do not exist, including the placeholder for no run."""
    with storage.index_connection() as connection:
        named = set(connection.scalars(select(_EVENTS.run_id).distinct()))
        named |= set(connection.scalars(select(_CHECKS.run_id).distinct()))
    return named - set(instance.get_run_ids())  # queried last, because a run exists before its first event


def _remove_events(storage: SqliteEventLogStorage, orphaned: set[str], kept: Newest, limit: datetime) -> int:
    removed = 0
    for run_ids in _pages(orphaned):
        with storage.index_connection() as connection:
            outdated = select(_EVENTS.id).where(_EVENTS.run_id.in_(run_ids), _EVENTS.timestamp < limit)
            found = set(connection.scalars(outdated)) - kept.events
        for page in _pages(found):
            with storage.index_connection() as connection:
                connection.execute(delete(EVENT_TAGS).where(_TAGS.event_id.in_(page)))
                connection.execute(delete(EVENTS).where(_EVENTS.id.in_(page)))
        removed += len(found)
    return removed


def _remove_checks(storage: SqliteEventLogStorage, orphaned: set[str], kept: Newest, limit: datetime) -> None:
    with storage.index_connection() as connection:  # one index covers both columns, but not the time
        found = {row.id for row in connection.execute(select(_CHECKS.id, _CHECKS.run_id)) if row.run_id in orphaned}
    is_old = _CHECKS.evaluation_event_timestamp < limit
    for page in _pages(found - kept.checks):
        with storage.index_connection() as connection:
            connection.execute(delete(CHECKS).where(_CHECKS.id.in_(page), is_old))


def _remove_runless_copies(storage: SqliteEventLogStorage, kept: Newest, limit: datetime) -> None:
    """Delete the second copies of events without a run, which are in a database like that of a run."""
    if not Path(storage.path_for_shard(RUNLESS_RUN_ID)).exists():
        return
    with storage.run_connection(RUNLESS_RUN_ID) as connection:
        outdated = connection.execute(select(_EVENTS.id, _EVENTS.timestamp).where(_EVENTS.timestamp < limit))
        found = [row.id for row in outdated if row.timestamp not in kept.runless]
    for page in _pages(found):
        with storage.run_connection(RUNLESS_RUN_ID) as connection:
            connection.execute(delete(EVENTS).where(_EVENTS.id.in_(page)))


def _remove_files(instance: dg.DagsterInstance, storage: SqliteEventLogStorage) -> Iterator[int]:
    """Delete the databases and log folders of runs that do not exist; yield the size of each."""
    databases = Path(storage.path_for_shard(INDEX_SHARD_NAME)).parent
    found = {path: match["run"] for path in databases.iterdir() if (match := _FILE_OF_RUN.fullmatch(path.name))}
    if isinstance(instance.compute_log_manager, LocalComputeLogManager):
        logs = Path(instance.compute_log_manager.get_captured_local_path(["any"], "out")).parent
        found |= {path: path.name for path in logs.glob("*/") if _RUN_ID.fullmatch(path.name)}
    existing = {*instance.get_run_ids(), INDEX_SHARD_NAME}  # queried last, because a run exists before its first file
    for path, run in found.items():
        if run not in existing:
            yield _remove(path)


def _remove(path: Path) -> int:
    if path.is_dir():
        size = folder_bytes(path)
        shutil.rmtree(path, ignore_errors=True)
        return size
    try:
        size = path.stat().st_size
        path.unlink()
    except FileNotFoundError:  # SQLite deletes some files itself
        return 0
    return size


def _vacuum(database: Path) -> int:
    """Return free pages to the file system if there are many, and return their size in bytes.

    If others use the database, or the disk has no space for a copy, the pages are kept for new rows.
    """
    size = database.stat().st_size
    with closing(sqlite3.connect(database, isolation_level=None, timeout=1)) as connection:
        pages_, free, page_size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        if free < _MIN_FREE_SHARE * pages_ or (pages_ - free) * page_size > _MAX_VACUUM_BYTES:
            return 0
        try:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.OperationalError:
            return 0
    return max(size - database.stat().st_size, 0)


def erase_samples(instance: dg.DagsterInstance) -> None:
    """Erase the sample rows of all tables from Dagster's records, leaving no copy. Other metadata stays.

    Raises:
        StoreError: The instance does not keep events in SQLite files, or another process uses them.
    """
    storage = instance.event_log_storage
    if not isinstance(storage, SqliteEventLogStorage):
        raise StoreError(f"cannot erase sample rows in {type(storage).__name__}: delete the events there")
    for database in sorted(Path(storage.path_for_shard(INDEX_SHARD_NAME)).parent.glob("*.db")):
        try:
            _erase(database)
        except sqlite3.OperationalError as error:
            raise StoreError(f"{database}: {error}: stop all users of Dagster's records and prune again") from error


def _erase(database: Path) -> None:
    with closing(sqlite3.connect(database, isolation_level=None, timeout=_PATIENCE_S)) as connection:
        connection.create_function("without_rows", 1, _without_rows, deterministic=True)
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table, column in _COLUMNS:
            if table in tables:
                connection.execute(f"UPDATE {table} SET {column} = without_rows({column})")  # noqa: S608 constants
        connection.execute("VACUUM")  # otherwise replaced and deleted data would remain in the file
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _without_rows(event: str | None) -> str | None:
    """Return an event in Dagster's format, with empty tables."""
    if event is None or _TABLE not in event:
        return event
    return json.dumps(json.loads(event, object_hook=_emptied))


def _emptied(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "records": []} if value.get("__class__") == _TABLE else value
