"""The log of a domain: what is acknowledged is on the disk, and the next read of any process sees it.

Writers share a lock for the time of each write. Who takes records out holds it alone. Readers take none.
"""

from collections.abc import Sequence

from docindex_dagster.core.layout import Layout
from docindex_dagster.memory import domains, reading, rewriting
from docindex_dagster.memory.message import Forgettable, Record, Tombstone
from docindex_dagster.memory.position import Offsets
from docindex_dagster.memory.reading import Read
from docindex_dagster.memory.records import Entry
from docindex_dagster.memory.rewriting import Keep, Rewritten
from docindex_dagster.memory.segments import Segments
from docindex_dagster.memory.writer import SEGMENT_BYTES, Writer

NOTHING = Offsets()


class Log:
    """One log. A process needs one object for each, which all of its threads use."""

    def __init__(self, home: Layout, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        """The log of the domain whose home this is; nothing is made before something is written."""
        self.home = home
        self._segments = Segments(home)
        self._segment_bytes = segment_bytes
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
        while True:
            epoch, covers = self._segments.epoch(), Offsets(self._segments.sizes())
            [entry] = self.append([Tombstone(what, value, covers)])
            if entry.position.epoch == epoch:  # else a rewrite came between, and it covers places that are gone
                return entry

    def read(self, since: Offsets = NOTHING, until: Offsets | None = None) -> Read:
        """All that came since offsets, as far as others if they are given; it may be seen before it is acknowledged.

        Raises:
            LogError: a later version of docindex wrote it, or the folder is a symbolic link.
        """
        return reading.read(self._segments, since, until)

    def cut(self) -> Offsets:
        """A state of the log between writes: if it holds a record, it holds all that were acknowledged before that one.

        Raises:
            LogError: the folder is a symbolic link.
        """
        if self._segments.epoch() is None:
            return NOTHING
        with self._segments.alone("looking at the log"):
            return Offsets(self._segments.sizes())

    def rewrite(self, keep: Keep) -> Rewritten:
        """Take out of the files what `keep` does not want and what tombstones cover; all positions and offsets change.

        So it must not want what was folded: in its new place it would count as not folded.

        Raises:
            FullDiskError: there is no space for what stays; nothing is changed.
            LogError: a later version of docindex wrote it, or the folder is a symbolic link.
        """
        if self._segments.epoch() is None:
            return Rewritten()
        with self._segments.alone("rewriting the log"):
            return rewriting.rewrite(self._segments, keep, self._segment_bytes)

    def remove(self, folded: Offsets) -> list[str]:
        """Remove the segments of which offsets cover all, and give their names.

        Raises:
            LogError: the folder is a symbolic link.
        """
        if self._segments.epoch() is None:
            return []
        with self._segments.alone("removing what is folded"):
            return rewriting.remove(self._segments, folded)

    def close(self) -> None:
        """Let the next record begin a segment."""
        self._writer.close()


def open_log(layout: Layout, domain: str) -> Log:
    """The log of a domain below the home of a project.

    Raises:
        DomainError: the key is none.
    """
    return Log(domains.home(layout, domain))
