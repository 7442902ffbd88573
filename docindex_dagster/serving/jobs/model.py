"""What a job is, as it is shown to others."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from docindex_dagster.runner.entries import Kind, Mode, State

BEGAN, ENDED = "began", "ended"  # the first event of a job, and the last


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
