"""What a log holds: messages, and tombstones of those that are to be forgotten, each at its place.

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
    """Where a record lies: a segment, named by its folder and file, and the bytes of the frame in it."""

    segment: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Offsets:
    """A state of a log: of each segment, how many of its bytes belong to it."""

    ends: Mapping[str, int] = field(default_factory=dict)

    def end(self, segment: str) -> int:
        """How many bytes of a segment belong to the state; none of one that it does not know."""
        return self.ends.get(segment, 0)

    def covers(self, position: Position) -> bool:
        """Whether a record belongs to the state."""
        return position.end <= self.end(position.segment)


@dataclass(frozen=True, slots=True)
class Anchor:
    """A piece of indexed code that a message names, as it was when the message was written."""

    source: str
    path: str
    name: str | None  # qualified
    chunk_hash: str


@dataclass(frozen=True, slots=True)
class Message:
    """What an agent, its user or one of its tools says in a session."""

    id: str
    session: str
    role: Role
    tool: str  # empty where none speaks
    text: str
    at: int = 0  # microseconds since 1970 in UTC; 0: the log gives it the time of its writing
    anchors: tuple[Anchor, ...] = ()


@dataclass(frozen=True, slots=True)
class Tombstone:
    """That a message, a session or the whole domain is to be forgotten, as far as it was written before.

    `covers` says what was: places in the log, since a clock may go back.
    """

    what: Forgettable
    value: str  # the id of a message, a session, or empty
    covers: Offsets = field(default_factory=Offsets)
    at: int = 0

    def names(self, message: Message) -> bool:
        """Whether it speaks of a message, written before or after it."""
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
    """A record and its place in the log."""

    record: Record
    position: Position

    @property
    def order(self) -> tuple[int, str]:
        """Its place among all entries: by time, then by id."""
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
    """A message as a log takes it, with an id that is the same each time.

    It hashes domain, session and the client's own `message_id`; without one, role, tool and the whole text.

    Raises:
        MessageError: the session is no name.
    """
    _check_session(session)
    clamped = _ROLES.get(role.strip().lower(), "unknown")
    text, tool = well_formed(text), well_formed(tool)[:_LONGEST_TOOL]
    named = ("named", well_formed(message_id)) if message_id else ("text", clamped, tool, text)
    return Message(digest_parts(domain, session, *named), session, clamped, tool, text, anchors=tuple(anchors))


def _check_session(session: str) -> None:
    if not (session.isprintable() and 0 < len(session) <= _LONGEST_SESSION):
        raise MessageError(
            f"{session[:100]!r} is no session: take 1 to {_LONGEST_SESSION} characters that can be printed"
        )


def as_payload(record: Record) -> bytes:
    """A record as the payload of a frame: JSON, under the name of its kind."""
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
