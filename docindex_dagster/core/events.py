"""Events of indexing, which progress bars, logs and metrics can listen to."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a stage, counted in units; `total` is None while it is unknown."""

    source: str
    stage: str
    done: int
    total: int | None
    unit: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A source waits for another process to finish."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A problem that did not stop a run but that the user should know about."""

    source: str
    text: str


@dataclass(frozen=True, slots=True)
class StageBegan:
    """A stage of indexing a source has started."""

    source: str
    stage: str


@dataclass(frozen=True, slots=True)
class StageEnded:
    """A stage of indexing a source has finished, after `seconds`."""

    source: str
    stage: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Searchable:
    """Text and vectors of a source are published, `seconds` after its run started; its graph follows later."""

    source: str
    seconds: float


Event = Progress | Waiting | Notice | StageBegan | StageEnded | Searchable
Listener = Callable[[Event], None]
Report = Callable[[int, int], None]
"""Callback that takes the number of units done and the total."""
_PAUSE_S = 0.1  # between two reports of a stage
_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("docindex_listeners", default=())


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call `listener` for every event in the block."""
    token = _listeners.set((*_listeners.get(), listener))
    try:
        yield
    finally:
        _listeners.reset(token)


@contextmanager
def stage(source: str, name: str) -> Iterator[None]:
    """Emit `StageBegan` before the block, and `StageEnded` after it if it succeeds."""
    emit(StageBegan(source, name))
    started = time.perf_counter()
    yield
    emit(StageEnded(source, name, time.perf_counter() - started))


def emit(event: Event) -> None:
    """Pass an event to all listeners."""
    for listener in _listeners.get():
        listener(event)


def reporter(source: str, stage: str, unit: str) -> Report:
    """Return a callback that emits the first and last progress event, and at most ten per second in between."""
    due = 0.0

    def report(done: int, total: int) -> None:
        nonlocal due
        now = time.monotonic()
        if done in {0, total} or now >= due:
            due = now + _PAUSE_S
            emit(Progress(source, stage, done, total, unit))

    return report


def ignore(_done: int, _total: int) -> None:
    """Do nothing: a `Report` that emits no events."""
