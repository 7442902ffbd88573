"""Every name that docindex takes from inside Dagster, with the reason; no other module may import Dagster's own ones.

What Dagster publishes stands in `dagster` itself. The names below may change in any release, so
`tests/defs/test_internals.py` says of each what docindex expects, and runs on the oldest and on the newest Dagster that
`pyproject.toml` allows. A name leaves this module as soon as a public one can do its work. No behaviour belongs here.

| Names | Why no public one will do |
|---|---|
| `EVENTS`, `EVENT_TAGS`, `CHECKS`, `RUNS`, `RUN_TAGS` | Retention deletes by age and spares the newest of each kind. The public `delete_run` takes one run, leaves its files and the rows of its checks, and loses what the UI shows. |
| `SqlEventLogStorage`, `SqlRunStorage` | The types that say that an instance keeps these tables, and give connections to them. |
| `SqliteEventLogStorage`, `INDEX_SHARD_NAME` | Where the databases of runs lie, to delete them. Named in Dagster's reference, under "Internals". |
| `LocalComputeLogManager` | Says where logs of runs lie, to delete them. Named under "Internals". |
| `RUNLESS_RUN_ID`, `BACKFILL_ID_TAG` | The run of events without a run, and the tag of a backfill's runs: values in tables, never published as names. |
| `BulkActionsFilter`, `BulkActionStatus`, `BULK_ACTION_TERMINAL_STATUSES` | The argument of `DagsterInstance.get_backfills`. By GraphQL it would need a server. |
| `extract_data_provenance_from_entry` | The events that a materialisation was made from; the public `DataProvenance` has no way to read one. |
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
