"""The log of a domain: what is acknowledged is on the disk, and the next read of any process sees it.

Each process appends to its own segment, and syncs once for all threads that wait. Nothing is acknowledged before it is
synced. After a failed write, the process begins a new segment: a reader may have seen what was taken back.

Writers share a lock for the time of each write. Who seals or removes segments holds it alone. Readers take none, and
remember nothing but offsets.
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
    """A segment that this process appends to, and no other."""

    segments: Segments
    name: str
    descriptor: int
    size: int = 0

    @classmethod
    def create(cls, segments: Segments) -> "Segment":
        """Make one; its name is synced with the first write."""
        return cls(segments, *segments.create())

    def is_open(self) -> bool:
        """Whether more may be appended: it was neither sealed nor removed."""
        found = os.fstat(self.descriptor)
        return found.st_nlink > 0 and bool(found.st_mode & stat.S_IWUSR)

    def append(self, data: Sequence[bytes]) -> list[Position]:
        """Write frames and sync them, or take back what was written of them."""
        is_new = not self.size
        try:
            written = b"".join([HEADER, *data] if is_new else data)
            self._write(written)
            sync_data(self.descriptor)
            if is_new:
                self.segments.sync_names(self.name.partition("/")[0])
        except BaseException:
            self._take_back()
            raise
        ends = list(accumulate(map(len, data), initial=self.size + len(written) - sum(map(len, data))))
        self.size = ends[-1]
        return [Position(self.name, *each) for each in pairwise(ends)]

    def close(self) -> None:
        """Let the segment be as it is."""
        os.close(self.descriptor)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self.descriptor, view) :]

    def _take_back(self) -> None:
        with suppress(OSError):
            if self.size:
                os.ftruncate(self.descriptor, self.size)
            else:
                self.segments.path(self.name).unlink()


@dataclass(slots=True)
class _Batch:
    """What a thread waits for."""

    records: list[Record]
    data: list[bytes]
    positions: list[Position] | None = None
    error: BaseException | None = None


@dataclass(slots=True)
class _State:
    """What a process has of a log. A child that it forks begins with nothing."""

    process: int = field(default_factory=os.getpid)
    queue: threading.Lock = field(default_factory=threading.Lock)
    commit: threading.Lock = field(default_factory=threading.Lock)
    waiting: list[_Batch] = field(default_factory=list)
    segment: Segment | None = None
    last: int = 0  # microseconds; the time of the last record


class _Writer:
    """Appends to a log, from any thread."""

    def __init__(self, segments: Segments, segment_bytes: int = _SEGMENT_BYTES) -> None:
        self._segments = segments
        self._segment_bytes = segment_bytes
        self._state = _State()

    def append(self, records: Sequence[Record]) -> list[Entry]:
        """Write records, together; they are on the disk when it returns. Each without a time gets a later one.

        Raises:
            FullDiskError: there is no space for them.
            LogError: they cannot be written.
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
            raise _for_this_thread(batch.error)
        return [Entry(record, place) for record, place in zip(batch.records, batch.positions, strict=True)]

    def close(self) -> None:
        """Let the next record begin a segment."""
        state = self._own_state()
        with state.commit:
            _leave(state)

    def _own_state(self) -> _State:
        if self._state.process != os.getpid():
            self._state = _State()  # another process appends to the segment, and may hold the locks
        return self._state

    @staticmethod
    def _batch(state: _State, records: Sequence[Record]) -> _Batch:
        stamped: list[Record] = []
        for record in records:
            if not record.at:
                state.last = max(time.time_ns() // 1000, state.last + 1)
            stamped.append(record if record.at else replace(record, at=state.last))
        return _Batch(stamped, [encode(as_payload(record)) for record in stamped])

    def _commit(self, state: _State, batches: Sequence[_Batch]) -> None:
        """Write what threads wait for, and give each its positions, or all of them the error."""
        try:
            with reporting_full_disk(self._segments.home.home), self._segments.appending():
                positions = iter(self._open(state).append([frame for batch in batches for frame in batch.data]))
        except BaseException as error:
            _leave(state)
            for batch in batches:
                batch.error = error
            if not isinstance(error, Exception):  # this thread is to end
                raise
            return
        for batch in batches:
            batch.positions = [next(positions) for _ in batch.data]

    def _open(self, state: _State) -> Segment:
        """The segment to append to; under the lock that keeps removals out."""
        segment = state.segment
        if segment is not None and (segment.size >= self._segment_bytes or not segment.is_open()):
            _leave(state)
        if state.segment is None:
            state.segment = Segment.create(self._segments)
        return state.segment


def _leave(state: _State) -> None:
    segment, state.segment = state.segment, None
    if segment is not None:
        segment.close()


def _for_this_thread(error: BaseException | None) -> Exception:
    """An error of its own: several threads may wait for one write."""
    if isinstance(error, DocindexError):
        return type(error)(*error.args)
    return LogError(
        f"the log could not be written, and nothing is acknowledged: {error or 'the write was interrupted'}"
    )


@dataclass(frozen=True, slots=True)
class Flaw:
    """Bytes of a segment that hold no record."""

    position: Position
    is_torn: bool  # a write that is not complete, or not yet, and so not acknowledged; else damage


@dataclass(frozen=True, slots=True)
class Read:
    """What came into a log since some offsets."""

    entries: tuple[Entry, ...]  # by time, then by id
    offsets: Offsets  # from which to go on
    flaws: tuple[Flaw, ...] = ()


class Log:
    """One log. A process needs one object for each, which all of its threads use."""

    def __init__(self, home: Layout, *, segment_bytes: int = _SEGMENT_BYTES) -> None:
        """The log of the domain whose home this is; nothing is made before something is written."""
        self.home = home
        self._segments = Segments(home)
        self._writer = _Writer(self._segments, segment_bytes)

    def append(self, records: Sequence[Record]) -> list[Entry]:
        """Write records, in one piece of the log; they are on the disk when it returns.

        Each without a time gets one, later than all that this object gave before.

        Raises:
            FullDiskError: there is no space for them; nothing is acknowledged.
            LogError: they cannot be written; nothing is acknowledged.
        """
        return self._writer.append(records) if records else []

    def forget(self, what: Forgettable, value: str = "") -> Entry:
        """Write a tombstone that covers all that the log holds now, and what was folded of it before.

        Raises:
            FullDiskError: there is no space for it.
            LogError: it cannot be written.
        """
        [entry] = self.append([Tombstone(what, value, Offsets(self._segments.sizes()))])
        return entry

    def read(self, since: Offsets = NOTHING, until: Offsets | None = None) -> Read:
        """All that came since offsets, as far as others if they are given; it may be seen before it is acknowledged.

        Raises:
            LogError: a later version of docindex wrote it, or the folder is a symbolic link.
        """
        while True:
            try:
                return self._read(since, until)
            except FileNotFoundError:  # a removal came between
                continue

    def cut(self) -> Offsets:
        """A state of the log between writes: if it holds a record, it holds all that were acknowledged before that one.

        Its segments are sealed, so that they can be removed once they are folded.

        Raises:
            LogError: the folder is a symbolic link.
        """
        if self._segments.folder() is None:
            return NOTHING
        with self._segments.alone("looking at the log"):
            return Offsets(self._segments.seal())

    def remove(self, folded: Offsets) -> list[str]:
        """Remove the segments of which offsets cover all, and give their names. No byte of them is left.

        Raises:
            LogError: the folder is a symbolic link.
        """
        if self._segments.folder() is None:
            return []
        with self._segments.alone("removing what is folded"):
            whole = [segment for segment, size in self._segments.sizes().items() if size <= folded.end(segment)]
            self._segments.remove(whole)
            return whole

    def close(self) -> None:
        """Let the next record begin a segment."""
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
    """The log of a domain below the home of a project.

    Raises:
        DomainError: the key is none.
    """
    return Log(domains.home(layout, domain))
