"""The history of a source: its newest commits, and the figures of its repository."""

import time

import dagster as dg
import pyarrow as pa

from docindex_dagster import tables
from docindex_dagster.defs import metadata
from docindex_dagster.defs.failures import told
from docindex_dagster.defs.partitions import SOURCES
from docindex_dagster.defs.resources import SourceRun
from docindex_dagster.sources.commits import HISTORY_VERSION, read_history
from docindex_dagster.sources.memory import HEAD
from docindex_dagster.sources.repository import RepositoryFigures

_SAMPLE = ("commit", "authored_at", "author", "file_count", "insertions", "deletions")


@dg.asset(
    deps=["discovered_files"],
    partitions_def=SOURCES,
    group_name="discovery",
    kinds={"git", "parquet"},
    code_version=HISTORY_VERSION,
    io_manager_key="parquet",
)
@told
def commits(context: dg.AssetExecutionContext, run: SourceRun) -> dg.MaterializeResult[pa.Table]:
    """The newest commits of a git source, one row each: author, date, message, files and how they changed.

    See docs/architecture.md, “History”.
    """
    started = time.perf_counter()
    source, previous = run.source, run.previous("commits")
    # Of the commit that discovery saw, so that files and history are of one state.
    head = tables.metadata_value(run.layout.table("discovered_files", source.key), HEAD)
    history = read_history(source, head, previous, run.settings.history.commits)
    table, figures = history.commits, history.figures
    context.log.info(f"{context.partition_key}: {table.num_rows} commits")
    return dg.MaterializeResult(
        value=table,
        data_version=dg.DataVersion(tables.stamped_version(table.schema.metadata) or ""),
        metadata=metadata.of_table(
            table,
            {
                **metadata.changes(table, previous, "commit", "row_hash"),
                **_of_repository(figures),
                "seconds": metadata.seconds_since(started),
            },
            sample=table.select(list(_SAMPLE)),
        ),
    )


def _of_repository(figures: RepositoryFigures | None) -> dict[str, int]:
    if figures is None:
        return {}
    return {"all_commits": figures.commits, "branches": figures.branches, "tags": figures.tags}
