"""The catalogue: what is searchable now."""

import time
from collections.abc import Iterator
from typing import Any

import dagster as dg

from docindex_dagster import catalog
from docindex_dagster.defs import metadata
from docindex_dagster.defs.partitions import SOURCES_NAME
from docindex_dagster.defs.resources import PARTITION_TAG, Project
from docindex_dagster.layout import Layout
from docindex_dagster.locks import exclusive

_NONE_FAILED = "no_source_is_left_failed"
_CHECKED = "every_source_was_checked_within_a_day"
_DAY_S = 24 * 60 * 60
_FAILURES_LOOKED_AT = 200


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
    started = time.perf_counter()
    layout = project.layout
    with exclusive(layout.publication_lock, owner="index_catalog", on_wait=context.log.info):
        entries = catalog.rebuild(layout)
    yield dg.MaterializeResult(
        data_version=dg.DataVersion(catalog.version(entries)),
        metadata={
            **catalog_metadata(entries),
            "bytes": layout.catalog.stat().st_size,
            "seconds": time.perf_counter() - started,
        },
        check_results=list(_checks(context, layout)),
    )


def catalog_metadata(entries: list[catalog.CatalogEntry]) -> dict[str, Any]:
    """The catalogue as numbers that plot, as a table, and as Markdown."""
    return {
        "sources": len(entries),
        "files": sum(entry.files for entry in entries),
        "chunks": sum(entry.chunks for entry in entries),
        "text_bytes": sum(entry.text_bytes for entry in entries),
        "catalog": metadata.records([catalog.as_row(entry) for entry in entries], list(catalog.COLUMNS)),
        "overview": dg.MetadataValue.md(catalog.as_markdown(entries)),
    }


def _checks(context: dg.AssetExecutionContext, layout: Layout) -> Iterator[dg.AssetCheckResult]:
    yield _warning(_NONE_FAILED, _left_failed(context.instance))
    oldest = time.time() - _DAY_S
    keys = context.instance.get_dynamic_partitions(SOURCES_NAME)
    yield _warning(_CHECKED, sorted(key for key in keys if _last_run_began(layout, key) < oldest))


def _left_failed(instance: dg.DagsterInstance) -> list[str]:
    """Sources whose newest finished run failed."""
    failures = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]), limit=_FAILURES_LOOKED_AT)
    suspects = {run.tags[PARTITION_TAG] for run in failures if PARTITION_TAG in run.tags}
    finished = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.STARTED]
    newest = {
        key: instance.get_runs(dg.RunsFilter(tags={PARTITION_TAG: key}, statuses=finished), limit=1)[0]
        for key in suspects
    }
    return sorted(key for key, run in newest.items() if run.status is dg.DagsterRunStatus.FAILURE)


def _last_run_began(layout: Layout, key: str) -> float:
    """Seconds since 1970; each run writes its name into the lock of its source."""
    try:
        return layout.source_lock(key).stat().st_mtime
    except FileNotFoundError:
        return 0


def _warning(check: str, sources: list[str]) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=not sources,
        severity=dg.AssetCheckSeverity.WARN,
        check_name=check,
        metadata={"sources": ", ".join(sources)} if sources else {},
    )
