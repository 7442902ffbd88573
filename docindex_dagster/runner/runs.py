"""Runs that the journal keeps: how commands, watchers and jobs bring a source up to date, and how one is taken out."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from uuid import uuid4

from docindex_dagster.core.access import writing
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
from docindex_dagster.runner.run import check_local, holding, reason_of, run_stages
from docindex_dagster.sources import clone, registry, removed_sources
from docindex_dagster.status import catalog
from docindex_dagster.stores import link_files
from docindex_dagster.stores.publish import withdraw

INTERRUPTED = "it was stopped before its end"


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run ended: its id, the numbers that its products reported, and, when it failed, one line a reason."""

    run_id: str
    succeeded: bool
    numbers: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def number(self, product: str, name: str) -> int:
        """One number of a product, rounded; 0 where the product did not report it."""
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
    """Bring a source up to date, waiting for another run of it, and write into the journal what it does.

    Args:
        settings: as they are now.
        key: of a declared source.
        mode: look for changes; reuse nothing (`full`); or trust no time stamp and no store (`verify`).
        only: names of the files to look at, as tables have them; none for all.
        launched_by: what started it.
        begun: of a run that the journal has already; without it, the run is added.

    Raises:
        WorkerError: the script that calls it has no main guard.
        SettingsError: the stores are shared with other machines.
        KeyboardInterrupt: the user stopped it.
        FullDiskError: the disk is full, so the journal cannot be written.
    """
    check_local(settings)
    run = begun.run if begun else Run(str(uuid4()), key, launched_by, time.time(), mode, only)
    found: list[StageEntry] = []
    failures: tuple[str, ...] = ()
    with (
        reporting_full_disk(settings.home),
        writing(settings) as layout,
        nullcontext(begun) if begun else journal.writing(layout, run) as writer,
    ):
        removed_sources.forget(layout, key)

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


def _do(settings: Settings, asked: Run, report: Report) -> None:
    with _before(stages()[0].name, report):
        source = registry.find(settings, asked.source)
    run = SourceRun(
        settings,
        source,
        lambda: load_embedder(settings.embedding),
        is_full=asked.mode == "full",
        is_verifying=asked.mode == "verify",
        only=asked.only,
    )
    owner = f"run {asked.run_id} of process {os.getpid()}"
    with holding(run, owner) as held:
        run_stages(held, report, is_complete=True)
    catalog.rebuild(held.layout, owner)


@contextmanager
def _before(stage: str, report: Report) -> Iterator[None]:
    """Report what fails in the block as a failure of the first stage."""
    try:
        yield
    except DocindexError as error:
        report(StageEntry(stage, failure=str(error)))
        raise


def _failures(found: list[StageEntry], error: Exception) -> tuple[str, ...]:
    """Why a run failed, one line a reason."""
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
    """Take a source out of the stores of this machine, and hold its lock until the block ends.

    Args:
        settings: of the project.
        key: of the source; one that is still declared stays out until a command names it.
        report: called with the owner of a lock that is waited for.

    Raises:
        StoreError: what is published cannot be read.
    """
    owner = f"removal of {key}"
    with writing(settings) as layout, exclusive(layout.source_lock(key), owner, report):
        with exclusive(layout.publication_lock, owner, report):
            withdraw(layout, key)
            for asset in layout.assets():
                layout.table(asset, key).unlink(missing_ok=True)
        catalog.rebuild(layout, owner)
        link_files.bring_up_to_date(layout)
        drop_caches(layout, key, report)
        journal.forget(layout, key)
        if key in registry.sources(settings):
            removed_sources.note(layout, key)  # or a sensor would add it again
        yield


def drop_caches(layout: Layout, key: str, report: Callable[[str], None]) -> None:
    """Remove what saves work when a source is indexed: vectors, summaries, its clone."""
    cache.remove(layout, key)
    layout.summaries(key).unlink(missing_ok=True)
    clone.remove(layout, key, report=report)
