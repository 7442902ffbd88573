"""Running the stages over a source: all that happens between the wish to bring it up to date and its publication."""

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from threading import Thread
from typing import Any

from docindex_dagster.chunking.pool import check_main_guard
from docindex_dagster.core.access import writing
from docindex_dagster.core.errors import DocindexError, SettingsError, VerificationError, first_line
from docindex_dagster.core.events import Waiting, emit
from docindex_dagster.core.events import stage as timed
from docindex_dagster.core.files import reporting_full_disk
from docindex_dagster.core.garbage import give_back
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.settings import Settings
from docindex_dagster.core.work import noted
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.pipeline.current import unchanged
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.stage import Outcome, Stage
from docindex_dagster.pipeline.stages import by_name, stages
from docindex_dagster.runner.entries import StageEntry
from docindex_dagster.runner.journal import Report
from docindex_dagster.sources.model import Source
from docindex_dagster.stores.lance_table import load_library
from docindex_dagster.stores.publish import Publication

# A stage that takes so long may have freed much memory, which takes 10 ms to give back.
_LONG_S = 0.2
_FILES, _COMMITS, _CHUNKS, _STORES = "discovered_files", "commits", "chunks", "stores"


def _tell_nobody(_entry: StageEntry) -> None:
    """Keep no journal."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run found or made, and what the stages did that had something to do, by name."""

    publication: Publication
    outcomes: Mapping[str, Outcome]


def index(
    settings: Settings,
    source: Source,
    embedder: Embedder,
    *,
    full: bool = False,
    verify: bool = False,
    only: Collection[str] = (),
) -> Publication:
    """Bring the index of one source up to date, waiting for another run of it; no journal is kept.

    Args:
        settings: sizes, models, and where the index lives.
        source: what to index.
        embedder: the model of the vectors.
        full: reuse nothing, and compare every row of the stores.
        verify: trust no time stamp and no store: read every file, and compare every row.
        only: names of the files to look at, as tables have them; none for all.

    Raises:
        SourceError: the source cannot be read.
        EmbeddingError: the provider failed.
        VerificationError: rows break a rule; what was published stays.
        DamagedStoreError: the stores are damaged, and neither `full` nor `verify` was asked for.
        FullDiskError: there is no space left; what was published stays.
        WorkerError: the script that calls it has no main guard.
        DocindexError: a stage of a package failed.
        SettingsError: the stores are shared with other machines, so runs of Dagster's write them.
    """
    check_local(settings)
    run = SourceRun(settings, source, lambda: embedder, full, verify, tuple(only))
    with reporting_full_disk(settings.home), writing(settings), holding(run, f"process {os.getpid()}") as held:
        ran = run_stages(held)
        for outcome in ran.outcomes.values():
            for text in outcome.warnings:
                held.notice(text)
        return ran.publication


def check_local(settings: Settings) -> None:
    """Make sure that a run of this process can write the stores.

    Raises:
        WorkerError: the script that calls it has no main guard.
        SettingsError: the stores are shared with other machines, so runs of Dagster's write them.
    """
    if settings.storage.url is not None:
        raise SettingsError(f"{settings.config_file}: storage.url is set, so index with `docindex index`")
    check_main_guard()


@contextmanager
def holding(run: SourceRun, owner: str) -> Iterator[SourceRun]:
    """Hold the lock of the source of a run, and say for whom the run waits."""

    def wait(other: str) -> None:
        emit(Waiting(run.key, f"another run of this source ({other})"))

    with exclusive(run.layout.source_lock(run.key), owner, wait) as note:
        yield replace(run, note=note)


def run_stages(run: SourceRun, report: Report = _tell_nobody, *, is_complete: bool = False) -> Ran:
    """Do all stages.

    Args:
        run: which holds the lock of its source.
        report: called with what each stage did, once that is on the disk, or with how it failed.
        is_complete: do the stages after the files and commits also where nothing differs from what is published.

    Raises:
        DocindexError: what a stage raises; those after it are not done.
    """
    with run.ahead, ThreadPoolExecutor(1) as writer:  # tables are written while the next stages work
        written: list[Future[None]] = []
        run = replace(run, wait_for_tables=lambda: _wait(written))
        outcomes: dict[str, Outcome] = {}
        for stage in stages():
            if stage.name == _CHUNKS:
                run.wait_for_tables()
                if not is_complete:
                    published = unchanged(run, outcomes[_FILES].value, outcomes[_COMMITS].value)
                    if published is not None:
                        return Ran(published, outcomes)
                Thread(target=load_library, daemon=True).start()  # it takes a second, and workers are cutting
            inputs = {name: outcomes[name].value for name in stage.inputs}
            started = time.perf_counter()
            try:
                outcome = outcomes[stage.name] = execute(stage, run, inputs)
            except Exception as error:
                _wait(written)  # what the stages before it did is reported first
                report(_failed(stage, error, time.perf_counter() - started))
                raise
            keep = partial(_keep, stage, run, outcome, versions(inputs))
            written.append(writer.submit(_report, keep, report, time.perf_counter() - started))
        run.wait_for_tables()
    return Ran(outcomes[_STORES].value, outcomes)


def _report(keep: Callable[[], StageEntry], report: Report, seconds: float) -> None:
    report(replace(keep(), seconds=round(seconds, 3)))


def _keep(stage: Stage, run: SourceRun, outcome: Outcome, made_of: Mapping[str, str]) -> StageEntry:
    """Write the tables of a stage."""
    is_written = stage.keep(run, outcome.value, made_of)
    if stage.storage is None:
        return StageEntry.of(stage.name, outcome)
    paths = [run.layout.table(table, run.key) for table in stage.storage.tables]
    size = sum(path.stat().st_size for path in paths)
    return StageEntry.of(stage.name, outcome, {"bytes": size, "table_rewritten": is_written})


def _failed(stage: Stage, error: Exception, seconds: float) -> StageEntry:
    if isinstance(error, VerificationError):
        return StageEntry(stage.name, round(seconds, 3), broken=error.failures)
    return StageEntry(stage.name, round(seconds, 3), failure=reason_of(error))


def reason_of(error: BaseException) -> str:
    """The message of an error of ours; of another one, its type and first line."""
    return str(error) if isinstance(error, DocindexError) else f"{type(error).__name__}: {first_line(error)}"


def execute(stage: Stage, run: SourceRun, inputs: Mapping[str, Any]) -> Outcome:
    """Do one stage, report how long it took, and note in the run's lock how far it is.

    Raises:
        VerificationError: a rule of the stage is broken; nothing of it may be written.
        DocindexError: it failed.
    """
    started = time.monotonic()
    with timed(run.key, stage.name), noted(run.note, stage.name):
        outcome = stage.run(run, inputs)
    if time.monotonic() - started > _LONG_S:
        give_back()
    return outcome


def versions(inputs: Mapping[str, Any]) -> dict[str, str]:
    """The data versions of values, by the stages that made them."""
    known = by_name()
    kept = {name: known[name].storage for name in inputs}
    return {name: storage.version_of(inputs[name]) for name, storage in kept.items() if storage is not None}


def _wait(written: list[Future[None]]) -> None:
    for table in written:
        table.result()
