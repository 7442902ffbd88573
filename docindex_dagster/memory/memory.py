"""What a program may remember: it is bound to one domain, which it writes, and may read those that it was started with.

Arguments only narrow: nothing that a caller says opens another domain. Limits apply to the bytes of a message, the
messages a second, and the bytes of the domain.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from threading import Lock

import orjson

from docindex_dagster.chunking.chunkers import load_chunker
from docindex_dagster.core.access import writing
from docindex_dagster.core.errors import DomainError, LongMessageError, MessageError, QueryError, QuotaError, RateError
from docindex_dagster.core.files import folder_bytes
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import MemorySettings, Settings, check_home
from docindex_dagster.core.traces import span
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.providers import shared_embedder
from docindex_dagster.memory import domains
from docindex_dagster.memory.anchors import anchors_in, code_found, looked_at
from docindex_dagster.memory.chunks import drafts_of
from docindex_dagster.memory.concepts import FirstStage
from docindex_dagster.memory.log import Log, open_log
from docindex_dagster.memory.message import Anchor, Forgettable, Message, Tombstone, Written, compose
from docindex_dagster.memory.message_index import Overlay, Searcher, asking
from docindex_dagster.memory.ranking import Utterance
from docindex_dagster.memory.results import DomainStatus, Forgotten, Ingested, Recalled, Remembered
from docindex_dagster.search.live_index import Live
from docindex_dagster.search.model import Scored

_MICROSECONDS = 1_000_000  # of a second
Clock = Callable[[], float]
_ROUNDING = 1e-6  # of a token: who waits as long as is asked for gets it
_MEASURED_FOR_S = 30.0  # how long the measured size of a domain counts, with what this process added


class Memory:
    """The domains of one program, for all of its threads."""

    def __init__(
        self, settings: Settings, bound: str, may_read: Sequence[str] = (), *, code: Live | None = None
    ) -> None:
        """Bind to a domain; nothing is made before something is written.

        Args:
            settings: of the project.
            bound: the domain that is written, and read.
            may_read: further ones that are read.
            code: the index in which what messages name is looked up.

        Raises:
            DomainError: a key is none.
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
        """Write a message into the bound domain; it is on the disk when this returns, and found by the next search.

        The same message, by its id or by role, tool and text, counts once.

        Raises:
            MessageError: the session is no name, the text is too long, or another text has its id.
            RateError: too many come from this process.
            QuotaError: the domain is full.
            FullDiskError: the disk is.
            LogError: the log cannot be written.
            ChunkerError: the chunker of the settings is not there.
            SettingsError: the settings were changed, and cannot be read.
        """
        began = time.perf_counter()
        message = compose(self.bound, session, text, role=role, tool=tool, message_id=message_id)
        if not text.strip():
            return Ingested(self.bound, session)
        with span("memory.ingest", kind="tool result" if message.tool else "message", role=message.role) as ingesting:
            with span("memory.admit"):
                self._limits.admit(text)
            with span("memory.anchors"):
                anchors, problem = anchors_in(self._code, message.text)
                message = replace(message, anchors=anchors)
            chunker = load_chunker(self._settings.memory.chunker)  # before the write: what fails later was written
            is_repeat = self._is_there(message)
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
            (time.perf_counter() - began) * 1000,
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
        """The messages that are most likely meant, and whether the code that they name is still what it was.

        Args:
            query: any text.
            domains: of those that may be read; none for all of them.
            sessions: of which a message must be; none for all.
            roles: who must have said it; none for all.
            as_of: nothing that was written later counts.
            top_k: how many at most.
            with_code: whether code and documents are searched, too.
            with_impact: whether it is said what depends on the code that messages name.

        Raises:
            QueryError: the query is empty.
            DomainError: a domain may not be read.
            LogError: a log cannot be read.
            StoreError: what was folded cannot be read.
        """
        if not query.strip():
            raise QueryError("the query is empty: say what to look for")
        until = None if as_of is None else int(as_of.timestamp() * _MICROSECONDS)
        with span("memory.recall", top_k=top_k):
            warnings: list[str] = []
            asked = asking(query, self._embedder(), warnings)
            found: list[tuple[Remembered, tuple[Anchor, ...]]] = []
            for key in self._chosen(domains):
                hits, notes = self._searchers[key].search(
                    asked, top_k=top_k, sessions=sessions or None, roles=roles or None, until=until
                )
                found += [_remembered(key, *each) for each in hits]
                warnings += notes
            # A score of 1 is the most that any text could have, in whatever domain.
            found.sort(key=lambda each: (-each[0].score, -each[0].at, each[0].domain, each[0].chunk_id))
            best = found[:top_k]
            if best and not any(dict(each.signals).get("bm25") for each, _ in best):
                warnings.append("no message has a word of the query; these are nearest to its meaning")
            code = code_found(self._code, query, top_k, warnings) if with_code else ()
            messages = self._with_anchors(best, warnings, impact=with_impact)
            return Recalled(messages, code, tuple(dict.fromkeys(warnings)))

    def forget(self, *, message: str | None = None, session: str | None = None, everything: bool = False) -> Forgotten:
        """Hide a message, a session or all of the bound domain from now on; the next fold takes it out of the files.

        Raises:
            QueryError: not exactly one of them is given.
            LogError: the log cannot be written.
            FullDiskError: there is no space for that.
        """
        if (message is not None) + (session is not None) + everything != 1:
            raise QueryError("say what to forget: a message, a session, or everything")
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
        """How the domains are that may be read.

        Raises:
            LogError: a log cannot be read.
            StoreError: what was folded cannot be read.
        """
        return [self._status(key) for key in self.readable]

    def export(self, domain: str | None = None) -> Iterator[bytes]:
        """The messages of a domain as JSON, by time: a line for each, with how often it came again.

        Raises:
            DomainError: it may not be read.
            LogError: the log cannot be read.
        """
        [key] = self._chosen([domain or self.bound])
        overlay = self._overlays[key]
        overlay.refresh()
        option = orjson.OPT_APPEND_NEWLINE
        return (
            orjson.dumps({"message": each.message, "repeats": each.repeats}, option=option) for each in overlay.messages
        )

    def close(self) -> None:
        """Let the next message begin a segment of the log."""
        self._log.close()

    def _chosen(self, wanted: Sequence[str]) -> Sequence[str]:
        for key in wanted:
            if key not in self.readable:
                raise DomainError(
                    f"{key[:100]!r} is none of the domains that may be read here: {', '.join(self.readable)}"
                )
        return list(dict.fromkeys(wanted)) or self.readable

    def _prepare(self) -> None:
        """Make the home, once: the mask of `writing` is one of all threads, and a log has modes of its own."""
        with self._preparing:
            if self._is_prepared:
                check_home(self._settings)
                return
            with writing(self._settings):
                self._is_prepared = True

    def _is_there(self, message: Message) -> bool:
        """Whether the same message was written before.

        Raises:
            MessageError: another one was, under the same id of its client.
        """
        overlay = self._overlays[self.bound]
        overlay.refresh()
        known = overlay.message(message.id)
        if known is not None and known.message.text != message.text:
            raise MessageError(
                f"another text has this id in session {message.session!r}: take an id of its own for each message, or "
                "forget the one that is there"
            )
        return known is not None

    def _with_anchors(
        self, found: Sequence[tuple[Remembered, tuple[Anchor, ...]]], warnings: list[str], *, impact: bool
    ) -> tuple[Remembered, ...]:
        every = list(dict.fromkeys(anchor for _, anchors in found for anchor in anchors))
        if not every:
            return tuple(each for each, _ in found)
        with span("memory.anchors"):
            seen = dict(zip(every, looked_at(self._code, every, warnings, impact=impact), strict=True))
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
        """Those of the file as it is now."""
        return self._live.settings

    def _log_of(self, key: str) -> Log:
        return self._log if key == self.bound else open_log(self._layout, key)

    def _embedder(self) -> Embedder:
        return shared_embedder(self._settings.embedding)


def _remembered(key: str, found: Scored, piece: Utterance, written: Written) -> tuple[Remembered, tuple[Anchor, ...]]:
    """A hit, and the anchors that its message was written with."""
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
    """Those of one process for one domain."""

    def __init__(self, settings: MemorySettings, home: Layout, clock: Clock = time.monotonic) -> None:
        """Limits for the domain whose home this is."""
        self._settings = settings
        self._home = home
        self._clock = clock
        self._lock = threading.Lock()
        self._tokens, self._filled_at = float(settings.per_second), clock()  # so many messages may come at once
        self._measured_at = -_MEASURED_FOR_S
        self._bytes = 0

    def admit(self, text: str) -> None:
        """Let a message be written that has this text.

        Raises:
            LongMessageError: the text is too long.
            RateError: this process writes too many messages.
            QuotaError: the domain is as large as it may be.
        """
        size = len(text.encode("utf-8", "replace"))
        if size > self._settings.message_bytes:
            raise LongMessageError(
                f"the text has {size:,} bytes, and a message at most {self._settings.message_bytes:,}: split it, or "
                "raise memory.message_bytes"
            )
        wait_s = self._wait_s()
        if wait_s:
            raise RateError(
                f"more than {self._settings.per_second} messages a second come from this process: try again after "
                f"{wait_s:g} s, or raise memory.per_second",
                wait_s,
            )
        if self._used() + size > self._settings.quota_bytes:
            raise QuotaError(
                f"{self._home.home} holds {self._bytes:,} bytes, and may hold {self._settings.quota_bytes:,}: forget "
                "sessions of the domain, or raise memory.quota_bytes"
            )
        self._bytes += size

    def _wait_s(self) -> float:
        """Take a token; 0, or in how many seconds there will be one."""
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
