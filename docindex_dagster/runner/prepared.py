"""Publishing what workers prepared: the last stage, for the tables that pointers name, many sources at a time.

Running the stages before it is no business of this module: `defs/` does that, wherever a worker is.
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

_BETWEEN_PUSHES_S = 5.0  # a push takes some requests whatever it holds, and searches wait for it


@dataclass(frozen=True, slots=True)
class Published:
    """What became of a pointer.

    Attributes:
        pointer: to the tables of a source.
        outcome: of the last stage; None where the source was taken out, or its tables were refused.
        refusal: why they were: a rule that is broken, a table that is lost, or a source that nobody declares.
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
    """Publish what is pending; each batch is given when searches everywhere can find it.

    Tables that break a rule, are lost, or belong to no source, are refused until their pointer is another one; the
    others go on.
    Stores of this home that are damaged are replaced by those that the object store has.

    Args:
        settings: of the project.
        stores: open for publishing.
        load_embedder: gives the model of the vectors.
        only: keys of sources; none for all.
        report: called with each event.
        before_push: called with the home before what it holds is published; it may write the catalogue.

    Raises:
        ConflictError: another publisher was faster; what was not given is pending still.
        DamagedStoreError: the stores are damaged in the object store, too.
        ObjectStoreError: the store does not answer.
        FullDiskError: there is no space.
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
    declared = registry.sources(settings)  # once: to look at thousands takes as long as to publish one
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
    """Do the last stage."""
    if start_of(run.layout, run.load_embedder().name).base is None and run.layout.current.exists():
        _pull_all(stores)  # the stores are built from the tables of all sources
    return run_stages(run, selected=[STORES.name]).outcomes[STORES.name]


def _pull_all(stores: SharedStores) -> None:
    for name in stores.manifest.published:
        pointer = prepared.read(stores.bucket, name)
        if pointer is not None:
            with suppress(DamagedObjectError):  # of another source, which the publication leaves out, and says so
                prepared.pull(stores.bucket, stores.layout, pointer.source)
