"""Journaled runs: how commands, watchers and jobs update and remove sources."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from uuid import uuid4

from docindex_dagster.core.access import writable_home
from docindex_dagster.core.errors import DocindexError, VerificationError, is_debugging
from docindex_dagster.core.files import reporting_full_disk
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.settings import Settings
from docindex_dagster.embedding import cache
from docindex_dagster.embedding.providers import load_embedder
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.stages import by_name, stages
from docindex_dagster.runner import journal
from docindex_dagster.runner.entries import Launcher, Mode, Run, StageEntry, State
from docindex_dagster.runner.journal import Report, Writer
from docindex_dagster.runner.run import check_local, holding_source_lock, reason_of, run_stages
from docindex_dagster.sources import clone, registry, removed_sources
from docindex_dagster.status import catalog
from docindex_dagster.stores import link_files
from docindex_dagster.stores.publish import withdraw

INTERRUPTED = "stopped before it finished"


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The outcome of a run: its ID, the numbers that its products reported, and, if it failed, one line per reason."""

    run_id: str
    succeeded: bool
    numbers: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def number(self, product: str, name: str) -> int:
        """Return a number of a product, rounded; 0 if the product did not report it."""
        return round(self.numbers.get(product, {}).get(name, 0))


def index(
    settings: Settings,
    key: str,
    *,
    mode: Mode = "changes",
    only: tuple[str, ...] = (),
    launched_by: Launcher = "command line",
    begun: Writer | None = None,
) -> RunOutcome:
    """Bring a source up to date, and record the run in the journal. Waits for other runs of the source.

    Args:
        settings: The current settings.
        key: The key of a declared source.
        mode: Whether to index only changes (`changes`), reuse nothing (`full`), or trust neither timestamps nor stores
            (`verify`).
        only: The paths of the files to check, in the form used in tables; empty for all.
        launched_by: The launcher of the run.
        begun: The writer of a run that is already in the journal; otherwise, the run is added.

    Raises:
        WorkerError: The calling script has no main guard.
        SettingsError: The stores are shared with other machines.
        KeyboardInterrupt: The user stopped the run.
        FullDiskError: The disk is full, so the journal cannot be written.
    """
    check_local(settings)
    run = begun.run if begun else Run(str(uuid4()), key, launched_by, time.time(), mode, only)
    found: list[StageEntry] = []
    failures: tuple[str, ...] = ()
    with (
        reporting_full_disk(settings.home),
        writable_home(settings) as layout,
        nullcontext(begun) if begun else journal.writing(layout, run) as writer,
    ):
        removed_sources.clear_removal(layout, key)

        def report(entry: StageEntry) -> None:
            found.append(entry)
            writer.stage(entry)

        try:
            _do(settings, run, report)
        except KeyboardInterrupt:
            writer.end(State.FAILED, (INTERRUPTED,))
            raise
        except Exception as error:
            failures = _failures(found, error)
            writer.end(State.FAILED, failures)
            if is_debugging() and not isinstance(error, DocindexError):
                raise
        else:
            writer.end(State.SUCCEEDED)
        journal.prune(layout)
    warnings = tuple(dict.fromkeys(line for entry in found for line in entry.warnings))
    return RunOutcome(run.run_id, not failures, dict(_numbers(found)), failures, warnings)


def _do(settings: Settings, request: Run, report: Report) -> None:
    with _before(stages()[0].name, report):
        source = registry.find(settings, request.source)
    run = SourceRun(
        settings,
        source,
        lambda: load_embedder(settings.embedding),
        is_full=request.mode == "full",
        is_verifying=request.mode == "verify",
        only=request.only,
    )
    owner = f"run {request.run_id} of process {os.getpid()}"
    with holding_source_lock(run, owner) as held:
        run_stages(held, report, is_complete=True)
    catalog.rebuild(held.layout, owner)


@contextmanager
def _before(stage: str, report: Report) -> Iterator[None]:
    """Report a failure in the block as a failure of the given stage."""
    try:
        yield
    except DocindexError as error:
        report(StageEntry(stage, failure=str(error)))
        raise


def _failures(found: list[StageEntry], error: Exception) -> tuple[str, ...]:
    """Return why a run failed, one line per reason."""
    last = found[-1] if found and not found[-1].has_ended_well else None
    if last is None:
        return (reason_of(error),)
    if isinstance(error, VerificationError):
        products = [product.name for product in by_name()[last.stage].products]
        return tuple(f"{product}: {name} failed: {why}" for product in products for name, why in last.broken.items())
    return (f"{last.stage}: {last.failure}",)


def _numbers(found: list[StageEntry]) -> Iterator[tuple[str, dict[str, float]]]:
    for entry in found:
        for name, product in entry.products.items():
            rows = {} if product.row_count is None else {"dagster/partition_row_count": product.row_count}
            yield (
                name,
                {**rows, **{key: value for key, value in product.numbers.items() if isinstance(value, (int, float))}},
            )


@contextmanager
def removing(settings: Settings, key: str, report: Callable[[str], None]) -> Iterator[None]:
    """Remove a source from the stores of this machine, and hold its lock until the block ends.

    Args:
        settings: The settings of the project.
        key: The key of the source. If it is still declared, it stays removed until a command names it.
        report: Called with the owner of a lock before waiting for it.

    Raises:
        StoreError: The published stores cannot be read.
    """
    owner = f"removal of {key}"
    with writable_home(settings) as layout, exclusive(layout.source_lock(key), owner, report):
        with exclusive(layout.publication_lock, owner, report):
            withdraw(layout, key)
            for asset in layout.assets():
                layout.table(asset, key).unlink(missing_ok=True)
        catalog.rebuild(layout, owner)
        link_files.bring_up_to_date(layout)
        drop_caches(layout, key, report)
        journal.forget(layout, key)
        if key in registry.sources(settings):
            removed_sources.record_removal(layout, key)  # otherwise a sensor would add it again
        yield


def drop_caches(layout: Layout, key: str, report: Callable[[str], None]) -> None:
    """Delete the cached vectors, summaries and clone of a source."""
    cache.remove(layout, key)
    layout.summaries(key).unlink(missing_ok=True)
    clone.remove(layout, key, report=report)
