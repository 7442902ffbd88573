"""Parsing workers: spawned, reused for file after file, and replaced when a file crashes or hangs them."""

import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.util import Finalize
from typing import TYPE_CHECKING

from docindex_dagster.chunking.chunker import ChunkOptions
from docindex_dagster.chunking.worker import ChunkedFiles, FileJob, chunk_files
from docindex_dagster.core.errors import WorkerError

if TYPE_CHECKING:
    from pebble import ProcessPool

# A batch is large enough to hide the cost of a message and small enough to parse well within the time-out.
_BATCH_BYTES = 256 << 10
_BATCH_FILES = 64
# Below this a second worker takes longer to start than it saves.
_BYTES_WORTH_A_WORKER = 512 << 10
_MOST_WORKERS = 4
_GUARD = 'a script that indexes must do so below `if __name__ == "__main__":`, since each of these processes imports it'
_BEFORE_CHILDREN_ARE_WAITED_FOR = 10  # any priority from 0
_lasting: "list[ProcessPool]" = []


def check_main_guard() -> None:
    """Find out whether this process is a worker that runs its parent's script from the top, and would wait for it.

    Raises:
        WorkerError: it is.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # as multiprocessing itself asks
        raise WorkerError(f"a process that is to parse files indexes instead: {_GUARD}")


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
        pending = [(batch, _scheduled(pool, batch, options, timeout_s)) for batch in _batches(jobs)]
        for batch, future in pending:
            failure = _failure(future, timeout_s * batch[0].patience)
            if failure is None:
                yield len(batch), future.result()
                continue
            for job in batch:
                alone = len(batch) > 1
                yield 1, _alone(pool, job, options, timeout_s) if alone else chunk_files([job], options, failure)


def _scheduled(
    pool: "ProcessPool", batch: Sequence[FileJob], options: ChunkOptions, timeout_s: float
) -> "Future[ChunkedFiles]":
    found: Future[ChunkedFiles] = pool.schedule(chunk_files, (batch, options), timeout=timeout_s * batch[0].patience)
    return found


def _alone(pool: "ProcessPool", job: FileJob, options: ChunkOptions, timeout_s: float) -> ChunkedFiles:
    """Cut one file of a batch that failed, so that only the file to blame loses its structure."""
    future = pool.schedule(chunk_files, ([job], options), timeout=timeout_s)
    failure = _failure(future, timeout_s)
    return future.result() if failure is None else chunk_files([job], options, failure)


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
    return min(_MOST_WORKERS, len(os.sched_getaffinity(0)))


@contextmanager
def _pool(workers: int) -> "Iterator[ProcessPool]":
    """One worker stays for the next small change; more of them are let go, since each holds about 150 MiB.

    One that still has batches of a run that failed is let go, too: it would work them off before those of the next.
    Cancelling them takes longer yet, since pebble has sent them ahead, and ends the worker anew for each.
    """
    pool = _lasting_worker() if workers == 1 else _spawn(workers)
    is_kept = False
    try:
        yield pool
        is_kept = workers == 1
    finally:
        if not is_kept:
            _close(pool)


def _lasting_worker() -> "ProcessPool":
    """The one worker of this process, replaced when it is broken."""
    if not _lasting or not _lasting[0].active:
        _lasting[:] = [_spawn(1)]
        # Not by atexit: a run that Dagster launched is itself a process of multiprocessing, which first waits for its
        # children, and this one would wait for work.
        Finalize(None, _close, args=_lasting, exitpriority=_BEFORE_CHILDREN_ARE_WAITED_FOR)
    return _lasting[0]


def _spawn(workers: int) -> "ProcessPool":
    """Start workers that Ctrl-C in their terminal does not reach, from their first instruction: we end them.

    Pebble lets them ignore the signal, but only once they have imported all that they need. An interrupt waits until
    they are started, since one whose parent goes away meanwhile ends with a traceback.
    """
    from pebble import ProcessPool

    # Spawned, not forked: the parent may have lancedb's threads.
    pool = ProcessPool(max_workers=workers, context=multiprocessing.get_context("spawn"), initializer=_start_worker)
    try:
        with ThreadPoolExecutor(1) as starter:  # Python interrupts the main thread alone
            starter.submit(_start, pool).result()
    except BaseException:
        _close(pool)
        raise
    return pool


def _start(pool: "ProcessPool") -> None:
    """Start a pool with SIGINT blocked, as the processes and threads that this one starts inherit it."""
    resource_tracker.ensure_running()  # it is started before the first worker, and unblocks the signal
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    if not pool.active:  # which starts it
        raise WorkerError("the processes that parse files cannot be started")


def _start_worker() -> None:
    """Keep a worker to its one core: the tokenizer would start a thread a core in each of them."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


def _close(pool: "ProcessPool") -> None:
    pool.stop()  # type: ignore[no-untyped-call]  # pebble leaves this one method untyped
    pool.join()
