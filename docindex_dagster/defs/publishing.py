"""Publishing to shared stores: the asset `prepared_tables`, which ends each run, and the job `publish_prepared`.

A worker has a local disk only during its run. It downloads the tables of its source, executes all stages but the last,
and uploads the results for publishers. A run of the job then publishes the pending tables of all sources. Because runs
of a source do not make the stores, the stores are external assets, and each publication reports an event for them. See
docs/explanation/several-machines.md.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import dagster as dg
from pydantic import Field, PrivateAttr

from docindex_dagster.core.errors import VerificationError
from docindex_dagster.core.events import Waiting
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import Held
from docindex_dagster.defs import catalog_asset, dead_runs, metadata, shared
from docindex_dagster.defs.catalog_asset import CATALOG, index_catalog
from docindex_dagster.defs.outcomes import as_dagster_failure, last_runs
from docindex_dagster.defs.resources import EmbeddingModel, Project, RunResource, report_event
from docindex_dagster.defs.stage_assets import check_results, check_specs, event_metadata, spec
from docindex_dagster.defs.tags import (
    DATA_VERSION_TAG,
    FULL_TAG,
    PREPARED_VERSION_TAG,
    REASON_TAG,
    REFUSED_TAG,
    SOURCES,
)
from docindex_dagster.objects import prepared, shared_stores
from docindex_dagster.objects.bucket import Bucket
from docindex_dagster.objects.prepared import Prepared
from docindex_dagster.objects.shared_stores import SharedStores
from docindex_dagster.pipeline.publication import STORES
from docindex_dagster.pipeline.stages import stages
from docindex_dagster.pipeline.up_to_date import state_of_tables
from docindex_dagster.runner.entries import StageEntry
from docindex_dagster.runner.prepared import Published, publish_prepared
from docindex_dagster.sources import registry
from docindex_dagster.status import catalog

PUBLISH_PREPARED = "publish_prepared"
PUBLISHER_TAG = "docindex/publisher"
# The name of both the Celery queue and the Ray node resource.
_PUBLISHER = "docindex-publisher"
# Run launchers use these tags to find the machine with the stores.
PUBLISHER_TAGS = {
    PUBLISHER_TAG: "true",
    "dagster-celery/queue": _PUBLISHER,
    "dagster-ray/config": json.dumps({"resources": {_PUBLISHER: 1}}),
}

_INTERVAL_S = 10
_LONGEST_DELAY_S = 5 * 60  # after repeated failures; all sources wait meanwhile, and most failures are transient
_PREPARED = dg.AssetKey("prepared_tables")


class SharedRun(RunResource):
    """Run over one source on any machine. It also holds the lock between machines, and downloads the tables."""

    _bucket: Bucket = PrivateAttr()
    _base: Prepared | None = PrivateAttr(default=None)
    _held: Held | None = PrivateAttr(default=None)

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator["SharedRun"]:
        """Wait for the locks of the source, and download its tables."""
        with super().yield_for_execution(context), ExitStack() as stack:
            key, settings = self.key, self._settings

            def wait(owner: str) -> None:
                report_event(context.log, Waiting(key, f"a run of this source on another machine ({owner})"))

            locks = shared.locks_of(context.instance, settings)
            if locks is not None:
                self._held = stack.enter_context(locks.exclusive(key, f"run {self._run.run_id}", wait))
                self._note = _both(self._note, self._held)
            self._bucket = shared_stores.configured_bucket(settings)
            if self._is_full():  # a full run reuses nothing, so it can repair lost tables
                self._base = prepared.read(self._bucket, prepared.pointer_name(key))
            else:
                self._base = prepared.pull(self._bucket, Layout(settings.home), key)
            yield self

    def _is_full(self) -> bool:
        return self._run.tags.get(FULL_TAG) == "true"

    def push(self) -> Prepared:
        """Upload the tables of this run for publishers.

        Raises:
            SourceError: The settings no longer declare the source.
            LostLockError: This run was unresponsive for too long, so another run may be processing the source.
            ConflictError: Another run was faster.
            ObjectStoreError: The object store does not respond.
        """
        if self._held is not None:
            self._held.check()
        key = self.key
        state = state_of_tables(self._settings, registry.find(self._settings, key))
        layout = Layout(self._settings.home)
        return prepared.push(
            self._bucket, layout, key, self._base, self._run.run_id, state=state, reupload=self._is_full()
        )


def _both(first: Callable[[str], None], second: Callable[[str], None]) -> Callable[[str], None]:
    def note(text: str) -> None:
        first(text)
        second(text)

    return note


def _version_of(layout: Layout, key: str) -> str:
    """Return the data version of the tables from which the stores publish a source."""
    storages = {stage.name: stage.storage for stage in stages() if stage.storage is not None}
    return digest_parts(*(storages[name].kept_version(layout, key) or "" for name in STORES.inputs))


@dg.asset(
    key=_PREPARED,
    deps=[product.name for stage in stages() if stage.storage is not None for product in stage.products],
    partitions_def=SOURCES,
    group_name="indexes",
    kinds={"parquet"},
    code_version="1",
    required_resource_keys={"run"},
)
@as_dagster_failure
def prepared_tables(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Uploaded tables of a source, which `publish_prepared` publishes soon.

    The tables are immutable objects, and a pointer selects the current ones. See docs/explanation/several-machines.md.
    """
    started = time.perf_counter()
    run: SharedRun = context.resources.run
    pointer = run.push()
    return dg.MaterializeResult(
        data_version=dg.DataVersion(_version_of(run.layout, context.partition_key)),
        metadata={
            "pointer": pointer.number,
            "tables": len(pointer.files),
            "bytes": sum(content.size for content in pointer.files.values()),
            "seconds": metadata.seconds_since(started),
        },
    )


class Publishing(dg.Config):
    """Keys of the sources to publish; empty for all."""

    sources: list[str] = Field(default_factory=list)


@dg.op(out={}, description="Publish the pending tables, and remove the withdrawn sources.")
@as_dagster_failure
def publish(
    context: dg.OpExecutionContext, config: Publishing, project: Project, embedding_model: EmbeddingModel
) -> Iterator[dg.AssetMaterialization | dg.AssetCheckEvaluation]:
    """Publish what is pending, and report each source once it is searchable everywhere."""
    settings = project.read_settings()
    dead_runs.record_process(context.instance, settings, context.run_id)

    def wait(owner: str) -> None:
        report_event(context.log, Waiting("the stores", f"another publication ({owner})"))

    owner, locks = f"run {context.run_id}", shared.locks_of(context.instance, settings)
    refused: list[Published] = []
    with shared_stores.open_for_publishing(settings, locks, owner, wait) as stores:
        for batch in publish_prepared(
            settings,
            stores,
            embedding_model.load,
            only=config.sources,
            report=lambda event: report_event(context.log, event),
            before_push=lambda home: catalog.rebuild(home, owner),
        ):
            for done in batch:
                yield from _events(stores, done)
                refused += [done] if done.refusal is not None else []
    catalog_asset.report(context.instance, shared.with_shared_state(context.instance, settings))
    if refused:
        context.instance.add_run_tags(context.run_id, {REFUSED_TAG: "true"})
        reasons = "; ".join(f"{done.pointer.source}: {done.refusal}" for done in refused)
        raise dg.Failure(f"not published; the previous state stays searchable: {reasons}", allow_retries=False)


def _events(stores: SharedStores, done: Published) -> Iterator[dg.AssetMaterialization | dg.AssetCheckEvaluation]:
    key = done.pointer.source
    if done.outcome is not None:
        entry, version = StageEntry.of(STORES.name, done.outcome), _version_of(stores.layout, key)
        for product in STORES.products:
            yield _materialization(product.name, key, entry, version)
            checks = check_results(STORES, product, entry)
            yield from (metadata.evaluation(check, dg.AssetKey(product.name), key) for check in checks)
    elif isinstance(done.refusal, VerificationError):
        for product in STORES.products:
            checks = metadata.verified(product.name, STORES.rules, done.refusal.failures)
            yield from (metadata.evaluation(check, dg.AssetKey(product.name), key) for check in checks)


def _materialization(asset: str, key: str, entry: StageEntry, tables: str) -> dg.AssetMaterialization:
    product = entry.products[asset]
    return dg.AssetMaterialization(
        asset,
        partition=key,
        metadata=event_metadata(product, entry),
        tags={DATA_VERSION_TAG: product.version, PREPARED_VERSION_TAG: tables},
    )


def job(project: Project, model: EmbeddingModel) -> dg.JobDefinition:
    """Return the publishing job; it binds its resources, like `remove_source`."""

    @dg.graph(name=PUBLISH_PREPARED)
    def publication() -> None:
        publish()

    return publication.to_job(
        resource_defs={"project": project, "embedding_model": model},
        tags=PUBLISHER_TAGS,
        description="Update the stores: publish the tables that workers prepared, and remove withdrawn sources. The "
        "sensor prepared_changed requests it. See docs/explanation/several-machines.md.",
    )


def store_assets() -> list[dg.AssetSpec]:
    """Return the stores and the catalog as assets that no run of a source makes."""
    stores = [spec(STORES, product, [_PREPARED]).replace_attributes(skippable=False) for product in STORES.products]
    return [*stores, index_catalog.get_asset_spec(CATALOG).replace_attributes(deps=[store.key for store in stores])]


def store_checks() -> dg.AssetChecksDefinition:
    """Return the checks of these assets. Publications evaluate them; running the checks alone has no effect."""

    @dg.multi_asset_check(
        name="checked_by_publications",
        specs=[*check_specs(STORES), *index_catalog.check_specs],
        can_subset=True,
        description="Evaluated by each publication (publish_prepared).",
    )
    def nothing_to_evaluate(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        context.log.info("these checks are only evaluated by publications")
        yield from ()

    return nothing_to_evaluate


@dg.sensor(
    job_name=PUBLISH_PREPARED,
    minimum_interval_seconds=_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Requests a publication while tables are pending. See docs/explanation/several-machines.md.",
)
def prepared_changed(context: dg.SensorEvaluationContext, project: Project) -> dg.SensorResult:
    """Compare the pointers with what is published."""
    first = next(shared_stores.read_published(project.read_settings()).pending(), None)
    if first is None or not last_runs(context.instance, {PUBLISHER_TAG: "true"}).may_request(_LONGEST_DELAY_S):
        return dg.SensorResult(skip_reason=dg.SkipReason("nothing is pending, or a publication is in progress"))
    tags = {**PUBLISHER_TAGS, REASON_TAG: f"tables of {first.source} are pending"}
    return dg.SensorResult(run_requests=[dg.RunRequest(tags=tags)])
