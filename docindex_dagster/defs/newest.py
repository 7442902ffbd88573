"""What Dagster would miss, however old it is: rows of its event log, and runs, that a clean-up has to spare.

A partition is materialised because an event is there that says so, and each page of the UI shows the newest of its
kind. So what stays is the newest event of each kind of each asset and partition, with the inputs that it was made from,
the newest outcome of each check, and the newest run of each job and partition; each run as a whole.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TypeVar

import dagster as dg
from sqlalchemy import Connection, func, select

from docindex_dagster.defs.internals import (
    BACKFILL_ID_TAG,
    BULK_ACTION_TERMINAL_STATUSES,
    CHECKS,
    EVENTS,
    RUNLESS_RUN_ID,
    RUNS,
    BulkActionsFilter,
    BulkActionStatus,
    SqlEventLogStorage,
    SqlRunStorage,
    extract_data_provenance_from_entry,
)

FINISHED = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)

_T = TypeVar("_T")
_PAGE = 500
_UNDONE = [status for status in BulkActionStatus if status not in BULK_ACTION_TERMINAL_STATUSES]
_EVENTS, _CHECKS, _RUNS = EVENTS.c, CHECKS.c, RUNS.c

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
        events = [row for page in pages(ids) for row in connection.execute(event.where(_EVENTS.id.in_(page)))]
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
    for page in pages(events):
        for event in connection.scalars(select(_EVENTS.event).where(_EVENTS.id.in_(page), is_materialization)):
            provenance = extract_data_provenance_from_entry(dg.deserialize_value(event, dg.EventLogEntry))
            found.update(id_ for id_ in (provenance.input_storage_ids.values() if provenance else ()) if id_)
    return found


def newest_runs(storage: SqlRunStorage) -> frozenset[str]:
    """The newest finished run of each job and partition, which says whether the last one failed."""
    with storage.connect() as connection:
        return frozenset(connection.scalars(select(_RUNS.run_id).where(_RUNS.id.in_(_NEWEST_RUNS))))


def runs_of_undone_backfills(instance: dg.DagsterInstance) -> frozenset[str]:
    """The runs by which Dagster knows the progress of a backfill."""
    undone = [backfill.backfill_id for backfill in instance.get_backfills(BulkActionsFilter(statuses=_UNDONE))]
    return frozenset(instance.get_run_ids(dg.RunsFilter(tags={BACKFILL_ID_TAG: undone})) if undone else ())


def pages(items: Collection[_T]) -> Iterator[list[_T]]:
    """A few hundred at a time: what one statement names, and one transaction writes."""
    remaining = iter(items)
    while page := list(islice(remaining, _PAGE)):
        yield page
