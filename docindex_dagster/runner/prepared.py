"""Publication of tables that workers prepared: runs the last stage for many sources at a time.

The stages before it run on workers; `defs/` starts them.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass

from docindex_dagster.core.errors import DamagedObjectError, DamagedStoreError, LostTableError, VerificationError
from docindex_dagster.core.events import Event, emit
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.settings import Settings
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.objects import garbage_collection, prepared
from docindex_dagster.objects.prepared import Prepared
from docindex_dagster.objects.shared_stores import SharedStores
from docindex_dagster.pipeline.publication import STORES
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.stage import Outcome
from docindex_dagster.runner.run import run_stages
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source
from docindex_dagster.stores import maintenance
from docindex_dagster.stores.publish import withdraw
from docindex_dagster.stores.staging import start_of

_BETWEEN_PUSHES_S = 5.0  # a push has a fixed cost of several requests, but searches wait for it


@dataclass(frozen=True, slots=True)
class Published:
    """The result of publishing a pointer.

    Attributes:
        pointer: The pointer to the tables of a source.
        outcome: The outcome of the last stage; None if the source was removed or its tables were rejected.
        refusal: The reason for a rejection: a violated rule, a lost table or an undeclared source.
    """

    pointer: Prepared
    outcome: Outcome | None
    refusal: Exception | None = None


def publish_prepared(
    settings: Settings,
    stores: SharedStores,
    load_embedder: Callable[[], Embedder],
    *,
    only: Collection[str] = (),
    report: Callable[[Event], None] = emit,
    before_push: Callable[[Layout], object] = lambda _home: None,
) -> Iterator[list[Published]]:
    """Publish pending pointers, and yield each batch once it is searchable on all machines.

    Tables that violate a rule, are lost, or belong to no declared source are rejected until their pointer changes;
    other tables are not affected. Damaged stores in this home are replaced by those in the object store.

    Args:
        settings: The settings of the project.
        stores: The shared stores, opened for publishing.
        load_embedder: Returns the embedding model.
        only: The keys of the sources to publish; empty for all.
        report: Called with each event.
        before_push: Called with the home before each push; it may write the catalog.

    Raises:
        ConflictError: Another publisher was faster; pointers that were not yielded are still pending.
        DamagedStoreError: The stores in the object store are damaged, too.
        ObjectStoreError: The store does not respond.
        FullDiskError: The disk is full.
    """

    def pending() -> Iterator[list[Published]]:
        return _publish_pending(settings, stores, load_embedder, only=only, report=report, before_push=before_push)

    try:
        yield from pending()
    except DamagedStoreError:
        stores.start_over()
        yield from pending()
    if maintenance.maintain(stores.layout, publishing=nullcontext()):  # the lock is held
        stores.push()
    garbage_collection.collect_if_due(stores.bucket)


def _publish_pending(
    settings: Settings,
    stores: SharedStores,
    load_embedder: Callable[[], Embedder],
    *,
    only: Collection[str],
    report: Callable[[Event], None],
    before_push: Callable[[Layout], object],
) -> Iterator[list[Published]]:
    waiting = [pointer for pointer in stores.pending() if not only or pointer.source in only]
    declared = registry.sources(settings)  # once, since listing thousands takes as long as publishing one
    batch: list[Published] = []
    pushed = time.monotonic()
    for pointer in waiting:
        done = _publish(settings, declared, stores, pointer, load_embedder, report=report)
        stores.note(done.pointer, is_refused=done.refusal is not None)
        batch.append(done)
        if time.monotonic() - pushed > _BETWEEN_PUSHES_S:
            before_push(stores.layout)
            stores.push()
            yield batch
            batch, pushed = [], time.monotonic()
    if batch:
        before_push(stores.layout)
        stores.push()
        yield batch


def _publish(
    settings: Settings,
    declared: Mapping[str, Source],
    stores: SharedStores,
    pointer: Prepared,
    load_embedder: Callable[[], Embedder],
    *,
    report: Callable[[Event], None],
) -> Published:
    key, layout = pointer.source, stores.layout
    with exclusive(layout.source_lock(key), "the publisher", lambda _: None):
        try:
            pointer = prepared.pull(stores.bucket, layout, key) or pointer
        except DamagedObjectError as error:
            return Published(pointer, None, error)
        if pointer.is_withdrawn:
            withdraw(layout, key)
            return Published(pointer, None)
        if key not in declared:
            return Published(pointer, None, registry.unknown(key, declared))
        run = SourceRun(settings, declared[key], load_embedder, report=report, is_publishing=True)
        try:
            return Published(pointer, _store(run, stores))
        except (VerificationError, LostTableError) as error:
            return Published(pointer, None, error)


def _store(run: SourceRun, stores: SharedStores) -> Outcome:
    """Run the last stage."""
    if start_of(run.layout, run.load_embedder().name).base is None and run.layout.current.exists():
        _pull_all(stores)  # the stores are built from the tables of all sources
    return run_stages(run, selected=[STORES.name]).outcomes[STORES.name]


def _pull_all(stores: SharedStores) -> None:
    for name in stores.manifest.published:
        pointer = prepared.read(stores.bucket, name)
        if pointer is not None:
            with suppress(DamagedObjectError):  # the publication leaves out that other source, and reports it
                prepared.pull(stores.bucket, stores.layout, pointer.source)
