"""Log of a domain: acknowledged records are on disk, and the next read of any process sees them.

Each process appends to its own segment, with one sync for all waiting threads. Nothing is acknowledged before it is
synced. After a failed write, the process starts a new segment, because a reader may have seen the data that was rolled
back.

Writers share a lock during each write. Sealing and removing segments needs the exclusive lock. Readers take no lock,
and keep no state except offsets.
"""

import os
import stat
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

from docindex_dagster.core.errors import DocindexError, LogError
from docindex_dagster.core.files import reporting_full_disk
from docindex_dagster.core.layout import Layout
from docindex_dagster.memory import domains
from docindex_dagster.memory.message import (
    Entry,
    Forgettable,
    Offsets,
    Position,
    Record,
    Tombstone,
    as_payload,
    as_record,
)
from docindex_dagster.memory.segments import HEADER, Segments, decode, encode, sync_data

NOTHING = Offsets()
_SEGMENT_BYTES = 16 << 20


@dataclass(slots=True)
class Segment:
    """Segment that only this process appends to."""

    segments: Segments
    name: str
    descriptor: int
    size: int = 0

    @classmethod
    def create(cls, segments: Segments) -> "Segment":
        """Create a segment; its name is synced with the first write."""
        return cls(segments, *segments.create())

    def is_open(self) -> bool:
        """Return whether the segment accepts appends, having been neither sealed nor removed."""
        found = os.fstat(self.descriptor)
        return found.st_nlink > 0 and bool(found.st_mode & stat.S_IWUSR)

    def append(self, data: Sequence[bytes]) -> list[Position]:
        """Write frames and sync them, or roll back the write."""
        is_new = not self.size
        try:
            written = b"".join([HEADER, *data] if is_new else data)
            self._write(written)
            sync_data(self.descriptor)
            if is_new:
                self.segments.sync_names(self.name.partition("/")[0])
        except BaseException:
            self._roll_back()
            raise
        ends = list(accumulate(map(len, data), initial=self.size + len(written) - sum(map(len, data))))
        self.size = ends[-1]
        return [Position(self.name, *each) for each in pairwise(ends)]

    def close(self) -> None:
        """Close the file, leaving the segment as it is."""
        os.close(self.descriptor)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self.descriptor, view) :]

    def _roll_back(self) -> None:
        with suppress(OSError):
            if self.size:
                os.ftruncate(self.descriptor, self.size)
            else:
                self.segments.path(self.name).unlink()


@dataclass(slots=True)
class _Batch:
    """Records of one thread that wait to be written."""

    records: list[Record]
    data: list[bytes]
    positions: list[Position] | None = None
    error: BaseException | None = None


@dataclass(slots=True)
class _ProcessState:
    """State of a process for a log. Forked children start with a new state."""

    process: int = field(default_factory=os.getpid)
    queue: threading.Lock = field(default_factory=threading.Lock)
    commit: threading.Lock = field(default_factory=threading.Lock)
    waiting: list[_Batch] = field(default_factory=list)
    segment: Segment | None = None
    last: int = 0  # time of the last record, in microseconds


class _Writer:
    """Writer that appends to a log, from any thread."""

    def __init__(self, segments: Segments, segment_bytes: int = _SEGMENT_BYTES) -> None:
        self._segments = segments
        self._segment_bytes = segment_bytes
        self._state = _ProcessState()

    def append(self, records: Sequence[Record]) -> list[Entry]:
        """Write records together; they are on disk when this returns. Records without a time get increasing times.

        Raises:
            FullDiskError: The disk is full.
            LogError: The records cannot be written.
        """
        state = self._own_state()
        with state.queue:
            batch = self._batch(state, records)
            state.waiting.append(batch)
        with state.commit:
            if batch.positions is None and batch.error is None:
                with state.queue:
                    batches, state.waiting = state.waiting, []
                if batches:
                    self._commit(state, batches)
        if batch.positions is None:
            raise _copied_error(batch.error)
        return [Entry(record, place) for record, place in zip(batch.records, batch.positions, strict=True)]

    def close(self) -> None:
        """Make the next record start a new segment."""
        state = self._own_state()
        with state.commit:
            _close_segment(state)

    def _own_state(self) -> _ProcessState:
        if self._state.process != os.getpid():
            self._state = (
                _ProcessState()
            )  # the parent process uses the segment, and its threads may have held the locks
        return self._state

    @staticmethod
    def _batch(state: _ProcessState, records: Sequence[Record]) -> _Batch:
        stamped: list[Record] = []
        for record in records:
            if not record.at:
                state.last = max(time.time_ns() // 1000, state.last + 1)
            stamped.append(record if record.at else replace(record, at=state.last))
        return _Batch(stamped, [encode(as_payload(record)) for record in stamped])

    def _commit(self, state: _ProcessState, batches: Sequence[_Batch]) -> None:
        """Write the waiting batches, and set the positions of each, or the error of all."""
        try:
            with reporting_full_disk(self._segments.home.home), self._segments.appending():
                positions = iter(self._open(state).append([frame for batch in batches for frame in batch.data]))
        except BaseException as error:
            _close_segment(state)
            for batch in batches:
                batch.error = error
            if not isinstance(error, Exception):  # such as an interrupt, which must end this thread
                raise
            return
        for batch in batches:
            batch.positions = [next(positions) for _ in batch.data]

    def _open(self, state: _ProcessState) -> Segment:
        """Return the segment to append to. The caller holds the lock that prevents removals."""
        segment = state.segment
        if segment is not None and (segment.size >= self._segment_bytes or not segment.is_open()):
            _close_segment(state)
        if state.segment is None:
            state.segment = Segment.create(self._segments)
        return state.segment


def _close_segment(state: _ProcessState) -> None:
    segment, state.segment = state.segment, None
    if segment is not None:
        segment.close()


def _copied_error(error: BaseException | None) -> Exception:
    """Return a separate error object, because several threads may wait for one write."""
    if isinstance(error, DocindexError):
        return type(error)(*error.args)
    return LogError(f"cannot write the log, so nothing was acknowledged: {error or 'the write was interrupted'}")


@dataclass(frozen=True, slots=True)
class Flaw:
    """Bytes of a segment that are not a record."""

    position: Position
    is_torn: bool  # an incomplete write, which is not acknowledged, rather than damage


@dataclass(frozen=True, slots=True)
class Read:
    """Records added to a log since some offsets."""

    entries: tuple[Entry, ...]  # by time, then by id
    offsets: Offsets  # where the next read continues
    flaws: tuple[Flaw, ...] = ()


class Log:
    """Log of a domain. A process needs one object per log, shared by all its threads."""

    def __init__(self, home: Layout, *, segment_bytes: int = _SEGMENT_BYTES) -> None:
        """Open the log of the domain with this home; files are created by the first write."""
        self.home = home
        self._segments = Segments(home)
        self._writer = _Writer(self._segments, segment_bytes)

    def append(self, records: Sequence[Record]) -> list[Entry]:
        """Write records contiguously; they are on disk when this returns.

        Records without a time get one that is later than all times this object assigned before.

        Raises:
            FullDiskError: The disk is full; nothing is acknowledged.
            LogError: The records cannot be written; nothing is acknowledged.
        """
        return self._writer.append(records) if records else []

    def forget(self, what: Forgettable, value: str = "") -> Entry:
        """Write a tombstone that covers everything now in the log, and everything folded from it before.

        Raises:
            FullDiskError: The disk is full.
            LogError: The tombstone cannot be written.
        """
        [entry] = self.append([Tombstone(what, value, Offsets(self._segments.sizes()))])
        return entry

    def read(self, since: Offsets = NOTHING, until: Offsets | None = None) -> Read:
        """Return all records between two offsets; they may be visible before they are acknowledged.

        Raises:
            LogError: A later version of docindex wrote the log, or its folder is a symbolic link.
        """
        while True:
            try:
                return self._read(since, until)
            except FileNotFoundError:  # a segment was removed during the read
                continue

    def cut(self) -> Offsets:
        """Return a consistent state of the log: for each record, it has all that were acknowledged before that one.

        Seal its segments, so that they can be removed once they are folded.

        Raises:
            LogError: The folder is a symbolic link.
        """
        if self._segments.folder() is None:
            return NOTHING
        with self._segments.alone("sealing the log"):
            return Offsets(self._segments.seal())

    def remove(self, folded: Offsets) -> list[str]:
        """Remove the segments that some offsets cover completely, and return their names.

        Raises:
            LogError: The folder is a symbolic link.
        """
        if self._segments.folder() is None:
            return []
        with self._segments.alone("removing folded segments"):
            covered = [segment for segment, size in self._segments.sizes().items() if size <= folded.end(segment)]
            self._segments.remove(covered)
            return covered

    def close(self) -> None:
        """Make the next record start a new segment."""
        self._writer.close()

    def _read(self, since: Offsets, until: Offsets | None) -> Read:
        entries: list[Entry] = []
        flaws: list[Flaw] = []
        ends: dict[str, int] = {}
        for segment, size in self._segments.sizes().items():
            start, end = since.end(segment), size if until is None else min(size, until.end(segment))
            ends[segment] = start
            if end <= start:
                continue
            decoded = decode(self._segments.read(segment, start, end), start)
            ends[segment] = decoded.end
            flaws += [Flaw(Position(segment, flaw.start, flaw.end), flaw.is_torn) for flaw in decoded.flaws]
            for frame in decoded.frames:
                position = Position(segment, frame.start, frame.end)
                try:
                    entries.append(Entry(as_record(frame.payload), position))
                except ValueError:
                    flaws.append(Flaw(position, is_torn=False))
        entries.sort(key=lambda entry: entry.order)
        return Read(tuple(entries), Offsets(ends), tuple(flaws))


def open_log(layout: Layout, domain: str) -> Log:
    """Return the log of a domain, given the home of the project.

    Raises:
        DomainError: The key is invalid.
    """
    return Log(domains.home(layout, domain))
