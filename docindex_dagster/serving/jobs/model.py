"""Model of a job: its request, the checks before it is queued, its events, and its progress.

Each phase has a fixed share of the progress.
"""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from docindex_dagster.core import events, locks, tables
from docindex_dagster.core.errors import JobError, SourceError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings
from docindex_dagster.runner.entries import Kind, Mode, State
from docindex_dagster.runner.journal import BEGIN, PROGRESS, WAITING, WARNING, Writer, lines, open_run
from docindex_dagster.sources import config_edits, registry
from docindex_dagster.sources.explanation import why
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import name_to_path, path_to_name
from docindex_dagster.stores.generation import read_generation

BEGAN, ENDED = "began", "ended"  # the first and the last event of a job
# The phase of each stage that a run reports, and its percentage range. A stage that works for another phase, such as
# `summaries`, belongs to that phase.
_PHASES: Mapping[str, tuple[str, int, int]] = {
    "clone": ("discovery", 0, 10),
    "fetch contents": ("discovery", 0, 10),
    "discovered_files": ("discovery", 0, 10),
    "commits": ("discovery", 0, 10),
    "chunks": ("chunks", 10, 50),
    "summaries": ("chunks", 10, 50),
    "references": ("chunks", 10, 50),
    "embeddings": ("embeddings", 50, 75),
    "concepts": ("graph", 75, 82),
    "knowledge_graph": ("graph", 75, 90),
    "stores": ("stores", 90, 97),
    "index_catalog": ("catalogue", 97, 100),
}
_PAUSE_S = 0.25  # between two lines that only report progress within a stage


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What a job does with one source: index it, or remove it from the index and from `docindex.toml`.

    If `paths` is set, only these files are indexed. Paths are written as in the tables.
    """

    kind: Kind
    source: str
    mode: Mode = "changes"
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """A job, or a run that something else started. Times are UTC in ISO 8601."""

    id: str  # also the id of its run, once it has started
    request: JobRequest
    state: State
    phase: str | None  # the current phase
    done: int | None  # in the phase; None if the phase counts nothing
    total: int | None
    percent: int  # of the entire job
    created_at: str
    started_at: str | None
    ended_at: str | None
    run_id: str | None  # None if no run has started
    summary: Mapping[str, Any] | None  # the output of `docindex index --json` for the run
    failures: tuple[str, ...]
    launched_by: str  # "serve", "sensor", "schedule", "command line", …

    @property
    def seconds(self) -> float | None:
        """The duration of its work; None if it has not started or not ended."""
        if self.started_at is None or self.ended_at is None:
            return None
        return (datetime.fromisoformat(self.ended_at) - datetime.fromisoformat(self.started_at)).total_seconds()


@dataclass(frozen=True, slots=True)
class JobEvent:
    """An event of a job. Numbers start at 1; the last event of a job is `ended`."""

    number: int
    name: str
    data: Mapping[str, Any]


def iso_time(seconds: float) -> str:
    """Format seconds since 1970 as UTC in ISO 8601."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True)
class Position:
    """The current phase of a job and its overall progress."""

    phase: str | None = None
    done: int | None = None
    total: int | None = None
    percent: int = 0


NOT_BEGUN = Position()
DONE = Position(percent=100)


def position_after(before: Position, event: JobEvent) -> Position:
    """Return the position of a job after an event. The percentage never decreases."""
    if event.name == BEGAN:
        return Position("starting")
    if event.name != PROGRESS:
        return before
    now = position_at(event.data["stage"], event.data["done"], event.data["total"])
    return replace(now, percent=max(before.percent, now.percent))


def position_at(stage: str, done: int | None, total: int | None) -> Position:
    """Return the position of a run in a stage."""
    if stage not in _PHASES:  # a stage of another package
        return Position(stage, done, total, 0)
    phase, start, end = _PHASES[stage]
    share = done / total if done is not None and total else 0.0
    return Position(phase, done, total, int(start + min(1.0, share) * (end - start)))


def position_of(layout: Layout, source: str | None, run_id: str) -> Position:
    """Return the position of a run on a source of this home, according to the lock that it holds."""
    lock = locks.holder(layout.source_lock(source)) if source else None
    if lock is None or lock.step is None or run_id not in lock.owner:
        return NOT_BEGUN
    return position_at(lock.step.stage, lock.step.done, lock.step.total)


def check(settings: Settings, request: JobRequest) -> None:
    """Check that a request is possible in the current state of the project.

    Raises:
        SourceError: the source is not declared, cannot be removed by itself, or does not contain a path.
        JobError: the request contains options that exclude each other.
    """
    if request.kind == "remove":
        _check_removal(settings, request)
        return
    source = registry.sources(settings).get(request.source)
    if source is None:
        raise SourceError(f"source {request.source} is not declared; run `docindex source list`")
    if request.paths and request.mode != "changes":
        raise JobError(f"the mode {request.mode} requires an entire source: leave out the paths or the mode")
    for path in request.paths:
        _check_path(settings, source, path)


def _check_removal(settings: Settings, request: JobRequest) -> None:
    if request.mode != "changes" or request.paths:
        raise JobError("only an entire source can be removed: leave out the mode and the paths")
    generation = read_generation(Layout(settings.home))
    published = generation.sources if generation else ()
    if request.source not in registry.sources(settings) and request.source not in published:
        raise SourceError(f"source {request.source} is neither declared nor indexed")
    config_edits.check_removable(settings.root, request.source)


def _check_path(settings: Settings, source: Source, name: str) -> None:
    """Check that a path is a file to be indexed, or one that was indexed and is gone.

    Raises:
        SourceError: it is neither.
    """
    path = _path_of(name)
    if path is None:
        raise SourceError(f"{name!r} is not the path of a file in {source.key}, as written in its tables")
    if source.mode(name) is not None:
        explanation = why(source, source.path / os.fsdecode(path))
        if explanation.skipped_reason:
            raise SourceError(f"{source.key}: {explanation.sentence}")
    elif not was_found(settings, source, name):
        raise SourceError(f"{source.key} has no file {name!r}")


def _path_of(name: str) -> bytes | None:
    """Return the path that the tables write like this; None if there is none or it points outside the source."""
    try:
        path = name_to_path(name)
    except UnicodeEncodeError:  # an unpaired surrogate
        return None
    is_unsafe = b"\0" in path or any(part in {b"", b".", b".."} for part in path.split(b"/"))
    return None if is_unsafe or path_to_name(path) != name else path


def was_found(settings: Settings, source: Source, name: str) -> bool:
    """Return whether the last run of a source found a file."""
    known = tables.read(Layout(settings.home).table("discovered_files", source.key))
    return known is not None and name in known["path"].to_pylist()


class Listener:
    """Listener that writes the events of a run to the journal: stages, progress, waits and notices."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._stage = ""
        self._due = 0.0

    def __call__(self, event: events.Event) -> None:
        """Append an event to the journal."""
        match event:
            case events.StageBegan(stage=stage):
                self._progress(stage, None, None, "")
            case events.Progress(stage=stage, done=done, total=total, unit=unit):
                self._progress(stage, done, total, unit)
            case events.Waiting(reason=reason):
                self._writer.add(WAITING, {"reason": reason})
            case events.Notice(text=text):
                self._writer.add(WARNING, {"text": text})
            case events.StageEnded(stage="stores"):  # only the catalog remains, which is not one of our stages
                self._progress("index_catalog", None, None, "")

    def _progress(self, stage: str, done: int | None, total: int | None, unit: str) -> None:
        is_news = stage != self._stage or done == total
        if is_news or time.monotonic() >= self._due:
            self._stage, self._due = stage, time.monotonic() + _PAUSE_S
            self._writer.add(PROGRESS, {"stage": stage, "done": done, "total": total, "unit": unit})


class Tail:
    """Incremental reader of the events of one job. Events are numbered by position."""

    def __init__(self) -> None:
        self.events: list[JobEvent] = []
        self.position = NOT_BEGUN
        self._inode = 0
        self._offset = 0

    def read(self, path: Path) -> Self:
        """Read new events from the file of the job. Once the job is settled, it is a different file."""
        with suppress(FileNotFoundError), open_run(path) as file:
            if (inode := os.fstat(file.fileno()).st_ino) != self._inode:
                self.events, self.position, self._inode, self._offset = [], NOT_BEGUN, inode, 0
            file.seek(self._offset)
            new = file.read()
            complete = new[: new.rfind(b"\n") + 1]
            self._offset += len(complete)
            for name, data in lines(complete, skipped=("stage",)):
                if name == BEGIN:
                    self._add(BEGAN, {"run_id": data["run_id"], "pid": data["pid"]})
                elif name in {PROGRESS, WAITING, WARNING}:
                    self._add(name, data)
        return self

    def _add(self, name: str, data: Mapping[str, Any]) -> None:
        event = JobEvent(len(self.events) + 1, name, data)
        self.events.append(event)
        self.position = position_after(self.position, event)
