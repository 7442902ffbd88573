"""Where machines share the stores: the asset `prepared_tables`, and runs that end with it.

A worker has a disk for the time of its run. It brings the tables of its source there, does all stages but the last, and
puts what they made where publishers find it. See docs/scale.md.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import dagster as dg
from pydantic import PrivateAttr

from docindex_dagster.core.events import Waiting
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import Held
from docindex_dagster.defs import metadata, shared
from docindex_dagster.defs.failures import as_dagster_failure
from docindex_dagster.defs.resources import RunResource, report_event
from docindex_dagster.defs.tags import FULL_TAG, SOURCES
from docindex_dagster.objects import prepared, shared_stores
from docindex_dagster.objects.bucket import Bucket
from docindex_dagster.objects.prepared import Prepared
from docindex_dagster.pipeline.current import state_of_tables
from docindex_dagster.pipeline.publication import STORES
from docindex_dagster.pipeline.stages import stages
from docindex_dagster.sources import registry

PREPARED = dg.AssetKey("prepared_tables")


class SharedRun(RunResource):
    """One run over one source on any machine: it holds the source's lock between machines, too, and has its tables."""

    _bucket: Bucket = PrivateAttr()
    _base: Prepared | None = PrivateAttr(default=None)
    _held: Held | None = PrivateAttr(default=None)

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator["SharedRun"]:
        """Wait for the source's locks, and bring its tables here."""
        with super().yield_for_execution(context), ExitStack() as stack:
            key, settings = self.key, self._settings

            def wait(owner: str) -> None:
                report_event(context.log, Waiting(key, f"a run of this source elsewhere ({owner})"))

            locks = shared.locks_of(context.instance, settings)
            if locks is not None:
                self._held = stack.enter_context(locks.exclusive(key, f"run {self._run.run_id}", wait))
                self._note = _both(self._note, self._held)
            self._bucket = shared_stores.bucket_of(settings)
            if self._is_full():  # nothing is reused, so that it can mend tables that are lost
                self._base = prepared.read(self._bucket, prepared.object_of(key))
            else:
                self._base = prepared.pull(self._bucket, Layout(settings.home), key)
            yield self

    def _is_full(self) -> bool:
        return self._run.tags.get(FULL_TAG) == "true"

    def push(self) -> Prepared:
        """Let publishers find the tables of this run.

        Raises:
            SourceError: the settings do not declare the source any more.
            LostLockError: another run may be at work on the source, since this one was away for too long.
            ConflictError: another run was faster.
            ObjectStoreError: the object store does not answer.
        """
        if self._held is not None:
            self._held.check()
        key = self.key
        state = state_of_tables(self._settings, registry.find(self._settings, key))
        layout = Layout(self._settings.home)
        return prepared.push(self._bucket, layout, key, self._base, self._run.run_id, state=state, anew=self._is_full())


def _both(first: Callable[[str], None], second: Callable[[str], None]) -> Callable[[str], None]:
    def note(text: str) -> None:
        first(text)
        second(text)

    return note


def version_of(layout: Layout, key: str) -> str:
    """The data version of the tables that a home has of a source: what the stores are made of."""
    storages = {stage.name: stage.storage for stage in stages() if stage.storage is not None}
    return digest_parts(*(storages[name].kept_version(layout, key) or "" for name in STORES.inputs))


@dg.asset(
    key=PREPARED,
    deps=[product.name for stage in stages() if stage.storage is not None for product in stage.products],
    partitions_def=SOURCES,
    group_name="indexes",
    kinds={"parquet"},
    code_version="1",
    required_resource_keys={"run"},
)
@as_dagster_failure
def prepared_tables(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """The tables of a source where publishers find them; `publish_prepared` publishes them soon.

    They are objects that never change, and a pointer says which. See docs/scale.md.
    """
    started = time.perf_counter()
    run: SharedRun = context.resources.run
    pointer = run.push()
    return dg.MaterializeResult(
        data_version=dg.DataVersion(version_of(run.layout, context.partition_key)),
        metadata={
            "pointer": pointer.number,
            "tables": len(pointer.files),
            "bytes": sum(content.size for content in pointer.files.values()),
            "seconds": metadata.seconds_since(started),
        },
    )
