"""Results of memory operations."""

from dataclasses import dataclass
from typing import Literal

from docindex_dagster.memory.anchors import Anchored
from docindex_dagster.memory.message import Anchor, Forgettable
from docindex_dagster.search.model import Hit

ExtractionState = Literal["done", "pending", "none"]


@dataclass(frozen=True, slots=True)
class Ingested:
    """Result of ingesting a message; a blank message is not written, and all its counts are 0.

    Attributes:
        extraction: Whether the counts include everything the extractor finds; `pending`: the next fold adds the rest.
        is_repeat: Whether the same message already existed.
        latency_ms: Time from the call to the result.
    """

    domain: str
    session: str
    message_id: str = ""
    chunks: int = 0
    concepts: int = 0
    edges: int = 0
    extracted: tuple[str, ...] = ()
    extraction: ExtractionState = "none"
    is_repeat: bool = False
    anchors: tuple[Anchor, ...] = ()
    latency_ms: float = 0.0
    problem: str = ""  # why mentioned code could not be looked up; empty if it could


@dataclass(frozen=True, slots=True)
class Remembered:
    """Chunk of a message found by a search; `signals` add up to its score, and lines count within the message."""

    domain: str
    message_id: str
    session: str
    role: str
    tool: str
    at: int  # microseconds since the epoch, UTC
    repeats: int
    chunk_id: str
    text: str
    start_line: int
    end_line: int
    score: float
    signals: tuple[tuple[str, float], ...] = ()
    anchors: tuple[Anchored, ...] = ()


@dataclass(frozen=True, slots=True)
class Recalled:
    """Messages found by a search, best first, and requested code hits, whose scores are not comparable."""

    messages: tuple[Remembered, ...]
    code: tuple[Hit, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Messages that are hidden from now on; the next erasure deletes their bytes."""

    domain: str
    what: Forgettable
    value: str
    messages: int


@dataclass(frozen=True, slots=True)
class DomainStatus:
    """Status of a domain.

    Attributes:
        tail: Number of messages that are not folded.
        forgotten: Number of tombstones whose messages are still in files.
        bytes: Size of all files of the domain.
        oldest_at: Time of the first message, in microseconds since the epoch; None without messages.
        flaws: Damage in the log, by file and byte.
    """

    domain: str
    messages: int
    sessions: int
    chunks: int
    tail: int
    forgotten: int
    bytes: int
    oldest_at: int | None
    newest_at: int | None
    generation: int | None
    folded_at: str | None  # UTC in ISO 8601
    is_bound: bool = False
    flaws: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that no file of a domain contains any forgotten messages.

    Attributes:
        forgotten: Hashes of the ids of the messages.
        files: Number of files that were read completely and contain neither the ids nor the texts.
        bytes: Size of these files.
        erased_at: UTC in ISO 8601.
    """

    domain: str
    forgotten: tuple[str, ...]
    generation: int | None
    files: int
    bytes: int
    erased_at: str


@dataclass(frozen=True, slots=True)
class Folding:
    """Result of folding a domain."""

    domain: str
    messages: int
    added: int  # messages
    removed: int
    chunks: int = 0
    concepts: int = 0
    edges: int = 0
    generation: int | None = None
    version: str = ""  # version of the published content; equal content has equal versions
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    receipt: Receipt | None = None  # proof of an erasure, if there was one
