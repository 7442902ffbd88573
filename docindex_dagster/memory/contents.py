"""What a domain holds: what was folded, and over it what the log has since."""

from collections.abc import Iterable

from docindex_dagster.memory.records import Entry
from docindex_dagster.memory.transcript import Transcript, Written

_MICROSECONDS_A_DAY = 86_400_000_000


def contents(folded: Iterable[Written], tail: Iterable[Entry], since: int = 0) -> list[Written]:
    """The messages that are there, each once, by time, then by id.

    Args:
        folded: the messages of a generation.
        tail: all that came into the log after the state that was folded.
        since: messages from before this moment count for nothing; microseconds since 1970.
    """
    transcript = Transcript()
    transcript.add(tail)
    tombstones = transcript.tombstones
    there = {
        each.message.id: each for each in folded if not any(tombstone.names(each.message) for tombstone in tombstones)
    }
    for each in transcript.messages():
        first = there.get(each.message.id)
        there[each.message.id] = each if first is None else again(first, 1 + each.repeats)
    kept = (each for each in there.values() if each.message.at >= since)
    return sorted(kept, key=lambda each: (each.message.at, each.message.id))


def again(written: Written, times: int) -> Written:
    """A message that came again so many times."""
    return Written(written.message, written.position, written.repeats + times)


def oldest(retention_days: int | None, now: int) -> int:
    """From which moment on messages stay, in microseconds since 1970; 0 where all do."""
    return 0 if retention_days is None else now - retention_days * _MICROSECONDS_A_DAY
