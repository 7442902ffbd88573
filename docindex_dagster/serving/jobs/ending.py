"""How jobs end: by themselves, because they are cancelled, or because something ended their processes."""

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from docindex_dagster.serving.jobs import child, progress
from docindex_dagster.serving.jobs.journal import FINISHED
from docindex_dagster.serving.jobs.model import JobEvent, State
from docindex_dagster.serving.jobs.records import Record

_MOST_ATTEMPTS = 3
# How long after the first signal the next one comes, which is harder to overhear.
_SIGNALS = ((0.0, signal.SIGINT), (10.0, signal.SIGTERM), (15.0, signal.SIGKILL))


@dataclass(slots=True)
class Ending:
    """Ends the process of a job, more and more firmly."""

    pid: int
    _since: float = field(default_factory=time.monotonic)
    _sent: int = 0

    def press(self) -> None:
        """Send the signal that is due, if one is."""
        if self._sent < len(_SIGNALS):
            after_s, signal_ = _SIGNALS[self._sent]
            if time.monotonic() >= self._since + after_s:
                child.send(self.pid, signal_)
                self._sent += 1


def end_of(record: Record, events: Sequence[JobEvent], last_words: str) -> Record:
    """The record of a job whose process is gone.

    A process says first that it begins, and only then does something: without an event, nothing was done, and the job
    waits again; but not for ever, since what ends the process may do so each time.
    """
    at = {"position": progress.of_events(events), "has_run": bool(events)}
    last = events[-1] if events and events[-1].name == FINISHED else None
    if last is not None and last.data["outcome"] == "succeeded":
        return record.ended(State.SUCCEEDED, summary=last.data["summary"], has_run=True, position=progress.DONE)
    if record.state is State.CANCELLING:
        return record.ended(State.CANCELED, **at)
    if last is not None:
        return record.ended(State.FAILED, *last.data["failures"], summary=last.data["summary"], **at)
    because = f": {last_words}" if last_words else ""
    if events:
        what = f"its process is gone{because}; what was searchable still is, and the next run goes on from here"
        return record.ended(State.LOST, what, **at)
    if record.attempts < _MOST_ATTEMPTS:
        return replace(record, state=State.QUEUED, started_at=None)
    return record.ended(State.FAILED, f"its process ended {record.attempts} times before it began{because}", **at)
