"""The catalogue: what is searchable now."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg

from docindex_dagster import catalog
from docindex_dagster.defs import metadata
from docindex_dagster.defs.partitions import SOURCES_NAME
from docindex_dagster.defs.resources import Project
from docindex_dagster.locks import exclusive

_NONE_FAILED = "no_source_is_left_failed"
_CHECKED = "every_source_was_checked_within_a_day"
_COLUMNS = ["source", "files", "chunks", "megabytes", "nodes", "edges", "languages", "changed_at"]


@dg.asset(
    deps=["lancedb_table", "tantivy_index", "knowledge_graph"],
    group_name="serving",
    kinds={"json"},
    code_version="1",
    check_specs=[
        dg.AssetCheckSpec(
            _NONE_FAILED, asset="index_catalog", description="Warns while the newest run of a source is a failed one."
        ),
        dg.AssetCheckSpec(
            _CHECKED,
            asset="index_catalog",
            description="Warns when the files of a source have not been looked at for a day.",
        ),
    ],
)
def index_catalog(context: dg.AssetExecutionContext, project: Project) -> Iterator[dg.MaterializeResult[None]]:
    """What is searchable now: files, chunks, size and languages of each source, and when its content last changed."""
    layout = project.layout
    with exclusive(layout.publication_lock, owner="index_catalog", on_wait=context.log.info):
        entries = catalog.rebuild(layout)
    rows = [catalog.as_row(entry) for entry in entries]
    yield dg.MaterializeResult(
        data_version=dg.DataVersion(catalog.version(entries)),
        metadata={
            "sources": len(entries),
            "files": sum(entry.files for entry in entries),
            "chunks": sum(entry.chunks for entry in entries),
            "text_bytes": sum(entry.text_bytes for entry in entries),
            "catalog": metadata.records(rows, _COLUMNS),
            "overview": dg.MetadataValue.md(catalog.as_markdown(entries)),
        },
        check_results=list(_checks(context)),
    )


def _checks(context: dg.AssetExecutionContext) -> Iterator[dg.AssetCheckResult]:
    keys = context.instance.get_dynamic_partitions(SOURCES_NAME)
    failed = sorted(key for key in keys if _newest_run_failed(context, key))
    yield _warning(_NONE_FAILED, failed)
    oldest = datetime.now(UTC) - timedelta(days=1)
    yield _warning(_CHECKED, sorted(key for key in keys if _last_checked(context, key) < oldest))


def _newest_run_failed(context: dg.AssetExecutionContext, key: str) -> bool:
    filters = dg.RunsFilter(tags={"dagster/partition": key})
    newest = context.instance.get_runs(filters, limit=1)
    return bool(newest) and newest[0].status is dg.DagsterRunStatus.FAILURE


def _last_checked(context: dg.AssetExecutionContext, key: str) -> datetime:
    event = context.instance.fetch_materializations(
        dg.AssetRecordsFilter(dg.AssetKey("discovered_files"), asset_partitions=[key]), limit=1
    ).records
    return datetime.fromtimestamp(event[0].timestamp, UTC) if event else datetime.min.replace(tzinfo=UTC)


def _warning(check: str, sources: list[str]) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=not sources,
        severity=dg.AssetCheckSeverity.WARN,
        check_name=check,
        metadata={"sources": ", ".join(sources)} if sources else {},
    )
