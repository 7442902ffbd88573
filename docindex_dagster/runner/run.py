"""Running the stages over a source: all that happens between the wish to bring it up to date and its publication.

Stages run one after the other. With `SteppedRun`, each runs when Dagster asks for it.
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
from docindex_dagster.core.access import writing
from docindex_dagster.core.background import BackgroundThread
from docindex_dagster.core.errors import DocindexError, SettingsError, VerificationError, first_line
from docindex_dagster.core.events import Searchable, Waiting, emit
from docindex_dagster.core.events import stage as timed
from docindex_dagster.core.files import reporting_full_disk
from docindex_dagster.core.garbage_collection import give_back
from docindex_dagster.core.locks import exclusive, step_noted
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

# A stage that takes so long may have freed much memory, which takes 10 ms to give back.
_LONG_S = 0.2
_PATIENCE_S = 0.5  # for late inputs
_MUCH = 1000  # chunks
_FILES, _COMMITS, _CHUNKS, _STORES = "discovered_files", "commits", "chunks", "stores"
NOT_RUN = "the run ended before this stage"


@dataclass(frozen=True, slots=True)
class Ran:
    """What the stages of a run did, by name."""

    outcomes: Mapping[str, Outcome]

    @property
    def publication(self) -> Publication:
        """What the run published, or found published."""
        return self.outcomes[_STORES].value  # type: ignore[no-any-return]  # the values of stages have no type


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
        FullDiskError: the disk is full; what was published stays.
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


def run_stages(
    run: SourceRun,
    report: Report = lambda _entry: None,
    *,
    is_complete: bool = False,
    selected: Collection[str] | None = None,
) -> Ran:
    """Run the stages of a source; the arguments are those of `steps`.

    Raises:
        LostTableError: a table that a selected stage reads is not there.
        DocindexError: what a stage raises; those after it do not run.
    """
    running = steps(run, report, is_complete=is_complete, selected=selected)
    while True:
        try:
            next(running)
        except StopIteration as ended:
            return Ran(ended.value)


def steps(
    run: SourceRun,
    report: Report = lambda _entry: None,
    *,
    is_complete: bool = False,
    selected: Collection[str] | None = None,
) -> Generator[str, None, Mapping[str, Outcome]]:
    """Run the stages, one at a time: those that a publication needs in this thread, the others beside them.

    A stage does not wait longer than half a second for inputs that may be late. It runs without them, and once more
    when they are there: so text and vectors are published before the graph.

    Args:
        run: which holds the lock of its source.
        report: called with what each stage did, once that is on the disk, or with how it failed.
        is_complete: run the stages after the files and commits also where nothing differs from what is published.
        selected: names of stages; the others are not run, and their values are read from tables. None for all.

    Yields:
        The name of each stage of this thread before it runs.

    Returns:
        What the stages did, by name.

    Raises:
        LostTableError: a table that a selected stage reads is not there.
        DocindexError: what a stage raises; those after it do not run.
    """
    has_work = is_complete or not run.layout.table(_CHUNKS, run.key).exists()
    if has_work:
        _warm_up(run)
    with _workers(), BackgroundThread("tables") as writer, BackgroundThread("stages") as beside:
        run = replace(run, wait_for_tables=writer.wait)
        outcomes = _read(run, selected)
        do = partial(_do, run, outcomes, writer, report)
        needed, early, began = _needed(by_name(), _STORES), list[Stage](), time.monotonic()
        for stage in (one for one in stages() if selected is None or one.name in selected):
            if stage.name not in needed:
                outcomes[stage.name] = beside.submit(partial(do, stage))
                continue
            yield stage.name
            if stage.name == _CHUNKS:
                writer.wait()
                seen = (_value(outcomes, name) for name in (_FILES, _COMMITS))
                if not is_complete and (published := unchanged(run, *seen)) is not None:
                    return {**_results(outcomes), _STORES: Outcome(published, {})}
                if not has_work:
                    _warm_up(run)
            if is_early := _is_early(run, stage, outcomes):
                early.append(stage)
            outcomes[stage.name] = _done(do(stage, is_early=is_early))
            if is_early and stage.name == _STORES:
                run.report(Searchable(run.key, time.monotonic() - began))
        beside.wait()
        for stage in early:
            outcomes[stage.name] = _done(do(stage, before=outcomes[stage.name].result()))
        writer.wait()
    return _results(outcomes)


def _read(run: SourceRun, selected: Collection[str] | None) -> "dict[str, Future[Outcome]]":
    """The values that the selected stages need of the others, from their tables."""
    known = by_name()
    wanted = {name for one in selected or () for name in known[one].inputs}.difference(selected or ())
    return {name: _done(Outcome(known[name].read(run), {})) for name in sorted(wanted)}


@contextmanager
def _workers() -> Iterator[None]:
    """Let parsing workers stay from stage to stage."""
    try:
        yield
    finally:
        pool.release()


def _warm_up(run: SourceRun) -> None:
    """Start a parsing worker, and load what the stages need: up to half a second each, mostly without Python's lock."""
    if run.layout.table(_CHUNKS, run.key).exists():  # else there is so much to cut that one worker is not enough
        pool.start_ahead()
    is_static = isinstance(run.load_embedder(), StaticEmbedder)
    for load in (load_detector, *([load_model] if is_static else ()), load_library):
        Thread(target=load, daemon=True).start()


def _is_early(run: SourceRun, stage: Stage, outcomes: Mapping[str, "Future[Outcome]"]) -> bool:
    """Whether a stage runs without its late inputs first. A run that compares all rows does so once."""
    if not stage.late or run.is_full or run.is_verifying or not run.graph_plan.is_wanted:
        return False
    patience_s = 0 if _is_much(outcomes) else _PATIENCE_S
    return bool(wait([outcomes[name] for name in stage.late], patience_s).not_done)


def _is_much(outcomes: Mapping[str, "Future[Outcome]"]) -> bool:
    """Whether so many chunks are new that their graph takes longer than a publication waits."""
    reports = outcomes[_CHUNKS].result().reports
    return bool(reports) and int(reports[_CHUNKS].numbers["added"]) + int(reports[_CHUNKS].numbers["changed"]) > _MUCH


def _needed(known: Mapping[str, Stage], name: str) -> set[str]:
    """The names of the stages without which a stage cannot run, and its own."""
    inputs = [one for one in known[name].inputs if one not in known[name].late]
    return {name}.union(*(_needed(known, one) for one in inputs))


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
    """Run a stage, and write its tables while others run.

    One that is early gets no late input, and is not reported; `before` is what it did then.
    """
    late = stage.late if is_early else ()
    inputs = {name: _value(outcomes, name) for name in stage.inputs if name not in late}
    started = time.perf_counter()
    try:
        outcome = _execute(stage, run, inputs)
    except Exception as error:
        writer.wait()  # what the stages before it did is reported first
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
    """What a stage did that ran twice: first all that is reported, then what its late inputs added."""
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


def _execute(stage: Stage, run: SourceRun, inputs: Mapping[str, Any]) -> Outcome:
    """Do one stage, report how long it took, and note in the run's lock how far it is.

    Raises:
        VerificationError: a rule of the stage is broken; nothing of it may be written.
        DocindexError: it failed.
    """
    started = time.monotonic()
    with timed(run.key, stage.name), step_noted(run.note, stage.name):
        outcome = stage.run(run, inputs)
    if time.monotonic() - started > _LONG_S:
        give_back()
    return outcome


def _versions(inputs: Mapping[str, Any]) -> dict[str, str]:
    """The data versions of values, by the stages that made them."""
    known = by_name()
    kept = {name: known[name].storage for name in inputs}
    return {name: storage.version_of(inputs[name]) for name, storage in kept.items() if storage is not None}


class SteppedRun:
    """Runs the stages of a source as far as the entries that its caller asks for need; others may run ahead."""

    def __init__(self, run: SourceRun, selected: Collection[str], waiting: Collection[str] = ()) -> None:
        """Run no stage yet.

        Args:
            run: which holds the lock of its source.
            selected: names of the stages to run.
            waiting: names of stages that do not run before they are asked for.
        """
        self._reported: SimpleQueue[StageEntry] = SimpleQueue()
        self._steps = steps(run, self._reported.put, is_complete=True, selected=selected)
        self._waiting = waiting
        self._entries: dict[str, StageEntry] = {}
        self._begun = set[str | None]()  # of the stages that run in this thread
        self._next: str | None = None
        self._error: Exception | None = None
        self._advance()

    def entry(self, stage: str) -> StageEntry:
        """Run the stages until one has reported, and return what it did.

        Raises:
            DocindexError: it failed, or did not run because another one did.
            Exception: any other error of the stage.
        """
        while stage not in self._entries and not (self._next is None and self._reported.empty()):
            is_due = stage not in self._begun and (self._next == stage or self._next not in self._waiting)
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
        """Stop where the run is."""
        self._steps.close()

    def _advance(self) -> None:
        self._begun.add(self._next)
        try:
            self._next = next(self._steps)
        except StopIteration:
            self._next = None
        except Exception as error:  # noqa: BLE001 raised where its stage is asked for
            self._next, self._error = None, error
