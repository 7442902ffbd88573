"""The journal: runs that Dagster does not know yet, a file for each, which their processes write.

A process holds the kernel's lock on the file of its run. A file without an end that no process has locked belongs to a
run that was killed. Lines are appended and never changed; a line that a kill cut off is ignored.
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
from typing import Any

from docindex_dagster.core import locks
from docindex_dagster.core.confinement import open_file
from docindex_dagster.core.files import replacing
from docindex_dagster.core.layout import Layout
from docindex_dagster.runner import entries
from docindex_dagster.runner.entries import Begin, End, Entry, StageEntry, State
from docindex_dagster.status.source_status import NO_RUNS, Outcome, Runs

Report = Callable[[StageEntry], None]
"""Takes what a stage did."""
_BEGIN, _STAGE, _CANCEL, _END = "begin", "stage", "cancel", "end"
_STAGE_LINE = b'{"name": "stage"'
_OUTCOMES: Mapping[State, Outcome] = {
    State.SUCCEEDED: "succeeded",
    State.FAILED: "failed",
    State.LOST: "failed",
    State.CANCELED: "canceled",
    State.RUNNING: "running",
}
_SUFFIX, _NEW = ".jsonl", ".new"
_MOST_KEPT = 1000  # runs of a user who never starts Dagster
_LOST = "process {} of this run is gone"


@dataclass(frozen=True, slots=True)
class Writer:
    """Appends to the file of one run; threads share it."""

    _descriptor: int
    _lock: Lock

    def stage(self, entry: StageEntry) -> None:
        """Append what a stage did."""
        self._append(_STAGE, entries.stage_as_json(entry))

    def end(self, state: State, failures: tuple[str, ...] = ()) -> None:
        """Append how the run ended."""
        self._append(_END, asdict(End(state, time.time(), failures)))

    def _append(self, name: str, values: Mapping[str, Any]) -> None:
        # An own line first: the one before may have been cut off by a full disk.
        with self._lock, suppress(OSError):  # a run does not fail because it cannot be recorded
            _write(self._descriptor, b"\n" + _line(name, values))


@contextmanager
def writing(layout: Layout, begin: Begin) -> Iterator[Writer]:
    """Add a run to the journal; it counts as lost if its process is gone before the block wrote its end.

    Raises:
        OSError: the file cannot be written.
        LinkError: the home contains a symbolic link.
    """
    layout.journal.mkdir(exist_ok=True)
    path = layout.journal / f"{time.time_ns():020d}-{begin.run_id}{_NEW}"
    descriptor = open_file(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        _write(descriptor, _line(_BEGIN, asdict(begin)))
        path.rename(path.with_suffix(_SUFFIX))  # only now, so that readers see no run without its begin and its lock
        yield Writer(descriptor, Lock())
    finally:
        os.close(descriptor)


def runs(layout: Layout) -> Iterator[tuple[Path, Entry]]:
    """The runs of the journal with their files, oldest first. One that was killed has ended as lost."""
    for path in layout.entries(layout.journal):
        with suppress(FileNotFoundError):
            if path.suffix == _SUFFIX and (entry := _read(path)) is not None:
                yield path, entry


def stages(path: Path) -> dict[str, StageEntry]:
    """What the stages of the run in a file did, by their names."""
    return {values["stage"]: entries.stage_of(values) for name, values in _lines(path) if name == _STAGE}


def find(layout: Layout, run_id: str) -> Entry | None:
    """The run of an id, or None."""
    return next((entry for _, entry in runs(layout) if entry.begin.run_id == run_id), None)


def remove(path: Path) -> None:
    """Take a run out of the journal, once it is recorded elsewhere."""
    path.unlink(missing_ok=True)


def mark_cancelling(layout: Layout, run_id: str) -> None:
    """Note that a run is stopped on purpose: unless it succeeds, it was canceled."""
    for path, entry in runs(layout):
        if entry.begin.run_id == run_id:
            descriptor = open_file(path, os.O_WRONLY | os.O_APPEND)
            try:
                _write(descriptor, b"\n" + _line(_CANCEL, {}))
            finally:
                os.close(descriptor)


def forget(layout: Layout, source: str) -> None:
    """Take the runs of a source out of the journal that have ended."""
    for path, entry in runs(layout):
        if entry.begin.source == source and entry.end is not None:
            remove(path)


def drop_samples(layout: Layout) -> None:
    """Take the rows of sources out of the runs that have ended."""
    for path, entry in runs(layout):
        if entry.end is None:
            continue
        lines = [
            _line(name, entries.without_samples(values) if name == _STAGE else values) for name, values in _lines(path)
        ]
        with replacing(path, 0o600) as temporary:
            temporary.write_bytes(b"".join(lines))


def prune(layout: Layout) -> None:
    """Remove the oldest runs where there are too many, but for the newest one of each source, and unfinished files."""
    files = layout.entries(layout.journal)
    for path in files:
        if path.suffix == _NEW and locks.holder(path) is None:
            remove(path)
    if len(files) <= _MOST_KEPT:
        return
    found = [(path, entry.begin.source) for path, entry in runs(layout) if entry.end is not None]
    newest = {source: path for path, source in found}
    for path, source in found[: max(0, len(found) - _MOST_KEPT)]:
        if newest[source] != path:
            remove(path)


def outcomes(layout: Layout, recorded: Mapping[str, Runs] | None) -> dict[str, Runs] | None:
    """Return how the runs of each source ended, by Dagster's record and the journal; None where both are empty."""
    found = dict(recorded or {})
    for _, entry in runs(layout):  # none is recorded yet, so they are newer
        key = entry.begin.source
        found[key] = _later(found.get(key, NO_RUNS), entry)
    return found if found or recorded is not None else None


def _later(known: Runs, entry: Entry) -> Runs:
    known = replace(known, outcome=_OUTCOMES[entry.state], run_id=entry.begin.run_id)
    if entry.end is None or entry.state is State.CANCELED:
        return known
    if entry.state is not State.SUCCEEDED:
        return replace(known, failed_id=entry.begin.run_id, failure="; ".join(entry.end.failures))
    if not entry.looked_at_all:
        return known
    return replace(known, checked_at=entry.end.ended_at, failed_id=None, failure=None)


def _read(path: Path) -> Entry | None:
    """Return the run in a file, or None if the file is damaged."""
    is_gone = locks.holder(path) is None  # asked first: a process that ends meanwhile has written the end before
    begin: Begin | None = None
    end: End | None = None
    is_cancelled = False
    for name, values in _lines(path, without_stages=True):
        if name == _BEGIN:
            begin = entries.begin_of(values)
        elif name == _CANCEL:
            is_cancelled = True
        elif name == _END:
            end = entries.end_of(values)
    if begin is None:
        return None
    if end is None and is_gone:
        end = End(State.LOST, path.stat().st_mtime, (_LOST.format(begin.pid),))
    if end is not None and is_cancelled and end.state is not State.SUCCEEDED:
        end = replace(end, state=State.CANCELED)
    return Entry(begin, end)


def _lines(path: Path, *, without_stages: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the lines of a file; those of stages hold tables, which most readers do not need."""
    for line in path.read_bytes().split(b"\n"):
        if without_stages and line.startswith(_STAGE_LINE):
            continue
        with suppress(ValueError, KeyError, TypeError):
            values = json.loads(line)
            yield values["name"], values["data"]


def _line(name: str, values: Mapping[str, Any]) -> bytes:
    return json.dumps({"name": name, "data": values}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
