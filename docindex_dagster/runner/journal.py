"""Journal of all runs from their request on, with one file per run, which its process writes.

A process holds a `flock` on the file of its run. An unlocked file belongs to a run that is queued, has ended, or was
killed; its lines tell which. Lines are appended and never modified. A truncated line of a killed process is ignored.

Once Dagster has recorded a run, it is removed from the journal. Runs requested through `docindex serve` are then kept
without the reports of their stages (`.settled`), so that clients can still see the result.
"""

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO

from docindex_dagster.core import locks
from docindex_dagster.core.confinement import open_file
from docindex_dagster.core.files import atomic_write, sync
from docindex_dagster.core.layout import Layout
from docindex_dagster.runner import entries
from docindex_dagster.runner.entries import End, Entry, Run, StageEntry, State
from docindex_dagster.status.source_status import NO_RUNS, Outcome, Runs

Report = Callable[[StageEntry], None]
"""Callback that takes the result of a stage."""
PROGRESS, WAITING, WARNING = "progress", "waiting", "warning"
BEGIN, SUMMARY = "begin", "summary"
_RUN, _START, _PROCESS, _STAGE, _CANCEL, _END = "run", "start", "process", "stage", "cancel", "end"
_OUTCOMES: Mapping[State, Outcome] = {
    State.SUCCEEDED: "succeeded",
    State.FAILED: "failed",
    State.LOST: "failed",
    State.CANCELED: "canceled",
    State.RUNNING: "running",
    State.CANCELLING: "running",
}
_SUFFIX, _NEW, _SETTLED, _LOG = ".jsonl", ".new", ".settled", ".log"
_MAX_RUNS = 1000  # unrecorded ones, for users who never start Dagster, and settled ones
_SETTLED_TTL_S = 7 * 24 * 3600.0
_KEY_TTL_S = 24 * 3600.0
_MAX_ATTEMPTS = 3
_TAIL_BYTES = 4000


@dataclass(frozen=True, slots=True)
class Writer:
    """Thread-safe writer that appends to the file of one run."""

    run: Run
    _descriptor: int
    _lock: Lock

    def begin(self, *, has_stages: bool) -> None:
        """Record that this process starts the run, before it does anything else.

        Raises:
            OSError: The file cannot be written.
        """
        _write(self._descriptor, _begin_line(self.run, has_stages=has_stages))
        os.fsync(self._descriptor)

    def stage(self, entry: StageEntry) -> None:
        """Append the result of a stage."""
        self.add(_STAGE, entry)

    def end(self, state: State, failures: tuple[str, ...] = ()) -> None:
        """Append the end of the run; only the first end counts."""
        self.add(_END, asdict(End(state, time.time(), failures)))

    def add(self, name: str, values: Mapping[str, Any] | StageEntry) -> None:
        """Append a line. A run does not fail if it cannot be recorded."""
        with self._lock, suppress(OSError):
            _write(self._descriptor, _line(name, values))


@contextmanager
def writing(layout: Layout, run: Run) -> Iterator[Writer]:
    """Add a run to the journal; it counts as lost if its process dies before the block writes its end.

    Raises:
        OSError: The file cannot be written.
        LinkError: The home contains a symlink.
    """
    with _added(layout, run, _begin_line(run, has_stages=True)) as (_, descriptor):
        yield Writer(run, descriptor, Lock())


def add_queued(layout: Layout, run: Run) -> None:
    """Add a queued run to the journal durably: it survives a power failure.

    Raises:
        OSError: The file cannot be written.
        LinkError: The home contains a symlink.
    """
    with _added(layout, run) as (path, _):
        sync([path, layout.journal])


@contextmanager
def _added(layout: Layout, run: Run, begin: bytes = b"") -> Iterator[tuple[Path, int]]:
    layout.journal.mkdir(exist_ok=True)
    path = layout.journal / f"{time.time_ns():020d}-{run.run_id}{_NEW}"
    descriptor = open_file(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        _write(descriptor, _line(_RUN, asdict(run)) + begin)
        path = path.rename(path.with_suffix(_SUFFIX))  # only now, so that readers never see a partial file
        yield path, descriptor
    finally:
        os.close(descriptor)


@contextmanager
def starting(path: Path) -> Iterator[tuple[int, Callable[[int], None]]]:
    """Lock the file of a queued run, for a process that the block starts and that inherits the descriptor.

    Yields:
        The descriptor, and a function that records the ID of the process.

    Raises:
        OSError: The file cannot be written.
    """
    descriptor = open_file(path, os.O_RDWR | os.O_APPEND)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        _write(descriptor, _line(_START, {"at": time.time()}))
        yield descriptor, lambda pid: _write(descriptor, _line(_PROCESS, {"pid": pid}))
    finally:
        os.close(descriptor)


def inherited_writer(descriptor: int) -> Writer:
    """Return the writer for the run that this process was started for; its child processes do not inherit the lock."""
    os.set_inheritable(descriptor, False)  # noqa: FBT003 positional only
    first = next(lines(os.pread(descriptor, os.fstat(descriptor).st_size, 0)))
    return Writer(entries.parse_run(first[1]), descriptor, Lock())


def cancel(path: Path) -> None:
    """Record that a run is being cancelled: unless it still succeeds, it ends as canceled.

    Raises:
        OSError: The file cannot be written.
    """
    descriptor = open_file(path, os.O_WRONLY | os.O_APPEND)
    try:
        _write(descriptor, _line(_CANCEL, {}))
    finally:
        os.close(descriptor)


def files(layout: Layout) -> list[Path]:
    """Return the files of all runs, including settled ones, oldest first."""
    found = {path.stem: path for path in layout.entries(layout.journal) if path.suffix in {_SUFFIX, _SETTLED}}
    return list(found.values())


def log_of(path: Path) -> Path:
    """Return the file for the output of a run that `docindex serve` started."""
    return path.with_suffix(_LOG)


def runs(layout: Layout) -> Iterator[tuple[Path, Entry]]:
    """Yield the runs that are not settled, with their files, oldest first."""
    for path in files(layout):
        if path.suffix == _SUFFIX and (entry := read(path)) is not None:
            yield path, entry


def read(path: Path) -> Entry | None:
    """Return the run in a file, or None if the file is gone or damaged."""
    entry = _read(path)
    if entry is not None and entry.attempts and not entry.is_alive:
        return _read(path)  # its process may have started between the check of the lock and the read
    return entry


def _read(path: Path) -> Entry | None:
    is_alive = locks.holder(path) is not None  # checked first: a process that ends later has already written its end
    entry: Entry | None = None
    with suppress(FileNotFoundError, KeyError, TypeError, ValueError), open_run(path) as file:
        for name, values in lines(file.read(), skipped=(_STAGE, PROGRESS, WAITING, WARNING)):
            if name == _RUN:
                entry = Entry(entries.parse_run(values), is_alive)
            elif entry is not None:
                _add(entry, name, values)
        return None if entry is None else _completed(entry, path, os.fstat(file.fileno()).st_mtime)
    return None


def open_run(path: Path) -> BinaryIO:
    """Open the file of a run, even if the run has been settled since its file was listed.

    Raises:
        FileNotFoundError: The file no longer exists.
    """
    try:
        return path.open("rb")
    except FileNotFoundError:
        return path.with_suffix(_SETTLED).open("rb")


def _add(entry: Entry, name: str, values: Mapping[str, Any]) -> None:
    if name == _START:
        entry.attempts, entry.started_at, entry.pid = entry.attempts + 1, values["at"], 0
    elif name == _PROCESS:
        entry.pid = values["pid"]
    elif name == BEGIN:
        entry.pid, entry.has_begun, entry.has_stages = values["pid"], True, values["has_stages"]
        entry.started_at = entry.started_at or values["at"]
    elif name == _CANCEL:
        entry.is_cancelled = True
    elif name == SUMMARY:
        entry.summary = dict(values)
    elif name == _END and entry.end is None:
        entry.end = entries.parse_end(values)


def _completed(entry: Entry, path: Path, changed_at: float) -> Entry:
    """Derive the end of a run whose process died without writing it."""
    if entry.end is None and not entry.is_alive:
        entry.end = _presumed_end(entry, path, changed_at)
    elif entry.is_alive and entry.attempts:  # a job's process still maintains the stores after its run
        entry.end = None
    if entry.end is not None and entry.is_cancelled and entry.end.state is not State.SUCCEEDED:
        entry.end = replace(entry.end, state=State.CANCELED)
    return entry


def _presumed_end(entry: Entry, path: Path, changed_at: float) -> End | None:
    """Return the end of a run whose process is gone; None if the run is queued.

    A process records its start before it does anything. If it died before that, the run is queued again, but only a
    few times, since the cause may recur.
    """
    ended_at = max(changed_at, entry.started_at or entry.run.asked_at)
    if entry.has_begun:
        reason = f"its process died{_last_output(path)}"
        advice = "the existing index stays searchable, and the next run resumes from here"
        return End(State.LOST, ended_at, (f"{reason}; {advice}",))
    if entry.attempts >= _MAX_ATTEMPTS:
        reason = f"its process died {entry.attempts} times before the run started{_last_output(path)}"
        return End(State.FAILED, ended_at, (reason,))
    return End(State.CANCELED, ended_at) if entry.is_cancelled else None


def _last_output(path: Path) -> str:
    """Return the last line of output of a run's process, after a colon; empty without output."""
    try:
        with log_of(path).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            output = file.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return f": {output[-1]}" if output else ""


def stages(path: Path) -> dict[str, StageEntry]:
    """Return the results of the stages of a run, by stage name."""
    found = (values for name, values in lines(path.read_bytes()) if name == _STAGE)
    return {values["stage"]: entries.parse_stage(values) for values in found}


def settle(path: Path, entry: Entry) -> None:
    """Remove a finished run from the journal; keep one requested through `serve`, without the reports of its stages."""
    if entry.run.launched_by != "serve":
        _remove(path)
        return
    with suppress(FileNotFoundError):  # another process settled it
        _rewrite(path, entry, lambda name, values: None if name == _STAGE else values)
        path.rename(path.with_suffix(_SETTLED))


def forget(layout: Layout, source: str) -> None:
    """Settle the finished runs of a source."""
    for path, entry in runs(layout):
        if entry.run.source == source and entry.end is not None:
            settle(path, entry)


def drop_samples(layout: Layout) -> None:
    """Remove sample rows of sources from the finished runs."""
    for path, entry in runs(layout):
        if entry.end is not None:
            _rewrite(path, entry, lambda name, values: entries.without_samples(values) if name == _STAGE else values)


def _rewrite(path: Path, entry: Entry, change: Callable[[str, dict[str, Any]], dict[str, Any] | None]) -> None:
    """Rewrite the lines of a finished run, and add its end, which can no longer be derived from the file's mtime."""
    found = ((name, change(name, values)) for name, values in lines(path.read_bytes()) if name != _END)
    kept = [_line(name, values) for name, values in found if values is not None]
    end = [] if entry.end is None else [_line(_END, asdict(entry.end))]
    with atomic_write(path, 0o600) as temporary:
        temporary.write_bytes(b"".join([*kept, *end]))


def prune(layout: Layout) -> None:
    """Settle the oldest runs if there are too many, except the newest of each source; delete expired settled runs."""
    found = layout.entries(layout.journal)
    settled = [path for path in found if path.suffix == _SETTLED]
    for rank, path in enumerate(reversed(settled)):
        with suppress(FileNotFoundError):  # another process prunes concurrently
            if not _is_kept(path, rank):
                _remove(path)
    for path in found:
        if path.suffix == _NEW and locks.holder(path) is None:
            _remove(path)
    if sum(path.suffix == _SUFFIX for path in found) <= _MAX_RUNS:
        return
    ended = [(path, entry) for path, entry in runs(layout) if entry.end is not None]
    newest = {entry.run.source: path for path, entry in ended}
    for path, entry in ended[: max(0, len(ended) - _MAX_RUNS)]:
        if newest[entry.run.source] != path:
            settle(path, entry)


def _is_kept(path: Path, rank: int) -> bool:
    """Return whether to keep a settled run; `rank` is its position among them, newest first."""
    if rank < _MAX_RUNS and time.time() - path.stat().st_mtime < _SETTLED_TTL_S:
        return True
    entry = read(path)
    return entry is not None and holds_key(entry.run)


def holds_key(run: Run) -> bool:
    """Return whether the idempotency key of a run is still valid."""
    return run.key is not None and time.time() - run.asked_at < _KEY_TTL_S


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    log_of(path).unlink(missing_ok=True)


def outcomes(layout: Layout, recorded: Mapping[str, Runs] | None) -> dict[str, Runs] | None:
    """Return the run outcomes of each source, from Dagster's storage and the journal; None if both are empty."""
    found = dict(recorded or {})
    for _, entry in runs(layout):  # unrecorded, so newer
        if entry.has_stages:
            key = entry.run.source
            found[key] = _later(found.get(key, NO_RUNS), entry)
    return found if found or recorded is not None else None


def _later(known: Runs, entry: Entry) -> Runs:
    known = replace(known, outcome=_OUTCOMES[entry.state], run_id=entry.run.run_id)
    if entry.end is None or entry.state is State.CANCELED:
        return known
    if entry.state is not State.SUCCEEDED:
        return replace(known, failed_id=entry.run.run_id, failure="; ".join(entry.end.failures))
    if entry.run.only:  # it did not check all files
        return known
    return replace(known, checked_at=entry.end.ended_at, failed_id=None, failure=None)


def lines(data: bytes, skipped: tuple[str, ...] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the lines of a file, except those with the `skipped` names, which can be long or numerous."""
    starts = tuple(f'{{"name": "{name}"'.encode() for name in skipped)
    for line in data.split(b"\n"):
        if line.startswith(starts):
            continue
        with suppress(ValueError, KeyError, TypeError):
            values = json.loads(line)
            yield values["name"], values["data"]


def _begin_line(run: Run, *, has_stages: bool) -> bytes:
    values = {"run_id": run.run_id, "pid": os.getpid(), "at": time.time(), "has_stages": has_stages}
    return _line(BEGIN, values)


def _line(name: str, values: Mapping[str, Any] | StageEntry) -> bytes:
    # A leading newline, since a full disk may have truncated the previous line.
    text = json.dumps({"name": name, "data": values}, ensure_ascii=False, default=entries.as_json)
    return b"\n" + text.encode("utf-8", "replace") + b"\n"


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
