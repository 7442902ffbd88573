"""Memory of a program, which writes to one domain, and reads that domain and those it was started with.

Callers can only narrow this access; no argument opens another domain. Limits apply to the size of messages, the number
of messages per second, and the size of the domain.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from threading import Lock

import orjson

from docindex_dagster.chunking.chunkers import load_chunker
from docindex_dagster.core.access import writable_home
from docindex_dagster.core.errors import (
    DomainError,
    LongMessageError,
    MessageError,
    MessageRateError,
    QueryError,
    QuotaError,
)
from docindex_dagster.core.files import folder_bytes
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import MemorySettings, Settings, check_home
from docindex_dagster.core.traces import span
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.providers import shared_embedder
from docindex_dagster.memory import domains
from docindex_dagster.memory.anchors import anchors_in, check_anchors, search_code
from docindex_dagster.memory.chunks import drafts_of
from docindex_dagster.memory.concepts import FirstStage
from docindex_dagster.memory.log import Log, open_log
from docindex_dagster.memory.message import Anchor, Forgettable, Message, StoredMessage, Tombstone, compose
from docindex_dagster.memory.message_index import Overlay, Searcher, embed_query_or_warn
from docindex_dagster.memory.ranking import Utterance
from docindex_dagster.memory.results import DomainStatus, Forgotten, Ingested, Recalled, Remembered
from docindex_dagster.search.live_index import Live
from docindex_dagster.search.model import Scored

_MICROSECONDS = 1_000_000  # per second
Clock = Callable[[], float]
_ROUNDING = 1e-6  # of a token, so that waiting for exactly the requested time is enough
_MEASURED_FOR_S = 30.0  # validity of the measured size of a domain, to which this process adds its own writes


class Memory:
    """Domains of one program, shared by all its threads."""

    def __init__(
        self, settings: Settings, bound: str, may_read: Sequence[str] = (), *, code: Live | None = None
    ) -> None:
        """Bind to a domain; files are created by the first write.

        Args:
            settings: The settings of the project.
            bound: The domain to write to, and to read.
            may_read: Additional domains to read.
            code: The index in which mentioned code is looked up.

        Raises:
            DomainError: A key is invalid.
        """
        self.bound = domains.check(bound)
        self.readable = tuple(dict.fromkeys((bound, *map(domains.check, may_read))))
        is_own = code is not None and code.settings.root == settings.root
        self._live = code if code is not None and is_own else Live(settings)
        self._code = code or self._live
        self._layout = Layout(settings.home)
        self._log = open_log(self._layout, bound)
        self._preparing, self._is_prepared = Lock(), False
        self._limits = Limits(settings.memory, self._log.home)
        self._first_stage = FirstStage(lambda: self._settings)
        self._overlays = {key: Overlay(lambda: self._settings, key, self._log_of(key)) for key in self.readable}
        self._searchers = {key: Searcher(overlay, self._embedder) for key, overlay in self._overlays.items()}

    def ingest(
        self, text: str, *, session: str, role: str = "unknown", tool: str = "", message_id: str | None = None
    ) -> Ingested:
        """Write a message to the bound domain; on return, it is on disk and visible to searches.

        Messages with the same id, or the same role, tool and text, count once.

        Raises:
            MessageError: The session is invalid, the text is too long, or another text has its id.
            MessageRateError: This process writes too many messages.
            QuotaError: The domain is full.
            FullDiskError: The disk is full.
            LogError: The log cannot be written.
            ChunkerError: The configured chunker is not available.
            SettingsError: The settings were changed, and are invalid.
        """
        started_at = time.perf_counter()
        message = compose(self.bound, session, text, role=role, tool=tool, message_id=message_id)
        if not text.strip():
            return Ingested(self.bound, session)
        with span("memory.ingest", kind="tool result" if message.tool else "message", role=message.role) as ingesting:
            with span("memory.admit"):
                self._limits.admit(text)
            with span("memory.anchors"):
                anchors, problem = anchors_in(self._code, message.text)
                message = replace(message, anchors=anchors)
            chunker = load_chunker(self._settings.memory.chunker)  # before the write, so that an error writes nothing
            is_repeat = self._is_repeat(message)
            with span("memory.append"):
                self._prepare()
                self._log.append([message])
            with span("memory.cut"):
                drafts = drafts_of(message, chunker).drafts
            with span("memory.extract"):
                found = self._first_stage.extract(message, drafts)
            ingesting.note(
                chunks=len(drafts),
                concepts=len(found.concepts),
                edges=found.edges,
                is_repeat=is_repeat,
                extraction=found.state,
            )
        return Ingested(
            self.bound,
            session,
            message.id,
            len(drafts),
            len(found.concepts),
            found.edges,
            found.concepts,
            found.state,
            is_repeat,
            message.anchors,
            (time.perf_counter() - started_at) * 1000,
            problem,
        )

    def recall(
        self,
        query: str,
        *,
        domains: Sequence[str] = (),
        sessions: Sequence[str] = (),
        roles: Sequence[str] = (),
        as_of: datetime | None = None,
        top_k: int = 10,
        with_code: bool = False,
        with_impact: bool = False,
    ) -> Recalled:
        """Return the most relevant messages, and whether the code they mention has changed.

        Args:
            query: Any text.
            domains: The readable domains to search; empty for all of them.
            sessions: The sessions to search; empty for all.
            roles: The roles to search; empty for all.
            as_of: Ignore messages that were written later.
            top_k: The maximum number of messages.
            with_code: Whether to search code and documents, too.
            with_impact: Whether to return what depends on the code that messages mention.

        Raises:
            QueryError: The query is empty.
            DomainError: A domain is not readable.
            LogError: A log cannot be read.
            StoreError: The folded messages cannot be read.
        """
        if not query.strip():
            raise QueryError("the query is empty: enter text to search for")
        until = None if as_of is None else int(as_of.timestamp() * _MICROSECONDS)
        with span("memory.recall", top_k=top_k):
            warnings: list[str] = []
            embedded = embed_query_or_warn(query, self._embedder(), warnings)
            found: list[tuple[Remembered, tuple[Anchor, ...]]] = []
            for key in self._readable_domains(domains):
                hits, notes = self._searchers[key].search(
                    embedded, top_k=top_k, sessions=sessions or None, roles=roles or None, until=until
                )
                found += [_as_remembered(key, *each) for each in hits]
                warnings += notes
            # Scores have a maximum of 1 in every domain, so they are comparable.
            found.sort(key=lambda each: (-each[0].score, -each[0].at, each[0].domain, each[0].chunk_id))
            best = found[:top_k]
            if best and not any(dict(each.signals).get("bm25") for each, _ in best):
                warnings.append("no message contains a word of the query; these are the closest in meaning")
            code = search_code(self._code, query, top_k, warnings) if with_code else ()
            messages = self._with_anchors(best, warnings, impact=with_impact)
            return Recalled(messages, code, tuple(dict.fromkeys(warnings)))

    def forget(self, *, message: str | None = None, session: str | None = None, everything: bool = False) -> Forgotten:
        """Hide a message, a session or all of the bound domain from now on; the next fold deletes it from the files.

        Raises:
            QueryError: The arguments do not select exactly one of these.
            LogError: The log cannot be written.
            FullDiskError: The disk is full.
        """
        if (message is not None) + (session is not None) + everything != 1:
            raise QueryError("specify what to forget: a message, a session, or everything")
        what: Forgettable = "message" if message is not None else "session" if session is not None else "domain"
        value = message or session or ""
        overlay = self._overlays[self.bound]
        overlay.refresh()
        tombstone = Tombstone(what, value)
        count = sum(tombstone.names(each.message) for each in overlay.messages)
        if count:
            self._prepare()
            self._log.forget(what, value)
        return Forgotten(self.bound, what, value, count)

    def status(self) -> list[DomainStatus]:
        """Return the status of the readable domains.

        Raises:
            LogError: A log cannot be read.
            StoreError: The folded messages cannot be read.
        """
        return [self._status(key) for key in self.readable]

    def export(self, domain: str | None = None) -> Iterator[bytes]:
        """Return an iterator over the messages of a domain as JSON lines, by time, with the number of repeats.

        Raises:
            DomainError: The domain is not readable.
            LogError: The log cannot be read.
        """
        [key] = self._readable_domains([domain or self.bound])
        overlay = self._overlays[key]
        overlay.refresh()
        option = orjson.OPT_APPEND_NEWLINE
        return (
            orjson.dumps({"message": each.message, "repeats": each.repeats}, option=option) for each in overlay.messages
        )

    def close(self) -> None:
        """Make the next message start a new log segment."""
        self._log.close()

    def _readable_domains(self, wanted: Sequence[str]) -> Sequence[str]:
        for key in wanted:
            if key not in self.readable:
                raise DomainError(
                    f"domain {key[:100]!r} is not readable here; the readable domains are {', '.join(self.readable)}"
                )
        return list(dict.fromkeys(wanted)) or self.readable

    def _prepare(self) -> None:
        """Create the home, once: `writing` sets the umask of all threads, and logs set their own modes."""
        with self._preparing:
            if self._is_prepared:
                check_home(self._settings)
                return
            with writable_home(self._settings):
                self._is_prepared = True

    def _is_repeat(self, message: Message) -> bool:
        """Return whether the same message was written before.

        Raises:
            MessageError: The client used the same id for another text.
        """
        overlay = self._overlays[self.bound]
        overlay.refresh()
        known = overlay.message(message.id)
        if known is not None and known.message.text != message.text:
            raise MessageError(
                f"this id is already used by another text in session {message.session!r}: use a unique id for each "
                "message, or forget the existing one"
            )
        return known is not None

    def _with_anchors(
        self, found: Sequence[tuple[Remembered, tuple[Anchor, ...]]], warnings: list[str], *, impact: bool
    ) -> tuple[Remembered, ...]:
        all_anchors = list(dict.fromkeys(anchor for _, anchors in found for anchor in anchors))
        if not all_anchors:
            return tuple(each for each, _ in found)
        with span("memory.anchors"):
            seen = dict(zip(all_anchors, check_anchors(self._code, all_anchors, warnings, impact=impact), strict=True))
        return tuple(replace(each, anchors=tuple(seen[anchor] for anchor in anchors)) for each, anchors in found)

    def _status(self, key: str) -> DomainStatus:
        overlay = self._overlays[key]
        overlay.refresh()
        written = overlay.messages
        home = domains.home(self._layout, key)
        folded = overlay.folded
        source = folded.generation.sources.get(key) if folded.generation else None
        ids = {each.message.id for each in folded.messages}
        return DomainStatus(
            key,
            len(written),
            len({each.message.session for each in written}),
            overlay.rows().num_rows,
            sum(each.message.id not in ids for each in written),
            sum(isinstance(entry.record, Tombstone) for entry in overlay.tail),
            folder_bytes(home.home),
            written[0].message.at if written else None,
            written[-1].message.at if written else None,
            folded.generation.number if folded.generation else None,
            source.changed_at if source else None,
            key == self.bound,
            tuple(f"{flaw.position.segment} at byte {flaw.position.start:,}" for flaw in overlay.flaws),
        )

    @property
    def _settings(self) -> Settings:
        """Current settings from the file."""
        return self._live.settings

    def _log_of(self, key: str) -> Log:
        return self._log if key == self.bound else open_log(self._layout, key)

    def _embedder(self) -> Embedder:
        return shared_embedder(self._settings.embedding)


def _as_remembered(
    key: str, found: Scored, piece: Utterance, written: StoredMessage
) -> tuple[Remembered, tuple[Anchor, ...]]:
    """Return a hit, and the anchors with which its message was written."""
    message = written.message
    remembered = Remembered(
        key,
        message.id,
        message.session,
        message.role,
        message.tool,
        message.at,
        written.repeats,
        found.chunk_id,
        piece.text,
        piece.start_line,
        piece.end_line,
        found.score,
        tuple((signal.name, signal.contribution) for signal in found.signals if signal.contribution),
    )
    return remembered, message.anchors


class Limits:
    """Limits of one process for one domain."""

    def __init__(self, settings: MemorySettings, home: Layout, clock: Clock = time.monotonic) -> None:
        """Set limits for the domain with this home."""
        self._settings = settings
        self._home = home
        self._clock = clock
        self._lock = threading.Lock()
        self._tokens, self._filled_at = float(settings.per_second), clock()  # allows bursts of this size
        self._measured_at = -_MEASURED_FOR_S
        self._bytes = 0

    def admit(self, text: str) -> None:
        """Check whether a message with this text may be written.

        Raises:
            LongMessageError: The text is too long.
            MessageRateError: This process writes too many messages.
            QuotaError: The domain has reached its maximum size.
        """
        size = len(text.encode("utf-8", "replace"))
        if size > self._settings.message_bytes:
            raise LongMessageError(
                f"the text has {size:,} bytes, but the limit is {self._settings.message_bytes:,}: split it, or "
                "raise memory.message_bytes"
            )
        wait_s = self._wait_s()
        if wait_s:
            raise MessageRateError(
                f"this process exceeds {self._settings.per_second} messages per second: try again after "
                f"{wait_s:g} s, or raise memory.per_second",
                wait_s,
            )
        if self._used() + size > self._settings.quota_bytes:
            raise QuotaError(
                f"{self._home.home} has {self._bytes:,} bytes, but the limit is {self._settings.quota_bytes:,}: forget "
                "sessions of the domain, or raise memory.quota_bytes"
            )
        self._bytes += size

    def _wait_s(self) -> float:
        """Take a token and return 0, or return the seconds until one is available."""
        rate = self._settings.per_second
        with self._lock:
            now = self._clock()
            self._tokens = min(rate, self._tokens + (now - self._filled_at) * rate)
            self._filled_at = now
            if self._tokens < 1 - _ROUNDING:
                return (1 - self._tokens) / rate
            self._tokens -= 1
            return 0.0

    def _used(self) -> int:
        now = self._clock()
        if now - self._measured_at >= _MEASURED_FOR_S:
            self._bytes, self._measured_at = folder_bytes(self._home.home), now
        return self._bytes
