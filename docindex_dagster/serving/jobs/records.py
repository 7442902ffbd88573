"""The records of jobs, a file of each, which only the server writes."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from docindex_dagster.core.files import replacing
from docindex_dagster.core.layout import Layout
from docindex_dagster.serving.jobs.model import JobRequest, State
from docindex_dagster.serving.jobs.progress import NOT_BEGUN, Position

KEY_HOLDS = timedelta(hours=24)
_KEPT_FOR = timedelta(days=7)
_MOST_KEPT = 1000


@dataclass(frozen=True, slots=True)
class Record:
    """What the server keeps of a job. Times are UTC in ISO 8601."""

    id: str
    number: int  # the order in which jobs were asked for
    request: JobRequest
    state: State
    key: str | None  # with which it was asked for, and by which it is found again
    created_at: str
    started_at: str | None = None
    ended_at: str | None = None
    summary: dict[str, Any] | None = None
    failures: tuple[str, ...] = ()
    attempts: int = 0  # how often its process was started
    has_run: bool = False  # whether a run began; known when the job has ended
    position: Position = NOT_BEGUN  # where it was when it ended

    @property
    def seconds(self) -> float | None:
        """How long it worked; None where it did not, or has not ended."""
        if self.started_at is None or self.ended_at is None:
            return None
        return (datetime.fromisoformat(self.ended_at) - datetime.fromisoformat(self.started_at)).total_seconds()

    def ended(self, state: State, *failures: str, **values: Any) -> "Record":
        """The record of the job that has ended just now."""
        return replace(self, state=state, ended_at=now(), failures=failures, **values)


def now() -> str:
    """The time, as records have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def is_within(at: str, age: timedelta) -> bool:
    """Whether a time is not longer ago than that."""
    return datetime.now(UTC) - datetime.fromisoformat(at) <= age


class Records:
    """The records of one home; none before they are read."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._by_id: dict[str, Record] = {}

    def read(self) -> Self:
        """Read them from the disk: once, since nobody else writes them.

        Raises:
            OSError: a file cannot be read.
        """
        found = (_read(file) for file in self._layout.entries(self._layout.jobs) if file.suffix == ".json")
        self._by_id = {record.id: record for record in found if record is not None}
        return self

    def get(self, job: str) -> Record | None:
        """The record of a job; None where there is none."""
        return self._by_id.get(job)

    def all(self) -> list[Record]:
        """All of them, in the order in which they were asked for."""
        return sorted(self._by_id.values(), key=lambda record: record.number)

    def write(self, record: Record) -> Record:
        """Keep a record in the place of the one before."""
        path = self._layout.job(record.id, "json")
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(asdict(record), ensure_ascii=False), encoding="utf-8")
        self._by_id[record.id] = record
        return record

    def next_number(self) -> int:
        """The number of the next job."""
        return max((record.number for record in self._by_id.values()), default=0) + 1

    def with_key(self, key: str) -> Record | None:
        """The job that was asked for with a key, while that holds."""
        return next((record for record in self._by_id.values() if record.key == key and _holds_key(record)), None)

    def prune(self) -> list[str]:
        """Remove old jobs that have ended, with all that is kept of them, and return their ids."""
        ended = [record for record in reversed(self.all()) if record.state.has_ended]
        removed = [record.id for place, record in enumerate(ended) if not _is_kept(record, place)]
        for job in removed:
            del self._by_id[job]
            # Its record comes last: what a kill leaves of a job is found again by it.
            _remove(self._layout.job(job, kind) for kind in ("events", "log", "lock", "json"))
        return removed


def _holds_key(record: Record) -> bool:
    return record.key is not None and is_within(record.created_at, KEY_HOLDS)


def _is_kept(record: Record, place: int) -> bool:
    """Whether a job is still shown, by its place among those that ended, the newest one first."""
    return _holds_key(record) or (place < _MOST_KEPT and is_within(record.ended_at or record.created_at, _KEPT_FOR))


def _remove(files: Iterable[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)


def _read(file: Path) -> Record | None:
    """A record; None for what is none, such as one that a later version wrote."""
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        request = values["request"]
        asked = JobRequest(**{**request, "paths": tuple(request["paths"])})
        typed = {"request": asked, "state": State(values["state"]), "failures": tuple(values["failures"])}
        return Record(**{**values, **typed, "position": Position(**values["position"])})
    except (ValueError, TypeError, KeyError):
        return None
