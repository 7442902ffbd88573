"""Parsing workers: spawned, reused for file after file, and replaced when a file crashes or hangs them."""

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.util import Finalize
from threading import Lock, Thread
from typing import TYPE_CHECKING

from docindex_dagster.chunking.chunker import ChunkOptions
from docindex_dagster.chunking.rows import ChunkedFiles, FileJob
from docindex_dagster.core.child_process import out_of_reach
from docindex_dagster.core.errors import WorkerError
from docindex_dagster.core.platforms import processors

if TYPE_CHECKING:
    from pebble import ProcessPool

# A batch is large enough to hide the cost of a message and small enough to parse well within the time-out.
_BATCH_BYTES = 256 << 10
_BATCH_FILES = 64
# Below this a second worker takes longer to start than it saves.
_BYTES_WORTH_A_WORKER = 512 << 10
_MOST_WORKERS = 4
_DOCUMENT = "doc"
_GUARD = 'a script that indexes must do so below `if __name__ == "__main__":`, since each of these processes imports it'
_BEFORE_CHILDREN_ARE_WAITED_FOR = 10  # any priority from 0
# Pools that wait for work, by the number of their workers. Threads share them.
_waiting: "dict[int, ProcessPool]" = {}
_changing = Lock()


class _Worker(SpawnProcess):
    """A process that imports nothing from its working folder, also if pebble starts it in the place of another."""

    def start(self) -> None:
        """Start the process."""
        with out_of_reach():
            super().start()


class _Context(SpawnContext):
    Process = _Worker


def check_main_guard() -> None:
    """Find out whether this process is a worker that runs its parent's script from the top, and would wait for it.

    Raises:
        WorkerError: it is.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # as multiprocessing itself asks
        raise WorkerError(f"a process that is to parse files indexes instead: {_GUARD}")


def start_ahead() -> None:
    """Let the worker for a small change start while this process does something else, unless one is there."""
    Thread(target=_start_waiting, name="start of a parsing worker", daemon=True).start()


def _start_waiting() -> None:
    # Who needs a worker tries again, and says what is wrong. RuntimeError: this process ends already.
    with suppress(WorkerError, RuntimeError), _changing:
        if not any(map(_is_active, _waiting)):
            pool = _spawn(1)
            _keep(1, pool)
            pool.schedule(_load)


def chunk_in_workers(
    jobs: Sequence[FileJob], options: ChunkOptions, *, workers: int, timeout_s: float
) -> Iterator[tuple[int, ChunkedFiles]]:
    """Cut files in workers; yields, as batches end, how many files each had and what they gave.

    A file whose worker crashes, or takes over `timeout_s`, comes back cut as text with the reason in `fallback`.

    Raises:
        WorkerError: no worker can be started.
    """
    if not jobs:
        return
    with _pool(workers or _workers_for(sum(job.size for job in jobs))) as pool:
        pending = [(batch, _scheduled(pool, batch, options, timeout_s)) for batch in _batches(_by_type(jobs))]
        for batch, future in pending:
            failure = _failure(future, timeout_s * batch[0].patience)
            if failure is None:
                yield len(batch), future.result()
                continue
            for job in batch:
                alone = len(batch) > 1
                yield 1, _alone(pool, job, options, timeout_s) if alone else _cut([job], options, failure)


def _cut(jobs: Sequence[FileJob], options: ChunkOptions, failure: str | None = None) -> ChunkedFiles:
    """Cut files: in a worker, or, by lines alone, here."""
    from docindex_dagster.chunking.worker import chunk_files

    return chunk_files(jobs, options, failure)


def _load() -> None:
    """Load what a worker needs, so that its first file need not wait for it."""
    from docindex_dagster.chunking.worker import load_grammars

    load_grammars()


def _scheduled(
    pool: "ProcessPool", batch: Sequence[FileJob], options: ChunkOptions, timeout_s: float
) -> "Future[ChunkedFiles]":
    found: Future[ChunkedFiles] = pool.schedule(_cut, (batch, options), timeout=timeout_s * batch[0].patience)
    return found


def _alone(pool: "ProcessPool", job: FileJob, options: ChunkOptions, timeout_s: float) -> ChunkedFiles:
    """Cut one file of a batch that failed, so that only the file to blame loses its structure."""
    future = pool.schedule(_cut, ([job], options), timeout=timeout_s)
    failure = _failure(future, timeout_s)
    return future.result() if failure is None else _cut([job], options, failure)


def _failure(future: "Future[ChunkedFiles]", timeout_s: float) -> str | None:
    from pebble import ProcessExpired

    try:
        future.result()
    except BrokenProcessPool as error:
        raise WorkerError(f"the processes that parse files end as soon as they start; {_GUARD}") from error
    except TimeoutError:
        return f"time-out: not parsed within {timeout_s:g} s"
    except ProcessExpired as error:
        return f"crash: the parser died with exit code {error.exitcode}"
    return None


def _by_type(jobs: Sequence[FileJob]) -> list[FileJob]:
    """Documents first, so that few workers load what reads these: the model of languages alone takes 0.4 s."""
    return sorted(jobs, key=lambda job: job.source_type != _DOCUMENT)


def _batches(jobs: Sequence[FileJob]) -> Iterator[list[FileJob]]:
    batch: list[FileJob] = []
    size = 0
    for job in jobs:
        is_full = size + job.size > _BATCH_BYTES or len(batch) == _BATCH_FILES
        if batch and (is_full or job.patience > 1 or batch[-1].patience > 1):
            yield batch
            batch, size = [], 0
        batch.append(job)
        size += job.size
    if batch:
        yield batch


def _workers_for(size: int) -> int:
    if size < _BYTES_WORTH_A_WORKER:
        return 1
    return min(_MOST_WORKERS, processors())


@contextmanager
def _pool(workers: int) -> "Iterator[ProcessPool]":
    """Workers stay for the next change; those for much until `release`, since each holds about 150 MiB.

    One that still has batches of a run that failed is let go, too: it would work them off before those of the next.
    Cancelling them takes longer yet, since pebble has sent them ahead, and ends the worker anew for each.
    """
    with _changing:
        count = min((count for count in _waiting if count >= workers and _is_active(count)), default=0)
        pool = _waiting.pop(count) if count else _spawn(workers)
    is_kept = False
    try:
        yield pool
        is_kept = True
    finally:
        if is_kept:
            with _changing:
                _keep(count or workers, pool)
        else:
            _close(pool)


def _is_active(workers: int) -> bool:
    """Whether a pool of this size waits, and is not broken."""
    return workers in _waiting and bool(_waiting[workers].active)


def _keep(workers: int, pool: "ProcessPool") -> None:
    """Let a pool wait until it is needed, or this process ends; where another one waits, it is not needed."""
    if _is_active(workers):
        _close(pool)
        return
    _waiting[workers] = pool


def release() -> None:
    """End the workers that wait, but for one."""
    with _changing:
        for count in [count for count in _waiting if count > 1]:
            _close(_waiting.pop(count))


def _close_waiting() -> None:
    with _changing:
        while _waiting:
            _close(_waiting.popitem()[1])


def _spawn(workers: int) -> "ProcessPool":
    """Start workers that Ctrl-C in their terminal does not reach, from their first instruction: we end them.

    Pebble lets them ignore the signal, but only once they have imported all that they need. An interrupt waits until
    they are started, since one whose parent goes away meanwhile ends with a traceback.
    """
    from pebble import ProcessPool

    # Spawned, not forked: the parent may have lancedb's threads.
    pool = ProcessPool(max_workers=workers, context=_Context(), initializer=_start_worker)
    try:
        with ThreadPoolExecutor(1) as starter:  # Python interrupts the main thread alone
            starter.submit(_start, pool).result()
    except BaseException:
        _close(pool)
        raise
    # Not by atexit: a run that Dagster launched is itself a process of multiprocessing, which first waits for its
    # children, and these would wait for work.
    Finalize(None, _close_waiting, exitpriority=_BEFORE_CHILDREN_ARE_WAITED_FOR)
    return pool


def _start(pool: "ProcessPool") -> None:
    """Start a pool with SIGINT blocked, as the processes and threads that this one starts inherit it."""
    with out_of_reach():
        if not pool.active:  # which starts it
            raise WorkerError("the processes that parse files cannot be started")


def _start_worker() -> None:
    """Keep a worker to its one core: the tokenizer would start a thread a core in each of them."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


def _close(pool: "ProcessPool") -> None:
    pool.stop()  # type: ignore[no-untyped-call]  # pebble leaves this one method untyped
    pool.join()
