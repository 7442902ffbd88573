"""Records of a log, messages and tombstones, with their positions.

The contents of a domain are its folded messages and the later records of the log. Each message counts once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import orjson

from docindex_dagster.core.errors import MessageError
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.safe_text import well_formed

Role = Literal["user", "assistant", "system", "tool", "unknown"]
Forgettable = Literal["message", "session", "domain"]
_ROLES: dict[str, Role] = {role: role for role in get_args(Role)}
_LONGEST_TOOL = 64
_LONGEST_SESSION = 200
_MICROSECONDS_A_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Position:
    """Position of a record: a segment, named by its folder and file, and the bytes of the frame in it."""

    segment: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Offsets:
    """State of a log: the number of bytes of each segment that belong to it."""

    ends: Mapping[str, int] = field(default_factory=dict)

    def end(self, segment: str) -> int:
        """Return how many bytes of a segment belong to the state; 0 for an unknown segment."""
        return self.ends.get(segment, 0)

    def covers(self, position: Position) -> bool:
        """Return whether a record belongs to the state."""
        return position.end <= self.end(position.segment)


@dataclass(frozen=True, slots=True)
class Anchor:
    """Indexed code that a message mentions, as it was when the message was written."""

    source: str
    path: str
    name: str | None  # qualified name of a symbol; None for a file
    chunk_hash: str


@dataclass(frozen=True, slots=True)
class Message:
    """Message of an agent, its user or one of its tools in a session."""

    id: str
    session: str
    role: Role
    tool: str  # name of the tool; empty for other messages
    text: str
    at: int = 0  # microseconds since the epoch, UTC; 0: the log sets it to the time of writing
    anchors: tuple[Anchor, ...] = ()


@dataclass(frozen=True, slots=True)
class Tombstone:
    """Request to forget a message, a session or the whole domain, as far as it was written before.

    `covers` defines what was written before by positions in the log, because clocks may go back.
    """

    what: Forgettable
    value: str  # the id of a message, a session, or "" for the domain
    covers: Offsets = field(default_factory=Offsets)
    at: int = 0

    def names(self, message: Message) -> bool:
        """Return whether it refers to a message, regardless of when that was written."""
        match self.what:
            case "message":
                return message.id == self.value
            case "session":
                return message.session == self.value
            case "domain":
                return True


Record = Message | Tombstone


@dataclass(frozen=True, slots=True)
class Entry:
    """Record with its position in the log."""

    record: Record
    position: Position

    @property
    def order(self) -> tuple[int, str]:
        """Sort key of the entry: time, then id."""
        return self.record.at, self.record.id if isinstance(self.record, Message) else self.record.value


def compose(
    domain: str,
    session: str,
    text: str,
    *,
    role: str = "unknown",
    tool: str = "",
    message_id: str | None = None,
    anchors: Iterable[Anchor] = (),
) -> Message:
    """Return a message for the log, with a reproducible id.

    The id hashes domain, session and the client's `message_id` or, without one, role, tool and text.

    Raises:
        MessageError: The session is invalid.
    """
    _check_session(session)
    clamped = _ROLES.get(role.strip().lower(), "unknown")
    text, tool = well_formed(text), well_formed(tool)[:_LONGEST_TOOL]
    named = ("named", well_formed(message_id)) if message_id else ("text", clamped, tool, text)
    return Message(digest_parts(domain, session, *named), session, clamped, tool, text, anchors=tuple(anchors))


def _check_session(session: str) -> None:
    if not (session.isprintable() and 0 < len(session) <= _LONGEST_SESSION):
        raise MessageError(f"invalid session {session[:100]!r}: expected 1 to {_LONGEST_SESSION} printable characters")


def as_payload(record: Record) -> bytes:
    """Encode a record as the payload of a frame: JSON, with the kind of record as key."""
    return orjson.dumps({"message" if isinstance(record, Message) else "tombstone": record})


def as_record(payload: bytes) -> Record:
    """Decode a record from `as_payload`.

    Raises:
        ValueError: The payload is not a record of this version.
    """
    try:
        [(kind, fields)] = orjson.loads(payload).items()
        return _KINDS[kind](**fields)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError("not a record of this version") from error


def _message(*, anchors: list[dict[str, Any]], **fields: Any) -> Message:
    return Message(**fields, anchors=tuple(Anchor(**anchor) for anchor in anchors))


def _tombstone(*, covers: dict[str, Any], **fields: Any) -> Tombstone:
    return Tombstone(**fields, covers=Offsets(**covers))


_KINDS: dict[str, Callable[..., Record]] = {"message": _message, "tombstone": _tombstone}


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """Message as first written, and how often it was repeated."""

    message: Message
    repeats: int = 0


def current_messages(folded: Iterable[StoredMessage], tail: Sequence[Entry], since: int = 0) -> list[StoredMessage]:
    """Return the current messages, each once, by time, then by id.

    Args:
        folded: The messages of a generation.
        tail: All log entries after the folded state, in any order.
        since: Earlier messages are ignored; microseconds since the epoch.
    """
    tombstones = [entry.record for entry in tail if isinstance(entry.record, Tombstone)]
    current = {one.message.id: one for one in folded if not any(each.names(one.message) for each in tombstones)}
    for entry in sorted(tail, key=lambda each: (each.record.at, each.position.segment, each.position.start)):
        if isinstance(entry.record, Message) and not _is_covered(entry, entry.record, tombstones):
            count(current, entry.record)
    kept = (each for each in current.values() if each.message.at >= since)
    return sorted(kept, key=lambda each: (each.message.at, each.message.id))


def count(current: dict[str, StoredMessage], message: Message) -> bool:
    """Add a message to the current ones, by id, or count a repeat; return whether it is new."""
    known = current.get(message.id)
    current[message.id] = StoredMessage(known.message, known.repeats + 1) if known else StoredMessage(message)
    return known is None


def retention_start(retention_days: int | None, now: int) -> int:
    """Return the time from which messages are retained, in microseconds since the epoch; 0 to retain all."""
    return 0 if retention_days is None else now - retention_days * _MICROSECONDS_A_DAY


def _is_covered(entry: Entry, message: Message, tombstones: Iterable[Tombstone]) -> bool:
    """Return whether one of the tombstones covers a message."""
    return any(each.covers.covers(entry.position) and each.names(message) for each in tombstones)
