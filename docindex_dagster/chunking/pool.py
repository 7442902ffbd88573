"""Parsing workers: spawned, reused across files, and replaced when a file makes them crash or hang."""

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
from docindex_dagster.core.child_process import shielded_from_interrupts
from docindex_dagster.core.errors import WorkerError
from docindex_dagster.core.platforms import processors

if TYPE_CHECKING:
    from pebble import ProcessPool

# A batch is large enough to hide the cost of a message and small enough to parse well within the timeout.
_BATCH_BYTES = 256 << 10
_BATCH_FILES = 64
# For less text, a second worker takes longer to start than it saves.
_BYTES_WORTH_A_WORKER = 512 << 10
_MAX_WORKERS = 4
_DOCUMENT = "doc"
_GUARD = (
    'a script that indexes must do so below `if __name__ == "__main__":`, because each of these processes imports it'
)
_BEFORE_JOINING_CHILDREN = 10  # any priority from 0
# Idle pools by number of workers, shared by all threads.
_idle_pools: "dict[int, ProcessPool]" = {}
_pools_lock = Lock()


class _Worker(SpawnProcess):
    """A process that imports nothing from its working folder, also if pebble starts it in the place of another."""

    def start(self) -> None:
        """Start the process."""
        with shielded_from_interrupts():
            super().start()


class _Context(SpawnContext):
    Process = _Worker


def check_main_guard() -> None:
    """Check that this process is not a worker that reruns its parent's script, and would wait for the parent.

    Raises:
        WorkerError: It is.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # multiprocessing uses the same check
        raise WorkerError(f"a process meant to parse files tried to index instead: {_GUARD}")


def start_ahead() -> None:
    """Start the worker for a small change in the background, unless one is already running."""
    Thread(target=_start_idle_worker, name="start of a parsing worker", daemon=True).start()


def _start_idle_worker() -> None:
    # A caller that needs a worker retries and reports the error. RuntimeError: this process is exiting.
    with suppress(WorkerError, RuntimeError), _pools_lock:
        if not any(map(_is_active, _idle_pools)):
            pool = _spawn(1)
            _keep(1, pool)
            pool.schedule(_load)


def chunk_in_workers(
    jobs: Sequence[FileJob], options: ChunkOptions, *, workers: int, timeout_s: float
) -> Iterator[tuple[int, ChunkedFiles]]:
    """Chunk files in workers; as batches finish, yield the number of files in each and their result.

    A file whose worker crashes or exceeds `timeout_s` is cut as text, with the reason in `fallback`.

    Raises:
        WorkerError: No worker can be started.
    """
    if not jobs:
        return
    with _pool(workers or _workers_for(sum(job.size for job in jobs))) as pool:
        pending = [(batch, _schedule(pool, batch, options, timeout_s)) for batch in _batches(_documents_first(jobs))]
        for batch, future in pending:
            failure = _failure(future, timeout_s * batch[0].patience)
            if failure is None:
                yield len(batch), future.result()
                continue
            for job in batch:
                alone = len(batch) > 1
                yield 1, _chunk_alone(pool, job, options, timeout_s) if alone else _chunk([job], options, failure)


def _chunk(jobs: Sequence[FileJob], options: ChunkOptions, failure: str | None = None) -> ChunkedFiles:
    """Chunk files in a worker, or, given a failure, by lines in this process."""
    from docindex_dagster.chunking.worker import chunk_files

    return chunk_files(jobs, options, failure)


def _load() -> None:
    """Load what a worker needs ahead of its first file."""
    from docindex_dagster.chunking.worker import load_grammars

    load_grammars()


def _schedule(
    pool: "ProcessPool", batch: Sequence[FileJob], options: ChunkOptions, timeout_s: float
) -> "Future[ChunkedFiles]":
    found: Future[ChunkedFiles] = pool.schedule(_chunk, (batch, options), timeout=timeout_s * batch[0].patience)
    return found


def _chunk_alone(pool: "ProcessPool", job: FileJob, options: ChunkOptions, timeout_s: float) -> ChunkedFiles:
    """Chunk one file of a failed batch on its own, so that only the file at fault loses its structure."""
    future = pool.schedule(_chunk, ([job], options), timeout=timeout_s)
    failure = _failure(future, timeout_s)
    return future.result() if failure is None else _chunk([job], options, failure)


def _failure(future: "Future[ChunkedFiles]", timeout_s: float) -> str | None:
    from pebble import ProcessExpired

    try:
        future.result()
    except BrokenProcessPool as error:
        raise WorkerError(f"the processes that parse files exit as soon as they start; {_GUARD}") from error
    except TimeoutError:
        return f"time-out: not parsed within {timeout_s:g} s"
    except ProcessExpired as error:
        return f"crash: the parser died with exit code {error.exitcode}"
    return None


def _documents_first(jobs: Sequence[FileJob]) -> list[FileJob]:
    """Put documents first, so that few workers load what reads them: the language model alone takes 0.4 s."""
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
    return min(_MAX_WORKERS, processors())


@contextmanager
def _pool(workers: int) -> "Iterator[ProcessPool]":
    """Lend a pool that is kept for the next change; larger pools stay until `release`, as a worker uses about 150 MiB.

    If a run fails, its pool is closed, because the workers would finish the old batches before those of the next run.
    Cancelling the batches takes longer: pebble has already sent them, and restarts the worker for each.
    """
    with _pools_lock:
        count = min((count for count in _idle_pools if count >= workers and _is_active(count)), default=0)
        pool = _idle_pools.pop(count) if count else _spawn(workers)
    is_kept = False
    try:
        yield pool
        is_kept = True
    finally:
        if is_kept:
            with _pools_lock:
                _keep(count or workers, pool)
        else:
            _close(pool)


def _is_active(workers: int) -> bool:
    """Return whether an idle pool of this size exists and is not broken."""
    return workers in _idle_pools and bool(_idle_pools[workers].active)


def _keep(workers: int, pool: "ProcessPool") -> None:
    """Keep a pool idle until it is needed or this process ends; close it if there already is an idle pool."""
    if _is_active(workers):
        _close(pool)
        return
    _idle_pools[workers] = pool


def release() -> None:
    """Stop all idle workers except one."""
    with _pools_lock:
        for count in [count for count in _idle_pools if count > 1]:
            _close(_idle_pools.pop(count))


def _close_idle_pools() -> None:
    with _pools_lock:
        while _idle_pools:
            _close(_idle_pools.popitem()[1])


def _spawn(workers: int) -> "ProcessPool":
    """Start workers that Ctrl-C in the terminal does not reach, from their first instruction on; we stop them.

    Pebble makes workers ignore the signal only after they have imported everything. An interrupt waits until the
    workers have started, because a starting worker whose parent exits prints a traceback.
    """
    from pebble import ProcessPool

    # Spawned, not forked: the parent may have lancedb's threads.
    pool = ProcessPool(max_workers=workers, context=_Context(), initializer=_start_worker)
    try:
        with ThreadPoolExecutor(1) as starter:  # Python only interrupts the main thread
            starter.submit(_start, pool).result()
    except BaseException:
        _close(pool)
        raise
    # Not atexit: a run that Dagster launched is itself a multiprocessing child. It waits for its children first, and
    # these would wait for work.
    Finalize(None, _close_idle_pools, exitpriority=_BEFORE_JOINING_CHILDREN)
    return pool


def _start(pool: "ProcessPool") -> None:
    """Start a pool with SIGINT blocked, which its processes and threads inherit."""
    with shielded_from_interrupts():
        if not pool.active:  # reading `active` starts the pool
            raise WorkerError("cannot start the processes that parse files")


def _start_worker() -> None:
    """Limit a worker to one core: otherwise the tokenizer starts one thread per core in each worker."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


def _close(pool: "ProcessPool") -> None:
    pool.stop()  # type: ignore[no-untyped-call]  # pebble leaves only this method untyped
    pool.join()
