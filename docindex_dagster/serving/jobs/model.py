"""What a job is, as it is shown to others, and how far it is: each of its phases has a fixed share of the whole."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from docindex_dagster.core import locks
from docindex_dagster.core.layout import Layout
from docindex_dagster.runner.entries import Kind, Mode, State
from docindex_dagster.runner.journal import PROGRESS

BEGAN, ENDED = "began", "ended"  # the first event of a job, and the last
# The phase of each stage that runs report, and the percentages between which it goes. A stage that counts what another
# phase is for, such as `summaries`, belongs to that.
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


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What a job is to do with one source: index it, or remove it from the index and from `docindex.toml`.

    With `paths`, as tables name files, it indexes these alone.
    """

    kind: Kind
    source: str
    mode: Mode = "changes"
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """A job, or a run that others started. Times are UTC in ISO 8601."""

    id: str  # also the id of its run, once that has begun
    request: JobRequest
    state: State
    phase: str | None  # what it does now
    done: int | None  # of the phase; None where it counts nothing
    total: int | None
    percent: int  # of the whole job
    created_at: str
    started_at: str | None
    ended_at: str | None
    run_id: str | None  # None: no run has begun
    summary: Mapping[str, Any] | None  # what `docindex index --json` prints of a run
    failures: tuple[str, ...]
    launched_by: str  # "serve", "sensor", "schedule", "command line", …

    @property
    def seconds(self) -> float | None:
        """How long it worked; None where it did not, or has not ended."""
        if self.started_at is None or self.ended_at is None:
            return None
        return (datetime.fromisoformat(self.ended_at) - datetime.fromisoformat(self.started_at)).total_seconds()


@dataclass(frozen=True, slots=True)
class JobEvent:
    """Something that happened in a job. Numbers begin with 1; the last event of a job is `ended`."""

    number: int
    name: str
    data: Mapping[str, Any]


def iso_time(seconds: float) -> str:
    """Write a time in seconds since 1970 as UTC in ISO 8601."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True)
class Position:
    """What a job does now, and how far the whole is."""

    phase: str | None = None
    done: int | None = None
    total: int | None = None
    percent: int = 0


NOT_BEGUN = Position()
DONE = Position(percent=100)


def position_after(before: Position, event: JobEvent) -> Position:
    """Where a job is after an event; it never goes back."""
    if event.name == BEGAN:
        return Position("starting")
    if event.name != PROGRESS:
        return before
    now = position_at(event.data["stage"], event.data["done"], event.data["total"])
    return replace(now, percent=max(before.percent, now.percent))


def position_at(stage: str, done: int | None, total: int | None) -> Position:
    """Where a run is that does a stage."""
    if stage not in _PHASES:  # of a package
        return Position(stage, done, total, 0)
    phase, start, end = _PHASES[stage]
    share = done / total if done is not None and total else 0.0
    return Position(phase, done, total, int(start + min(1.0, share) * (end - start)))


def position_of(layout: Layout, source: str | None, run_id: str) -> Position:
    """Return where a run is that works on a source of this home, by the lock that it holds."""
    at_work = locks.holder(layout.source_lock(source)) if source else None
    if at_work is None or at_work.step is None or run_id not in at_work.owner:
        return NOT_BEGUN
    return position_at(at_work.step.stage, at_work.step.done, at_work.step.total)
