"""What runs are at work on: noted in the locks that they hold, so that a process that died is not at work."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from docindex_dagster.core import events, locks
from docindex_dagster.core.layout import Layout

_PAUSE_S = 0.5  # between two notes


@dataclass(frozen=True, slots=True)
class Step:
    """What a run does now; `done` and `total` are None where it counts nothing."""

    stage: str
    done: int | None = None
    total: int | None = None
    unit: str = ""

    def __str__(self) -> str:
        """In words."""
        stage = self.stage.replace("_", " ")
        return stage if not self.total else f"{stage}, {self.done:,} of {self.total:,} {self.unit}"


@dataclass(frozen=True, slots=True)
class Work:
    """A process that is at work on a source, or that writes generations; `since` is UTC in ISO 8601."""

    owner: str
    pid: int
    since: str
    step: Step | None = None


@contextmanager
def noted(note: locks.Note, stage: str) -> Iterator[None]:
    """Note in a lock that the block does a stage, and how far it is."""
    due = 0.0

    def listen(event: events.Event) -> None:
        nonlocal due
        if isinstance(event, events.Progress) and time.monotonic() >= due:
            due = time.monotonic() + _PAUSE_S
            note(json.dumps(asdict(Step(stage, event.done, event.total, event.unit))))

    note(json.dumps(asdict(Step(stage))))
    with events.listening(listen):
        yield


def on_source(layout: Layout, key: str) -> Work | None:
    """The run that is at work on a source; None where there is none."""
    return _of(locks.holder(layout.source_lock(key)))


def on_stores(layout: Layout) -> Work | None:
    """Who writes a generation, be it of one source or of all."""
    return _of(locks.holder(layout.publication_lock))


def _of(holder: locks.Holder | None) -> Work | None:
    return None if holder is None else Work(holder.owner, holder.pid, holder.since, _step(holder.note))


def _step(note: str) -> Step | None:
    try:
        return Step(**json.loads(note))
    except (ValueError, TypeError):  # none yet, or one that is being written
        return None
