"""What happens while indexing, announced in one place, so that progress bars, logs and metrics can listen."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """So many of so many units of a stage are done; `total` is None while it is unknown."""

    source: str
    stage: str
    done: int
    total: int | None
    unit: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A source cannot go on before another process has finished."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that did not stop a run and that the user should know."""

    source: str
    text: str


@dataclass(frozen=True, slots=True)
class StageBegan:
    """A stage of indexing a source begins."""

    source: str
    stage: str


@dataclass(frozen=True, slots=True)
class StageEnded:
    """A stage of indexing a source is done, after so many seconds."""

    source: str
    stage: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Searchable:
    """Text and vectors of a source are published, so many seconds after its run began; its graph is not yet."""

    source: str
    seconds: float


Event = Progress | Waiting | Notice | StageBegan | StageEnded | Searchable
Listener = Callable[[Event], None]
Report = Callable[[int, int], None]
"""Takes how many are done, and of how many."""
_PAUSE_S = 0.1  # between two reports of one stage
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
    """Announce that the block begins, and how long it took, if it ends well."""
    emit(StageBegan(source, name))
    started = time.perf_counter()
    yield
    emit(StageEnded(source, name, time.perf_counter() - started))


def emit(event: Event) -> None:
    """Pass an event to all listeners."""
    for listener in _listeners.get():
        listener(event)


def reporter(source: str, stage: str, unit: str) -> Report:
    """A function that announces progress: the first, the last, and what comes between them a few times a second."""
    due = 0.0

    def report(done: int, total: int) -> None:
        nonlocal due
        now = time.monotonic()
        if done in {0, total} or now >= due:
            due = now + _PAUSE_S
            emit(Progress(source, stage, done, total, unit))

    return report


def ignore(_done: int, _total: int) -> None:
    """Announce nothing."""
