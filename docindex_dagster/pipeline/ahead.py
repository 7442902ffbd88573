"""Work of a later stage that is begun in a thread while other stages run, or that ends while a step is recorded.

It pays where these wait for a network, or compute outside of the interpreter's lock, as models of embeddings do. A run
that fails meanwhile waits for it, since what it writes is guarded by the lock of the run.
"""

import os
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from threading import Lock, Thread
from types import TracebackType
from typing import Any, Self

from docindex_dagster.core import events


@dataclass(slots=True)
class _Begun:
    """Work that was begun, from what, and what it announced before its result was awaited."""

    made_of: str
    future: "Future[Any]" = field(default_factory=Future)
    missed: list[events.Event] = field(default_factory=list)
    awaited_in: Context | None = None
    lock: Lock = field(default_factory=Lock)

    def announce(self, event: events.Event) -> None:
        """Announce an event where the result is awaited, which may be later."""
        with self.lock:
            if self.awaited_in is None:
                self.missed.append(event)
            else:
                self.awaited_in.run(events.emit, event)

    def result(self) -> Any:
        """Announce what was announced so far, and wait for the rest."""
        with self.lock:
            self.awaited_in = copy_context()
            for event in self.missed:
                events.emit(event)
        return self.future.result()


@dataclass(frozen=True, slots=True)
class Ahead:
    """What a run has begun ahead, by the names of stages. Its block ends when all of this has ended."""

    _begun: dict[str, _Begun] = field(default_factory=dict)
    _promised: "dict[str, Future[Any]]" = field(default_factory=dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for promise in self._promised.values():
            promise.cancel()
        if kind is None or issubclass(kind, Exception):  # an interrupt waits for nothing
            wait([begun.future for begun in self._begun.values()])

    def begin(self, name: str, made_of: str, work: Callable[[], Any]) -> None:
        """Begin the work of a stage where there is a second core; `made_of` identifies what it is made from."""
        if (os.cpu_count() or 1) < 2:  # noqa: PLR2004 one for the stages, one for this
            return
        begun = self._begun[name] = _Begun(made_of)
        context = copy_context()
        Thread(target=context.run, args=(_do, work, begun), name=f"docindex-{name}", daemon=True).start()

    def is_begun(self, name: str) -> bool:
        """Whether the work of a stage was begun, and its result not yet taken."""
        return name in self._begun

    def promise(self, name: str) -> "Future[Any]":
        """What a stage will make, for work that goes on with it; cancelled where the block ends without it."""
        promised = self._promised[name] = Future()
        return promised

    def fulfil(self, name: str, made: Any) -> None:
        """Hand what a stage made to work that waits for it, if there is any."""
        promised = self._promised.pop(name, None)
        if promised is not None:
            promised.set_result(made)

    def result(self, name: str, made_of: str, work: Callable[[], Any]) -> Any:
        """What the work of a stage gives: waited for, where it was begun from the same; else done now.

        Raises:
            Exception: what the work raises.
        """
        begun = self._begun.pop(name, None)
        if begun is None or begun.made_of != made_of:
            return work()
        return begun.result()


def _do(work: Callable[[], Any], begun: _Begun) -> None:
    with events.diverted(begun.announce):
        try:
            begun.future.set_result(work())
        except BaseException as error:  # noqa: BLE001 whoever asks for the result gets it
            begun.future.set_exception(error)
