"""Taking records out of a log: of a rewritten or removed one no byte stays in its files."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from docindex_dagster.core.files import reporting_full_disk
from docindex_dagster.memory import frames
from docindex_dagster.memory.message import Tombstone
from docindex_dagster.memory.position import Offsets
from docindex_dagster.memory.reading import Flaw, by_segment
from docindex_dagster.memory.records import Entry, as_payload, is_covered
from docindex_dagster.memory.segments import Segments
from docindex_dagster.memory.writer import SEGMENT_BYTES, Segment

Keep = Callable[[Entry], bool]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What a rewrite did."""

    retained: int = 0  # records
    removed: int = 0
    flaws: tuple[Flaw, ...] = ()  # which went, too

    def plus(self, retained: int, removed: int, flaws: tuple[Flaw, ...]) -> "Rewritten":
        """This and what was done with a further segment."""
        return Rewritten(self.retained + retained, self.removed + removed, (*self.flaws, *flaws))


def rewrite(segments: Segments, keep: Keep, segment_bytes: int = SEGMENT_BYTES) -> Rewritten:
    """Begin an epoch with those records that `keep` wants and no tombstone covers. It takes the lock for one alone.

    A process that dies meanwhile leaves the old epoch as it was, or the new one; the next call removes the rubbish.

    Raises:
        FullDiskError: there is no space for what stays; nothing is changed.
        LogError: a later version of docindex wrote the log.
    """
    epoch = segments.epoch()
    if epoch is None:
        return Rewritten()
    segments.sweep()
    try:
        with reporting_full_disk(segments.home.home):
            draft = segments.draft(epoch)
            result = _copy(segments, draft, keep, segment_bytes)
            segments.publish(draft)
    finally:
        segments.sweep()
    return result


def _copy(segments: Segments, draft: str, keep: Keep, segment_bytes: int) -> Rewritten:
    """Write what stays into the segments of a draft."""
    tombstones = [
        entry.record
        for part in by_segment(segments, Offsets())
        for entry in part.entries
        if isinstance(entry.record, Tombstone)
    ]
    result = Rewritten()
    waiting: list[bytes] = []
    for part in by_segment(segments, Offsets()):
        stays = [entry for entry in part.entries if keep(entry) and not is_covered(entry, tombstones)]
        result = result.plus(len(stays), len(part.entries) - len(stays), part.flaws)
        waiting += [frames.encode(as_payload(entry.record)) for entry in stays]
        if sum(map(len, waiting)) >= segment_bytes:
            _write(segments, draft, waiting)
            waiting = []
    if waiting:
        _write(segments, draft, waiting)
    return result


def _write(segments: Segments, draft: str, data: list[bytes]) -> None:
    with closing(Segment.create(segments, draft)) as segment:
        segment.append(data)


def remove(segments: Segments, folded: Offsets) -> list[str]:
    """Remove the segments of which offsets cover all, and give their names. It takes the lock for one alone."""
    segments.sweep()
    whole = [segment for segment, size in segments.sizes().items() if size <= folded.end(segment)]
    segments.remove(whole)
    return whole
