"""Records as the payloads of frames: JSON, under the name of their kind."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from docindex_dagster.memory.message import Anchor, Message, Record, Tombstone
from docindex_dagster.memory.position import Offsets, Position


@dataclass(frozen=True, slots=True)
class Entry:
    """A record and its place in the log."""

    record: Record
    position: Position

    @property
    def order(self) -> tuple[int, str]:
        """Its place among all entries: by time, then by id."""
        return self.record.at, self.record.id if isinstance(self.record, Message) else self.record.value


def is_covered(entry: Entry, tombstones: Iterable[Tombstone]) -> bool:
    """Whether one of the tombstones says that a message is to be forgotten."""
    message = entry.record
    return isinstance(message, Message) and any(
        each.covers.covers(entry.position) and each.names(message) for each in tombstones
    )


def as_payload(record: Record) -> bytes:
    """A record as bytes."""
    return orjson.dumps({"message" if isinstance(record, Message) else "tombstone": record})


def as_record(payload: bytes) -> Record:
    """The record that `as_payload` wrote.

    Raises:
        ValueError: it did not.
    """
    try:
        [(kind, fields)] = orjson.loads(payload).items()
        return _KINDS[kind](**fields)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError("no record of this version") from error


def _message(*, anchors: list[dict[str, Any]], **fields: Any) -> Message:
    return Message(**fields, anchors=tuple(Anchor(**anchor) for anchor in anchors))


def _tombstone(*, covers: dict[str, Any], **fields: Any) -> Tombstone:
    return Tombstone(**fields, covers=Offsets(**covers))


_KINDS: dict[str, Callable[..., Record]] = {"message": _message, "tombstone": _tombstone}
