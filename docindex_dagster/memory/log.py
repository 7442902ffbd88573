"""The log of a domain: what is acknowledged is on the disk, and the next read of any process sees it.

Writers share a lock for the time of each write. Who seals or removes segments holds it alone. Readers take none, and
remember nothing but offsets.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from docindex_dagster.core.layout import Layout
from docindex_dagster.memory import domains, frames
from docindex_dagster.memory.message import Entry, Forgettable, Offsets, Position, Record, Tombstone, as_record
from docindex_dagster.memory.segments import Segments
from docindex_dagster.memory.writer import SEGMENT_BYTES, Writer

NOTHING = Offsets()


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

    def __init__(self, home: Layout, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        """The log of the domain whose home this is; nothing is made before something is written."""
        self.home = home
        self._segments = Segments(home)
        self._writer = Writer(self._segments, segment_bytes)

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
            decoded = frames.decode(self._segments.read(segment, start, end), start)
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
