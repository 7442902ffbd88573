"""The two jobs: index a source, and remove one."""

import dagster as dg

from docindex_dagster import catalog
from docindex_dagster.defs.assets.serving import catalog_metadata
from docindex_dagster.defs.partitions import SOURCES_NAME
from docindex_dagster.defs.resources import PARTITION_TAG, Project
from docindex_dagster.embedding.reuse import LostVectors
from docindex_dagster.locks import exclusive
from docindex_dagster.sources import clone
from docindex_dagster.stores.publish import withdraw

_ASSETS_WITH_TABLES = ("discovered_files", "commits", "chunks", "embeddings")
_FINISHED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]

index_source = dg.define_asset_job(
    "index_source",
    selection=dg.AssetSelection.all(),
    description="Discover, chunk, embed and publish one source, then rebuild the catalogue.",
)


class RemoveSource(dg.Config):
    """Which source to remove, such as `library/django`."""

    source: str


@dg.op(description="Publish a generation without the source, then delete its tables, its runs and its partition.")
def withdraw_source(context: dg.OpExecutionContext, config: RemoveSource, project: Project) -> None:
    """Take a source out of the index. Its files, and its table in `docindex.toml`, are not touched."""
    layout, key = project.layout, config.source
    owner = f"removal of {key}"
    with exclusive(layout.source_lock(key), owner, on_wait=context.log.info):
        with exclusive(layout.publication_lock, owner, on_wait=context.log.info):
            withdraw(layout, key)
            for asset in _ASSETS_WITH_TABLES:
                layout.table(asset, key).unlink(missing_ok=True)
            entries = catalog.rebuild(layout)
        LostVectors(layout, key).forget()
        clone.remove(layout, key, report=context.log.info)
        context.log_event(dg.AssetMaterialization("index_catalog", metadata=catalog_metadata(entries)))
        for run in context.instance.get_runs(dg.RunsFilter(tags={PARTITION_TAG: key}, statuses=_FINISHED)):
            context.instance.delete_run(run.run_id)
        context.instance.delete_dynamic_partition(SOURCES_NAME, key)


@dg.job(description="Remove a source from the index and from Dagster.")
def remove_source() -> None:
    """One step, so that it is done or not done."""
    withdraw_source()
