"""What is answered about memory. How it is found or written is not here."""

from dataclasses import dataclass
from typing import Literal

from docindex_dagster.memory.anchors import Anchored
from docindex_dagster.memory.message import Anchor, Forgettable
from docindex_dagster.search.model import Hit

ExtractionState = Literal["done", "pending", "none"]


@dataclass(frozen=True, slots=True)
class Ingested:
    """What became of a message; of a blank one nothing is written, and all counts are 0.

    Attributes:
        extraction: whether all that the extractor finds is counted; `pending`: the next fold finds the rest.
        is_repeat: whether the same message was there.
        latency_ms: from the call to the answer.
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
    problem: str = ""  # why the code that it names could not be looked up; empty where nothing kept it


@dataclass(frozen=True, slots=True)
class Remembered:
    """A chunk of a message that a search found; `signals` add up to its score, and lines are those of the message."""

    domain: str
    message_id: str
    session: str
    role: str
    tool: str
    at: int  # microseconds since 1970 in UTC
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
    """What was found: messages best first, and code that was asked for with them, whose scores do not compare."""

    messages: tuple[Remembered, ...]
    code: tuple[Hit, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What is hidden from now on; its bytes go with the next erasure."""

    domain: str
    what: Forgettable
    value: str
    messages: int


@dataclass(frozen=True, slots=True)
class DomainStatus:
    """How a domain is.

    Attributes:
        tail: messages that are not folded.
        forgotten: tombstones whose messages lie in files yet.
        bytes: of all files of the domain.
        oldest_at: when the first message was written, in microseconds since 1970; None where there is none.
        flaws: damage of the log, by file and byte.
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
    """That what was forgotten is in no file of a domain.

    Attributes:
        forgotten: hashes of the ids of the messages.
        files: how many files were read to the end, and hold neither the ids nor the texts.
        bytes: of them.
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
    """What a fold made of a domain."""

    domain: str
    messages: int
    added: int  # messages
    removed: int
    chunks: int = 0
    concepts: int = 0
    edges: int = 0
    generation: int | None = None
    version: str = ""  # of what is published: equal content has an equal version
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    receipt: Receipt | None = None  # of what was erased
