"""Execution of the stages for a source, from discovery to publication.

Stages run one after the other. With `SteppedRun`, each runs when Dagster requests it.
"""

import os
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any

from docindex_dagster.chunking import pool
from docindex_dagster.chunking.pool import check_main_guard
from docindex_dagster.core.access import writable_home
from docindex_dagster.core.background import BackgroundThread
from docindex_dagster.core.errors import DocindexError, SettingsError, VerificationError, first_line
from docindex_dagster.core.events import Searchable, Waiting, emit
from docindex_dagster.core.events import stage as timed
from docindex_dagster.core.files import reporting_full_disk
from docindex_dagster.core.garbage_collection import release_memory
from docindex_dagster.core.locks import exclusive, recording_step
from docindex_dagster.core.settings import Settings
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.static import StaticEmbedder, load_model
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.stage import Outcome, Stage
from docindex_dagster.pipeline.stages import by_name, stages
from docindex_dagster.pipeline.up_to_date import unchanged
from docindex_dagster.runner.entries import StageEntry
from docindex_dagster.runner.journal import Report
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.secrets import load_detector
from docindex_dagster.stores.lance_table import load_library
from docindex_dagster.stores.publish import Publication

# A stage that takes this long may have freed much memory; returning it to the system takes 10 ms.
_LONG_S = 0.2
_LATE_INPUT_WAIT_S = 0.5
_MANY_CHUNKS = 1000
_FILES, _COMMITS, _CHUNKS, _STORES = "discovered_files", "commits", "chunks", "stores"
NOT_RUN = "the run ended before this stage"


@dataclass(frozen=True, slots=True)
class StageOutcomes:
    """The outcomes of the stages of a run, by name."""

    outcomes: Mapping[str, Outcome]

    @property
    def publication(self) -> Publication:
        """The publication that the run made, or found unchanged."""
        return self.outcomes[_STORES].value  # type: ignore[no-any-return]  # the values of stages are untyped


def index(
    settings: Settings,
    source: Source,
    embedder: Embedder,
    *,
    full: bool = False,
    verify: bool = False,
    only: Collection[str] = (),
) -> Publication:
    """Bring the index of one source up to date, without a journal entry. Waits for other runs of the source.

    Args:
        settings: The settings of the project.
        source: The source to index.
        embedder: The embedding model.
        full: Whether to reuse nothing, and compare every row of the stores.
        verify: Whether to read every file regardless of timestamps, and compare every row of the stores.
        only: The paths of the files to check, in the form used in tables; empty for all.

    Raises:
        SourceError: The source cannot be read.
        EmbeddingError: The embedding provider failed.
        VerificationError: Rows violate a rule; everything already published stays.
        DamagedStoreError: The stores are damaged, and neither `full` nor `verify` is set.
        FullDiskError: The disk is full; everything already published stays.
        WorkerError: The calling script has no main guard.
        DocindexError: A plugin stage failed.
        SettingsError: The stores are shared with other machines, so only Dagster runs may write to them.
    """
    check_local(settings)
    run = SourceRun(settings, source, lambda: embedder, full, verify, tuple(only))
    with (
        reporting_full_disk(settings.home),
        writable_home(settings),
        holding_source_lock(run, f"process {os.getpid()}") as held,
    ):
        ran = run_stages(held)
        for outcome in ran.outcomes.values():
            for text in outcome.warnings:
                held.notice(text)
        return ran.publication


def check_local(settings: Settings) -> None:
    """Check that a run in this process can write to the stores.

    Raises:
        WorkerError: The calling script has no main guard.
        SettingsError: The stores are shared with other machines, so only Dagster runs may write to them.
    """
    if settings.storage.url is not None:
        raise SettingsError(f"{settings.config_file}: storage.url is set; run `docindex index` instead")
    check_main_guard()


@contextmanager
def holding_source_lock(run: SourceRun, owner: str) -> Iterator[SourceRun]:
    """Hold the lock of a run's source, and emit an event if the run has to wait for another one."""

    def wait(other: str) -> None:
        emit(Waiting(run.key, f"another run of this source ({other})"))

    with exclusive(run.layout.source_lock(run.key), owner, wait) as note:
        yield replace(run, note=note)


def run_stages(
    run: SourceRun,
    report: Report = lambda _entry: None,
    *,
    is_complete: bool = False,
    selected: Collection[str] | None = None,
) -> StageOutcomes:
    """Run the stages of a source, with the same arguments as `steps`.

    Raises:
        LostTableError: A table that a selected stage reads is missing.
        DocindexError: A stage failed; later stages do not run.
    """
    running = steps(run, report, is_complete=is_complete, selected=selected)
    while True:
        try:
            next(running)
        except StopIteration as ended:
            return StageOutcomes(ended.value)


def steps(
    run: SourceRun,
    report: Report = lambda _entry: None,
    *,
    is_complete: bool = False,
    selected: Collection[str] | None = None,
) -> Generator[str, None, Mapping[str, Outcome]]:
    """Run the stages: those that a publication needs one by one in this thread, the others in a background thread.

    A stage waits at most half a second for late inputs. It then runs without them, and again once they are available,
    so text and vectors are published before the graph.

    Args:
        run: The run, which holds the lock of its source.
        report: Called with the result of each stage once it is on disk, or with its failure.
        is_complete: Whether to run the stages after files and commits even if nothing has changed since the last
            publication.
        selected: The names of the stages to run; the values of others are read from tables. None for all.

    Yields:
        The name of each stage of this thread before it runs.

    Returns:
        The outcomes of the stages, by name.

    Raises:
        LostTableError: A table that a selected stage reads is missing.
        DocindexError: A stage failed; later stages do not run.
    """
    has_work = is_complete or not run.layout.table(_CHUNKS, run.key).exists()
    if has_work:
        _warm_up(run)
    with _workers(), BackgroundThread("tables") as writer, BackgroundThread("stages") as background:
        run = replace(run, wait_for_tables=writer.wait)
        outcomes = _read(run, selected)
        do = partial(_do, run, outcomes, writer, report)
        needed, early, started = _needed(by_name(), _STORES), list[Stage](), time.monotonic()
        for stage in (stage for stage in stages() if selected is None or stage.name in selected):
            if stage.name not in needed:
                outcomes[stage.name] = background.submit(partial(do, stage))
                continue
            yield stage.name
            if stage.name == _CHUNKS:
                writer.wait()
                discovered = (_value(outcomes, name) for name in (_FILES, _COMMITS))
                if not is_complete and (published := unchanged(run, *discovered)) is not None:
                    return {**_results(outcomes), _STORES: Outcome(published, {})}
                if not has_work:
                    _warm_up(run)
            if is_early := _is_early(run, stage, outcomes):
                early.append(stage)
            outcomes[stage.name] = _done(do(stage, is_early=is_early))
            if is_early and stage.name == _STORES:
                run.report(Searchable(run.key, time.monotonic() - started))
        background.wait()
        for stage in early:
            outcomes[stage.name] = _done(do(stage, before=outcomes[stage.name].result()))
        writer.wait()
    return _results(outcomes)


def _read(run: SourceRun, selected: Collection[str] | None) -> "dict[str, Future[Outcome]]":
    """Read the values that the selected stages need from stages that are not selected."""
    known = by_name()
    inputs = {name for stage in selected or () for name in known[stage].inputs}.difference(selected or ())
    return {name: _done(Outcome(known[name].read(run), {})) for name in sorted(inputs)}


@contextmanager
def _workers() -> Iterator[None]:
    """Keep parsing workers alive between stages."""
    try:
        yield
    finally:
        pool.release()


def _warm_up(run: SourceRun) -> None:
    """Start a parsing worker, and load models and libraries in threads: up to 0.5 s each, mostly without the GIL."""
    if run.layout.table(_CHUNKS, run.key).exists():  # the first run needs more than one worker
        pool.start_ahead()
    is_static = isinstance(run.load_embedder(), StaticEmbedder)
    for load in (load_detector, *([load_model] if is_static else ()), load_library):
        Thread(target=load, daemon=True).start()


def _is_early(run: SourceRun, stage: Stage, outcomes: Mapping[str, "Future[Outcome]"]) -> bool:
    """Return whether a stage first runs without its late inputs. A run that compares all rows does not."""
    if not stage.late or run.is_full or run.is_verifying or not run.graph_plan.is_wanted:
        return False
    wait_s = 0 if _has_many_changes(outcomes) else _LATE_INPUT_WAIT_S
    return bool(wait([outcomes[name] for name in stage.late], wait_s).not_done)


def _has_many_changes(outcomes: Mapping[str, "Future[Outcome]"]) -> bool:
    """Return whether so many chunks are new that their graph takes longer than a publication waits."""
    reports = outcomes[_CHUNKS].result().reports
    if not reports:
        return False
    numbers = reports[_CHUNKS].numbers
    return int(numbers["added"]) + int(numbers["changed"]) > _MANY_CHUNKS


def _needed(known: Mapping[str, Stage], name: str) -> set[str]:
    """Return the names of a stage and of all stages that it depends on, except through late inputs."""
    inputs = [stage for stage in known[name].inputs if stage not in known[name].late]
    return {name}.union(*(_needed(known, stage) for stage in inputs))


def _do(
    run: SourceRun,
    outcomes: Mapping[str, "Future[Outcome]"],
    writer: BackgroundThread,
    report: Report,
    stage: Stage,
    *,
    is_early: bool = False,
    before: Outcome | None = None,
) -> Outcome:
    """Run a stage, and write its tables while other stages run.

    An early stage gets no late inputs and is not reported; `before` is its early outcome when it runs again.
    """
    late = stage.late if is_early else ()
    inputs = {name: _value(outcomes, name) for name in stage.inputs if name not in late}
    started = time.perf_counter()
    try:
        outcome = _execute(stage, run, inputs)
    except Exception as error:
        writer.wait()  # report the earlier stages first
        report(_failed(stage, error, time.perf_counter() - started))
        raise
    if is_early:
        return outcome
    if before is not None:
        outcome = _completed(before, outcome)
    keep = partial(_keep, stage, run, outcome, _versions(inputs))
    writer.submit(partial(_report, stage, keep, report, time.perf_counter() - started))
    return outcome


def _completed(early: Outcome, late: Outcome) -> Outcome:
    """Merge the outcomes of a stage that ran twice: the early run's reports, with the late run's value and checks."""
    return Outcome(late.value, early.reports, {**late.checks, **early.checks}, (*early.warnings, *late.warnings))


def _value(outcomes: Mapping[str, "Future[Outcome]"], name: str) -> Any:
    return outcomes[name].result().value


def _results(outcomes: Mapping[str, "Future[Outcome]"]) -> dict[str, Outcome]:
    return {name: outcome.result() for name, outcome in outcomes.items()}


def _done(outcome: Outcome) -> "Future[Outcome]":
    future: Future[Outcome] = Future()
    future.set_result(outcome)
    return future


def _report(stage: Stage, keep: Callable[[], StageEntry], report: Report, seconds: float) -> None:
    try:
        report(replace(keep(), seconds=round(seconds, 3)))
    except Exception as error:
        report(_failed(stage, error, seconds))
        raise


def _keep(stage: Stage, run: SourceRun, outcome: Outcome, input_versions: Mapping[str, str]) -> StageEntry:
    """Write the tables of a stage."""
    is_written = stage.keep(run, outcome.value, input_versions)
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
    """Return the message of a docindex error; for other errors, the type and first line."""
    return str(error) if isinstance(error, DocindexError) else f"{type(error).__name__}: {first_line(error)}"


def _execute(stage: Stage, run: SourceRun, inputs: Mapping[str, Any]) -> Outcome:
    """Run a stage, emit its events, and record its progress in the run's lock.

    Raises:
        VerificationError: A rule of the stage is violated; none of its result may be written.
        DocindexError: The stage failed.
    """
    started = time.monotonic()
    with timed(run.key, stage.name), recording_step(run.note, stage.name):
        outcome = stage.run(run, inputs)
    if time.monotonic() - started > _LONG_S:
        release_memory()
    return outcome


def _versions(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return the data versions of stage values, by stage name."""
    known = by_name()
    kept = {name: known[name].storage for name in inputs}
    return {name: storage.version_of(inputs[name]) for name, storage in kept.items() if storage is not None}


class SteppedRun:
    """A run whose stages execute on demand, as its caller requests their entries; others may run ahead."""

    def __init__(self, run: SourceRun, selected: Collection[str], waiting: Collection[str] = ()) -> None:
        """Prepare the run, without running a stage yet.

        Args:
            run: The run, which holds the lock of its source.
            selected: The names of the stages to run.
            waiting: The names of stages that must not run before they are requested.
        """
        self._reported: SimpleQueue[StageEntry] = SimpleQueue()
        self._steps = steps(run, self._reported.put, is_complete=True, selected=selected)
        self._waiting = waiting
        self._entries: dict[str, StageEntry] = {}
        self._started = set[str | None]()  # stages that run in this thread
        self._next: str | None = None
        self._error: Exception | None = None
        self._advance()

    def entry(self, stage: str) -> StageEntry:
        """Run stages until `stage` has reported, and return its entry.

        Raises:
            DocindexError: The stage failed, or did not run because another stage failed.
            Exception: Any other error of the stage.
        """
        while stage not in self._entries and not (self._next is None and self._reported.empty()):
            is_due = stage not in self._started and (self._next == stage or self._next not in self._waiting)
            if self._reported.empty() and is_due:
                self._advance()
            else:
                done = self._reported.get()
                self._entries[done.stage] = done
        found = self._entries.get(stage)
        if found is not None and not found.failure:
            return found
        error = self._error
        is_reported = any(not entry.has_ended_well for entry in self._entries.values())
        if error is not None and (found.failure == reason_of(error) if found else not is_reported):
            raise error
        raise DocindexError(found.failure if found else NOT_RUN) from error

    def close(self) -> None:
        """Stop the run at the current stage."""
        self._steps.close()

    def _advance(self) -> None:
        self._started.add(self._next)
        try:
            self._next = next(self._steps)
        except StopIteration:
            self._next = None
        except Exception as error:  # noqa: BLE001 raised when its stage is requested
            self._next, self._error = None, error
