"""All internal names of Dagster that docindex uses, with the reason; no other module may import Dagster internals.

The public API of Dagster is the package `dagster`. The names below may change in any release, so
`tests/defs/test_internals.py` states what docindex expects of each, and runs on the oldest and newest Dagster that
`pyproject.toml` allows. A name leaves this module once a public one can replace it. This module has no behavior.

| Names | Why a public name is not enough |
|---|---|
| `EVENTS`, `EVENT_TAGS`, `CHECKS`, `RUNS`, `RUN_TAGS` | Retention deletes by age and keeps the newest of each kind. The public `delete_run` deletes one run, leaves its files and the rows of its checks, and loses what the UI shows. |
| `SqlEventLogStorage`, `SqlRunStorage` | Types that tell whether an instance has these tables, and that connect to them. |
| `SqliteEventLogStorage`, `INDEX_SHARD_NAME` | Location of the databases of runs, to delete them. Listed in Dagster's reference, under "Internals". |
| `LocalComputeLogManager` | Location of the logs of runs, to delete them. Listed under "Internals". |
| `RUNLESS_RUN_ID`, `BACKFILL_ID_TAG` | The run id of events without a run, and the tag of a backfill's runs: values in tables without public names. |
| `BulkActionsFilter`, `BulkActionStatus`, `BULK_ACTION_TERMINAL_STATUSES` | Arguments of `DagsterInstance.get_backfills`. The GraphQL alternative would need a server. |
| `extract_data_provenance_from_entry` | The events that a materialization was made from; the public `DataProvenance` cannot be read from an event. |
"""  # noqa: E501 a table's row is a line

from dagster._core.definitions.data_version import extract_data_provenance_from_entry
from dagster._core.execution.backfill import BULK_ACTION_TERMINAL_STATUSES, BulkActionsFilter, BulkActionStatus
from dagster._core.instance import RUNLESS_RUN_ID
from dagster._core.storage.event_log import schema as event_log_tables
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME, SqliteEventLogStorage
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster._core.storage.runs import schema as run_tables
from dagster._core.storage.runs.sql_run_storage import SqlRunStorage
from dagster._core.storage.tags import BACKFILL_ID_TAG

__all__ = [
    "BACKFILL_ID_TAG",
    "BULK_ACTION_TERMINAL_STATUSES",
    "CHECKS",
    "EVENTS",
    "EVENT_TAGS",
    "INDEX_SHARD_NAME",
    "RUNLESS_RUN_ID",
    "RUNS",
    "RUN_TAGS",
    "BulkActionStatus",
    "BulkActionsFilter",
    "LocalComputeLogManager",
    "SqlEventLogStorage",
    "SqlRunStorage",
    "SqliteEventLogStorage",
    "extract_data_provenance_from_entry",
]

EVENTS = event_log_tables.SqlEventLogStorageTable
EVENT_TAGS = event_log_tables.AssetEventTagsTable
CHECKS = event_log_tables.AssetCheckExecutionsTable
RUNS = run_tables.RunsTable
RUN_TAGS = run_tables.RunTagsTable
