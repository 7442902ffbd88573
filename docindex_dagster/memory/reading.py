"""Reading a log, in any process: whatever was acknowledged before is seen, since nothing is remembered but offsets."""

from collections.abc import Iterator
from dataclasses import dataclass

from docindex_dagster.memory import frames
from docindex_dagster.memory.position import Offsets, Position
from docindex_dagster.memory.records import Entry, as_record
from docindex_dagster.memory.segments import Segments


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
    gone: frozenset[str] = frozenset()  # segments of the old offsets; their records may be in others, too


def read(segments: Segments, since: Offsets, until: Offsets | None = None) -> Read:
    """All that came since offsets, as far as others if they are given.

    Raises:
        LogError: a later version of docindex wrote it, or the folder is a symbolic link.
    """
    while True:
        try:
            return _read(segments, since, until)
        except FileNotFoundError:  # a rewrite or a removal came between
            continue


def _read(segments: Segments, since: Offsets, until: Offsets | None) -> Read:
    sizes = segments.sizes()
    entries: list[Entry] = []
    flaws: list[Flaw] = []
    ends: dict[str, int] = {}
    for segment, size in sizes.items():
        start, end = since.end(segment), size if until is None else min(size, until.end(segment))
        ends[segment] = start
        if end > start:
            found = entries_of(segments, segment, start, end)
            entries += found.entries
            flaws += found.flaws
            ends[segment] = found.offsets.end(segment)
    if len(entries) > 1:
        entries.sort(key=lambda entry: entry.order)
    return Read(tuple(entries), Offsets(ends), tuple(flaws), frozenset(since.ends.keys() - sizes.keys()))


def entries_of(segments: Segments, segment: str, start: int, end: int) -> Read:
    """What bytes of one segment hold, in their order there.

    Raises:
        FileNotFoundError: the segment was removed.
        LogError: a later version of docindex wrote it.
    """
    decoded = frames.decode(segments.read(segment, start, end), start)
    entries: list[Entry] = []
    flaws = [Flaw(Position(segment, flaw.start, flaw.end), flaw.is_torn) for flaw in decoded.flaws]
    for frame in decoded.frames:
        position = Position(segment, frame.start, frame.end)
        try:
            entries.append(Entry(as_record(frame.payload), position))
        except ValueError:
            flaws.append(Flaw(position, is_torn=False))
    return Read(tuple(entries), Offsets({segment: decoded.end}), tuple(flaws))


def by_segment(segments: Segments, since: Offsets) -> Iterator[Read]:
    """All that came since offsets, a segment at a time.

    Raises:
        FileNotFoundError: a rewrite or a removal came between, as no lock keeps it out.
        LogError: a later version of docindex wrote it, or the folder is a symbolic link.
    """
    for segment, size in segments.sizes().items():
        if size > since.end(segment):
            yield entries_of(segments, segment, since.end(segment), size)
