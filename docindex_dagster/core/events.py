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
class StageEnded:
    """A stage of indexing a source is done, after so many seconds."""

    source: str
    stage: str
    seconds: float


Event = Progress | Waiting | Notice | StageEnded
Listener = Callable[[Event], None]
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
    """Announce how long the block took, if it ends well."""
    started = time.perf_counter()
    yield
    emit(StageEnded(source, name, time.perf_counter() - started))


def emit(event: Event) -> None:
    """Pass an event to all listeners."""
    for listener in _listeners.get():
        listener(event)
