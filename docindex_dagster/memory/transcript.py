"""What is there of a domain's messages: each once, however often it was written, and none that is forgotten."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from docindex_dagster.memory.message import Message, Tombstone
from docindex_dagster.memory.position import Position
from docindex_dagster.memory.records import Entry, is_covered


@dataclass(frozen=True, slots=True)
class Written:
    """A message as it was first written, and how often it came again."""

    message: Message
    position: Position
    repeats: int


class Transcript:
    """The messages of a log, in whatever pieces it was read."""

    def __init__(self) -> None:
        """Nothing was read."""
        self._by_id: dict[str, list[Entry]] = {}
        self._tombstones: list[Tombstone] = []

    def add(self, entries: Iterable[Entry]) -> None:
        """Take in what was read."""
        for entry in entries:
            if isinstance(entry.record, Tombstone):
                self._tombstones.append(entry.record)
            else:
                self._by_id.setdefault(entry.record.id, []).append(entry)

    @property
    def tombstones(self) -> tuple[Tombstone, ...]:
        """Those that were read; of what was folded, and was written before them, they cover all that they name."""
        return tuple(self._tombstones)

    def messages(self) -> list[Written]:
        """The messages, by time, then by id."""
        return sorted(self._written(), key=lambda each: (each.message.at, each.message.id))

    def _written(self) -> Iterator[Written]:
        for entries in self._by_id.values():
            there = [entry for entry in entries if not is_covered(entry, self._tombstones)]
            if there:
                first = min(there, key=lambda entry: (entry.record.at, entry.position.segment, entry.position.start))
                if isinstance(first.record, Message):
                    yield Written(first.record, first.position, len(there) - 1)
