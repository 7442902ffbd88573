"""Cutting that begins before a run asks for it, while this process still loads what it records runs with.

What was cut is used where the run wants exactly the same, and dropped where it wants anything else.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Event, Lock, Thread

from docindex_dagster.chunking.chunker import ChunkOptions
from docindex_dagster.chunking.jobs import ChunkedFiles, FileJob
from docindex_dagster.chunking.pool import chunk_in_workers

Batch = tuple[int, ChunkedFiles]
"""How many files were cut, and what they gave."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be cut, and how. Equal orders give the same, as long as no file changes."""

    jobs: tuple[FileJob, ...]
    options: ChunkOptions
    workers: int
    timeout_s: float


@dataclass(frozen=True, slots=True)
class _Begun:
    """An order that a thread works off, with its batches, then None, or the error that ended it."""

    order: Order
    batches: "SimpleQueue[Batch | BaseException | None]" = field(default_factory=SimpleQueue)
    is_dropped: Event = field(default_factory=Event)


# What is begun and not taken yet, by source. Threads share it.
_begun: dict[str, _Begun] = {}
_changing = Lock()


def begin(source: str, order: Order) -> None:
    """Begin to cut files of a source, in workers, and drop what was begun of it before."""
    drop(source)
    begun = _Begun(order)
    with _changing:
        _begun[source] = begun
    Thread(target=_work, args=(begun,), name="files that are cut ahead", daemon=True).start()


def drop(source: str) -> None:
    """Stop to cut what nobody will take."""
    begun = _pop(source)
    if begun is not None:
        begun.is_dropped.set()


def batches(source: str, order: Order) -> Iterator[Batch]:
    """Cut files: yields, as batches end, what `chunk_in_workers` does. What was begun of the same order is taken.

    Raises:
        WorkerError: no worker can be started.
    """
    begun = _pop(source)
    if begun is not None and begun.order == order:
        return _taken(begun)
    if begun is not None:
        begun.is_dropped.set()
    return _cut(order)


def _pop(source: str) -> _Begun | None:
    with _changing:
        return _begun.pop(source, None)


def _cut(order: Order) -> Iterator[Batch]:
    return chunk_in_workers(order.jobs, order.options, workers=order.workers, timeout_s=order.timeout_s)


def _work(begun: _Begun) -> None:
    try:
        for batch in _cut(begun.order):
            if begun.is_dropped.is_set():
                break
            begun.batches.put(batch)
        begun.batches.put(None)
    except BaseException as error:  # noqa: BLE001 who takes the batches gets it
        begun.batches.put(error)


def _taken(begun: _Begun) -> Iterator[Batch]:
    try:
        while (batch := begun.batches.get()) is not None:
            if isinstance(batch, BaseException):
                raise batch
            yield batch
    finally:
        begun.is_dropped.set()  # whoever takes them may stop early
