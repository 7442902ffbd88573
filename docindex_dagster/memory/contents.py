"""What a domain holds: what was folded, and over it what the log has since. Each message counts once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from docindex_dagster.memory.message import Entry, Message, Tombstone

_MICROSECONDS_A_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Written:
    """A message as it was first written, and how often it came again."""

    message: Message
    repeats: int = 0


def contents(folded: Iterable[Written], tail: Sequence[Entry], since: int = 0) -> list[Written]:
    """The messages that are there, each once, by time, then by id.

    Args:
        folded: the messages of a generation.
        tail: all that came into the log after the state that was folded, in any order.
        since: messages from before this moment count for nothing; microseconds since 1970.
    """
    tombstones = [entry.record for entry in tail if isinstance(entry.record, Tombstone)]
    there = {one.message.id: one for one in folded if not any(each.names(one.message) for each in tombstones)}
    for entry in sorted(tail, key=lambda each: (each.record.at, each.position.segment, each.position.start)):
        if isinstance(entry.record, Message) and not _is_covered(entry, entry.record, tombstones):
            count(there, entry.record)
    kept = (each for each in there.values() if each.message.at >= since)
    return sorted(kept, key=lambda each: (each.message.at, each.message.id))


def count(there: dict[str, Written], message: Message) -> bool:
    """Count a message among those that are there, by id; whether it is a new one."""
    known = there.get(message.id)
    there[message.id] = Written(known.message, known.repeats + 1) if known else Written(message)
    return known is None


def oldest(retention_days: int | None, now: int) -> int:
    """From which moment on messages stay, in microseconds since 1970; 0 where all do."""
    return 0 if retention_days is None else now - retention_days * _MICROSECONDS_A_DAY


def _is_covered(entry: Entry, message: Message, tombstones: Iterable[Tombstone]) -> bool:
    """Whether one of the tombstones says that a message is to be forgotten."""
    return any(each.covers.covers(entry.position) and each.names(message) for each in tombstones)
