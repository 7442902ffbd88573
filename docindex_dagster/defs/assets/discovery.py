"""The files of a source: what is there, and what will be indexed."""

import time

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster import tables
from docindex_dagster.defs import metadata
from docindex_dagster.defs.failures import told
from docindex_dagster.defs.partitions import SOURCES
from docindex_dagster.defs.resources import SourceRun
from docindex_dagster.sources import clone
from docindex_dagster.sources.discover import discover

source = dg.AssetSpec(
    "source",
    description="The files themselves, outside of Dagster: a folder of documentation or a git work tree. Sensors "
    "observe them. See docs/operations.md, “How changes are noticed”.",
    group_name="discovery",
    kinds={"file", "git"},
    partitions_def=SOURCES,
)


@dg.asset(
    deps=[source],
    partitions_def=SOURCES,
    group_name="discovery",
    kinds={"python", "parquet"},
    code_version="1",
    io_manager_key="parquet",
)
@told
def discovered_files(context: dg.AssetExecutionContext, run: SourceRun) -> dg.MaterializeResult[pa.Table]:
    """The files of a source, one row each: what it is, or why it is skipped.

    See docs/configuration.md, “What is skipped”.
    """
    started = time.perf_counter()
    previous = None if run.is_verifying else run.previous("discovered_files")
    clone.update(run.source, run.layout, history=run.settings.history.commits, report=run.reporter(context.log))
    table = discover(run.source, previous, run.only)
    indexed = table.filter(pc.is_null(table["skipped_reason"]))
    skipped = table.filter(pc.is_valid(table["skipped_reason"]))
    rules = pc.list_element(pc.split_pattern(skipped["skipped_reason"], ":", max_splits=1), 0)
    context.log.info(f"{context.partition_key}: {indexed.num_rows} files to index, {skipped.num_rows} skipped")
    return dg.MaterializeResult(
        value=tables.stamp(table, tables.data_version(table)),
        data_version=dg.DataVersion(tables.data_version(table.drop_columns(["mtime_ns"]))),
        metadata=metadata.of_table(
            table,
            {
                "files": indexed.num_rows,
                "skipped": skipped.num_rows,
                **metadata.changes(table, previous, "path", "content_hash"),
                "lossy": pc.sum(indexed["is_lossy"], min_count=0).as_py() or 0,
                "source_bytes": pc.sum(indexed["size"], min_count=0).as_py() or 0,
                "seconds": metadata.seconds_since(started),
            },
            sample=table.select(["path", "size", "source_type", "language", "skipped_reason"]),
            languages=metadata.counts(indexed["language"], "language", "files"),
            skip_reasons=metadata.counts(rules, "rule", "files"),
        ),
    )
