"""Deleting old runs and events with their files: Dagster's open-source version keeps all of them for ever.

On SQLite, Dagster's own `delete_run` leaves the database file of a run, its checks and its logs. Here the runs go
first, and then whatever belongs to no run: so what an interrupted clean-up, or a run deleted in the UI, left goes as
well. Transactions are small, for others wait while one lasts. Other databases are cleaned by `delete_run` alone.

The newest records stay, however old they are: Dagster needs an event to count a partition as materialised, and each
page of its UI shows the newest record of a kind. They are the newest event of each kind for each asset and partition,
with the events of its inputs, the newest outcome of each check, and the newest run of each job and partition. A run
that one of them belongs to stays whole.

The rows that runs have shown, which Dagster keeps with each event, can be erased: what they are of may be gone.
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
_UNDONE = [status for status in BulkActionStatus if status not in BULK_ACTION_TERMINAL_STATUSES]
_EVENTS, _TAGS, _CHECKS, _RUNS = EVENTS.c, EVENT_TAGS.c, CHECKS.c, RUNS.c

# Ids grow with time. The row with the highest id is the newest of its kind, so it stays, and SQLite gives no id twice:
# a sensor would take an event with the id of an earlier one for seen.
_NEWEST_EVENTS = select(func.max(_EVENTS.id)).group_by(_EVENTS.asset_key, _EVENTS.dagster_event_type, _EVENTS.partition)
# A check that was planned and never evaluated is the newest, and does not say how the check went last.
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
_FEWEST_FREE = 0.25  # of the pages of a database, for it to be written anew
_MOST_WRITTEN = 256 << 20  # bytes: writers wait meanwhile, and give up after half a minute
_TABLE = "TableMetadataEntryData"  # as Dagster writes one, with its rows as `records`
_COLUMNS = (
    ("event_logs", "event"),
    ("asset_keys", "last_materialization"),
    ("asset_check_executions", "evaluation_event"),
)
_PATIENCE_S = 10.0  # for who uses a database now


@dataclass(frozen=True, slots=True)
class Newest:
    """Ids of rows in the index of the event log that stay, and the runs that they belong to.

    The time of those that belong to no run finds them in a second table, which gives them other ids.
    """

    events: frozenset[int]
    checks: frozenset[int]
    runs: frozenset[str]
    runless: frozenset[datetime]


def newest(storage: SqlEventLogStorage) -> Newest:
    """What stays of the event log."""
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
    """The events that materialisations were made from; without them the UI calls stale what is up to date."""
    found: set[int] = set()
    is_materialization = _EVENTS.dagster_event_type == dg.DagsterEventType.ASSET_MATERIALIZATION.value
    for page in _pages(events):
        for event in connection.scalars(select(_EVENTS.event).where(_EVENTS.id.in_(page), is_materialization)):
            provenance = extract_data_provenance_from_entry(dg.deserialize_value(event, dg.EventLogEntry))
            found.update(id_ for id_ in (provenance.input_storage_ids.values() if provenance else ()) if id_)
    return found


def _newest_runs(storage: SqlRunStorage) -> frozenset[str]:
    """The newest finished run of each job and partition, which says whether the last one failed."""
    with storage.connect() as connection:
        return frozenset(connection.scalars(select(_RUNS.run_id).where(_RUNS.id.in_(_NEWEST_RUNS))))


def _runs_of_undone_backfills(instance: dg.DagsterInstance) -> frozenset[str]:
    """The runs by which Dagster knows the progress of a backfill."""
    undone = [backfill.backfill_id for backfill in instance.get_backfills(BulkActionsFilter(statuses=_UNDONE))]
    return frozenset(instance.get_run_ids(dg.RunsFilter(tags={BACKFILL_ID_TAG: undone})) if undone else ())


def _pages(items: Collection[_T]) -> Iterator[list[_T]]:
    """A few hundred at a time: what one statement names, and one transaction writes."""
    remaining = iter(items)
    while page := list(islice(remaining, _PAGE)):
        yield page


@dataclass(frozen=True, slots=True)
class CleanUp:
    """What was deleted, and how many old runs were spared. Events and files are counted on SQLite alone."""

    runs: int
    spared: int
    events: int = 0
    files: int = 0
    freed_bytes: int = 0


def clean_up(instance: dg.DagsterInstance, older_than: datetime) -> CleanUp:
    """Delete the finished runs, and the events without a run, that are older than a time, but not the newest.

    Raises:
        StoreError: the instance keeps its runs or events in no SQL database, so which are the newest cannot be asked.
    """
    events, runs = instance.event_log_storage, instance.run_storage
    if not isinstance(events, SqlEventLogStorage) or not isinstance(runs, SqlRunStorage):
        raise StoreError(
            f"{type(runs).__name__} and {type(events).__name__} cannot be cleaned up: runs and events must be in SQL "
            "databases; choose others in dagster.yaml, or stop the schedule that runs clean_up_dagster"
        )
    limit = older_than.astimezone(UTC).replace(tzinfo=None)  # as Dagster's tables hold it
    old = instance.get_run_ids(dg.RunsFilter(statuses=FINISHED, updated_before=limit))
    kept = newest(events)
    spared = kept.runs | _newest_runs(runs) | _runs_of_undone_backfills(instance)
    gone = [run for run in old if run not in spared]
    if not isinstance(events, SqliteEventLogStorage):
        for run in gone:
            instance.delete_run(run)
        return CleanUp(len(gone), len(old) - len(gone))
    _free_slots(events, gone)
    _remove_runs(runs, gone)
    lost = _lost_runs(instance, events)
    removed = _remove_events(events, lost, kept, limit)
    _remove_checks(events, lost, kept, limit)
    _remove_runless_copies(events, kept, limit)
    sizes = list(_remove_files(instance, events))
    freed = sum(sizes) + _vacuum(Path(events.path_for_shard(INDEX_SHARD_NAME)))
    return CleanUp(len(gone), len(old) - len(gone), removed, len(sizes), freed)


def _free_slots(storage: SqliteEventLogStorage, runs: Collection[str]) -> None:
    """Free what killed runs still hold in pools, which their ids alone can find."""
    if storage.supports_global_concurrency_limits:
        for run in storage.get_concurrency_run_ids().intersection(runs):
            storage.free_concurrency_slots_for_run(run)


def _remove_runs(storage: SqlRunStorage, runs: Collection[str]) -> None:
    for page in _pages(runs):
        with storage.connect() as connection:
            connection.execute(delete(RUN_TAGS).where(RUN_TAGS.c.run_id.in_(page)))
            connection.execute(delete(RUNS).where(RUNS.c.run_id.in_(page)))


def _lost_runs(instance: dg.DagsterInstance, storage: SqliteEventLogStorage) -> set[str]:
    """Runs that the event log names and that are not there; "no run" is one of them."""
    with storage.index_connection() as connection:
        named = set(connection.scalars(select(_EVENTS.run_id).distinct()))
        named |= set(connection.scalars(select(_CHECKS.run_id).distinct()))
    return named - set(instance.get_run_ids())  # asked for last: a run is there before its first event


def _remove_events(storage: SqliteEventLogStorage, lost: set[str], kept: Newest, limit: datetime) -> int:
    removed = 0
    for some in _pages(lost):
        with storage.index_connection() as connection:
            old = select(_EVENTS.id).where(_EVENTS.run_id.in_(some), _EVENTS.timestamp < limit)
            found = set(connection.scalars(old)) - kept.events
        for page in _pages(found):
            with storage.index_connection() as connection:
                connection.execute(delete(EVENT_TAGS).where(_TAGS.event_id.in_(page)))
                connection.execute(delete(EVENTS).where(_EVENTS.id.in_(page)))
        removed += len(found)
    return removed


def _remove_checks(storage: SqliteEventLogStorage, lost: set[str], kept: Newest, limit: datetime) -> None:
    with storage.index_connection() as connection:  # an index holds both columns, but not the time
        found = {row.id for row in connection.execute(select(_CHECKS.id, _CHECKS.run_id)) if row.run_id in lost}
    is_old = _CHECKS.evaluation_event_timestamp < limit
    for page in _pages(found - kept.checks):
        with storage.index_connection() as connection:
            connection.execute(delete(CHECKS).where(_CHECKS.id.in_(page), is_old))


def _remove_runless_copies(storage: SqliteEventLogStorage, kept: Newest, limit: datetime) -> None:
    """Delete events without a run where they stand a second time: in a database like that of a run."""
    if not Path(storage.path_for_shard(RUNLESS_RUN_ID)).exists():
        return
    with storage.run_connection(RUNLESS_RUN_ID) as connection:
        old = connection.execute(select(_EVENTS.id, _EVENTS.timestamp).where(_EVENTS.timestamp < limit))
        found = [row.id for row in old if row.timestamp not in kept.runless]
    for page in _pages(found):
        with storage.run_connection(RUNLESS_RUN_ID) as connection:
            connection.execute(delete(EVENTS).where(_EVENTS.id.in_(page)))


def _remove_files(instance: dg.DagsterInstance, storage: SqliteEventLogStorage) -> Iterator[int]:
    """Remove the databases and the log folders of runs that are not there; yields the size of each."""
    databases = Path(storage.path_for_shard(INDEX_SHARD_NAME)).parent
    found = {path: match["run"] for path in databases.iterdir() if (match := _FILE_OF_RUN.fullmatch(path.name))}
    if isinstance(instance.compute_log_manager, LocalComputeLogManager):
        logs = Path(instance.compute_log_manager.get_captured_local_path(["any"], "out")).parent
        found |= {path: path.name for path in logs.glob("*/") if _RUN_ID.fullmatch(path.name)}
    there = {*instance.get_run_ids(), INDEX_SHARD_NAME}  # asked for last: a run is there before its first file
    for path, run in found.items():
        if run not in there:
            yield _remove(path)


def _remove(path: Path) -> int:
    if path.is_dir():
        size = folder_bytes(path)
        shutil.rmtree(path, ignore_errors=True)
        return size
    try:
        size = path.stat().st_size
        path.unlink()
    except FileNotFoundError:  # SQLite removes some itself
        return 0
    return size


def _vacuum(database: Path) -> int:
    """Give the pages that rows left back to the disk if they are many; returns how many bytes they were.

    Where others keep using the database, or there is no space for a copy, the pages stay and new rows fill them.
    """
    size = database.stat().st_size
    with closing(sqlite3.connect(database, isolation_level=None, timeout=1)) as connection:
        pages_, free, page_size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        if free < _FEWEST_FREE * pages_ or (pages_ - free) * page_size > _MOST_WRITTEN:
            return 0
        try:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.OperationalError:
            return 0
    return max(size - database.stat().st_size, 0)


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
