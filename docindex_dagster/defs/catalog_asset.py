"""The catalog: what is searchable, the state of each source, and two checks that warn when you should act."""

import time
from collections.abc import Iterator
from typing import Any

import dagster as dg

from docindex_dagster.core.files import folder_bytes
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings
from docindex_dagster.defs import metadata, outcomes
from docindex_dagster.defs.outcomes import as_dagster_failure
from docindex_dagster.defs.resources import Project
from docindex_dagster.defs.tags import DATA_VERSION_TAG, LAUNCHER_TAG, SOURCES_NAME
from docindex_dagster.sources import registry
from docindex_dagster.status import catalog, overview, source_status
from docindex_dagster.status.catalog import CatalogEntry
from docindex_dagster.status.source_status import SourceState, State
from docindex_dagster.stores import link_files

CATALOG = dg.AssetKey("index_catalog")
_NONE_FAILED = "no_source_is_left_failed"
_CHECKED = "every_source_was_checked_lately"
_MOST_URGENT = 200
_FIGURES = ("files", "chunks", "text_bytes", "nodes", "edges", "commits")
_WHAT_TO_DO = {
    _NONE_FAILED: "Do what the reasons say, then run `docindex index SOURCE`, or materialize its partition here. What "
    "was searchable of these sources still is.",
    _CHECKED: "Check that the daemon runs, and that the schedule nightly_reindex and the sensors are on. `docindex "
    "index` checks all sources now.",
}


@dg.asset(
    deps=["lancedb_table", "tantivy_index", "knowledge_graph"],
    group_name="serving",
    kinds={"json"},
    code_version="1",
    check_specs=[
        metadata.check_spec(
            _NONE_FAILED,
            CATALOG,
            "Warns while the newest run of a source has failed, and says why. It is evaluated in each run, and after "
            "each failure.",
        ),
        metadata.check_spec(
            _CHECKED,
            CATALOG,
            "Warns when no run has checked all files of a source for schedule.max_age_hours. It is evaluated in each "
            "run, and after each failure.",
        ),
    ],
)
@as_dagster_failure
def index_catalog(context: dg.AssetExecutionContext, project: Project) -> Iterator[dg.MaterializeResult[None]]:
    """The page to check first: what is searchable of each source, when it was last checked, and why runs failed.

    The metadata `attention`, `overview` and `contents` form that page; `attention` lists the sources that need it, and
    why. Failed runs appear immediately, because the sensor `alert_on_failure` updates the page. See
    docs/how-to/run-for-a-team.md.
    """
    started = time.perf_counter()
    layout = project.layout
    entries = catalog.rebuild(layout, owner="index_catalog")
    if LAUNCHER_TAG not in context.run.tags:  # recorded runs have already done this
        link_files.bring_up_to_date(layout)
    settings = project.read_settings()
    statuses = _statuses(context.instance, settings, entries, ending=context.run)
    yield dg.MaterializeResult(
        data_version=dg.DataVersion(catalog.version(entries)),
        metadata={**_metadata(settings, entries, statuses), "seconds": metadata.seconds_since(started)},
        check_results=list(_checks(statuses)),
    )


def report(instance: dg.DagsterInstance, settings: Settings) -> None:
    """Show the current catalog and checks without a run, after a failure or a removal.

    Nothing else changes: the data version and its provenance remain those of the last run.

    Raises:
        StoreError: The published generation cannot be read.
    """
    entries = catalog.entries(Layout(settings.home))
    statuses = _statuses(instance, settings, entries)
    last = instance.get_latest_materialization_event(CATALOG)
    tags = dict((last.asset_materialization.tags if last and last.asset_materialization else None) or {})
    instance.report_runless_asset_event(
        dg.AssetMaterialization(
            CATALOG,
            metadata=_metadata(settings, entries, statuses),
            tags={**tags, DATA_VERSION_TAG: catalog.version(entries)},
        )
    )
    for check in _checks(statuses):
        instance.report_runless_asset_event(metadata.evaluation(check, CATALOG))


def _statuses(
    instance: dg.DagsterInstance, settings: Settings, entries: list[CatalogEntry], ending: dg.DagsterRun | None = None
) -> list[SourceState]:
    """Return the states of all sources; the run that is `ending` counts as successful."""
    partitions = instance.get_dynamic_partitions(SOURCES_NAME)
    declared = registry.sources(settings)
    keys = {*declared, *partitions, *(entry.source for entry in entries)}
    return source_status.states_of_all(
        settings, entries, outcomes.runs_of_sources(instance, keys, ending), declared=declared
    )


def _metadata(settings: Settings, entries: list[CatalogEntry], statuses: list[SourceState]) -> dict[str, Any]:
    """Return the page, and numbers to plot."""
    now = time.time()
    change = source_status.change_of_model(settings)
    states = [one.state for one in statuses]
    return {
        "attention": _attention(statuses),
        **({"change_of_model": overview.sentence(change)} if change else {}),
        "overview": dg.MetadataValue.md(overview.as_markdown(statuses, now, change)),
        "contents": dg.MetadataValue.md(overview.contents(statuses, now)),
        "sources": len(entries),
        **{name: sum(getattr(entry, name) for entry in entries) for name in _FIGURES},
        "needing_attention": sum(one.needs_attention for one in statuses),
        "failed": states.count(State.FAILED),
        "missing": states.count(State.MISSING),
        "oldest_check_hours": round(source_status.oldest_check_hours(statuses, now), 2),
        "index_bytes": folder_bytes(Layout(settings.home).stores),
    }


def _attention(statuses: list[SourceState]) -> str | dg.TableMetadataValue:
    """Return which sources need attention and why, as a table, because the UI folds and hides long texts."""
    urgent = [(one.source, one.state, one.problem or "") for one in statuses if one.needs_attention]
    if not urgent:
        return overview.attention(statuses)
    left_out = len(urgent) - _MOST_URGENT
    more = [("…", "", f"{left_out:,} more: `docindex status` lists all")] if left_out > 0 else []
    rows = [*urgent[:_MOST_URGENT], *more]
    return metadata.texts(("source", "state", "reason"), rows, most=len(rows))


def _checks(statuses: list[SourceState]) -> Iterator[dg.AssetCheckResult]:
    failed = {one.source: one.runs.failure or "" for one in statuses if one.runs.failed_id is not None}
    yield metadata.warning(_NONE_FAILED, failed, _WHAT_TO_DO[_NONE_FAILED])
    checked = {one.source: overview.last_check(one.runs) for one in statuses if one.is_overdue}
    overdue = {key: f"last checked {at} (UTC)" if at else "never" for key, at in checked.items()}
    yield metadata.warning(_CHECKED, overdue, _WHAT_TO_DO[_CHECKED])
