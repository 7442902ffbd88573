"""Current messages of a domain, and an in-memory search index of all their chunks.

The messages are the folded ones, overlaid with newer ones from the log. Each query first checks the log and `CURRENT`,
so it sees everything that any process acknowledged before.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock, RLock
from time import time_ns

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from docindex_dagster.chunking.chunkers import load_chunker
from docindex_dagster.core import tables
from docindex_dagster.core.errors import DamagedStoreError, EmbeddingError
from docindex_dagster.core.files import stamp
from docindex_dagster.core.settings import Settings
from docindex_dagster.core.traces import span
from docindex_dagster.embedding.build import build_embeddings, matrix
from docindex_dagster.embedding.protocol import Embedder, Vectors
from docindex_dagster.memory.chunks import all_rows, chunk_rows, message_of
from docindex_dagster.memory.folded_messages import Folded, read_folded
from docindex_dagster.memory.log import NOTHING, Flaw, Log
from docindex_dagster.memory.message import Entry, Message, StoredMessage, count, current_messages, retention_start
from docindex_dagster.memory.ranking import TALK_WEIGHTS, TalkIndex, Utterance
from docindex_dagster.search.model import Scored

_MANY = 64  # messages, from which the tables of the last fold are read
_COLUMNS = ("chunk_id", "path", "chunk_index", "text", "start_line", "end_line")
_ATTEMPTS = 5  # a fold may publish during a read; more attempts indicate another problem


class Overlay:
    """Messages of one domain, shared by the threads of one process."""

    def __init__(self, settings: Callable[[], Settings], key: str, log: Log) -> None:
        """Read nothing before the first query; `settings` returns the current settings."""
        self.key = key
        self.folded = Folded()
        self.tail: list[Entry] = []  # log entries since the fold
        self.version = 0  # changes when messages are added or removed
        self.settings = settings
        self._log = log
        self.home = log.home
        self._lock = RLock()
        self._published: tuple[int, ...] | None = ()  # the stamp of the loaded generation; no file has this value
        self._offsets = NOTHING
        self._flaws: list[Flaw] = []
        self._written: dict[str, StoredMessage] = {}

    def refresh(self) -> None:
        """Load everything that was acknowledged before.

        Raises:
            LogError: The log cannot be read.
            StoreError: The folded messages cannot be read.
        """
        with self._lock, span("memory.refresh"):
            if stamp(self.home.current) != self._published:
                self._reload()
                return
            read = self._log.read(self._offsets)
            if stamp(self.home.current) != self._published:  # an erasing fold removed the tombstones from the log
                self._reload()
                return
            self._offsets = read.offsets
            self._flaws += read.flaws
            self.tail += read.entries
            is_forgotten = False
            for entry in read.entries:
                if isinstance(entry.record, Message):
                    self.version += count(self._written, entry.record)
                else:
                    is_forgotten = True
            since = self._oldest()
            if is_forgotten or (since and any(each.message.at < since for each in self._written.values())):
                self._recount()

    @property
    def messages(self) -> list[StoredMessage]:
        """All current messages, by time, then by id."""
        with self._lock:
            return sorted(self._written.values(), key=lambda each: (each.message.at, each.message.id))

    def message(self, message_id: str) -> StoredMessage | None:
        """Return the message with an id, or None."""
        with self._lock:
            return self._written.get(message_id)

    @property
    def flaws(self) -> Sequence[Flaw]:
        """Damage in the part of the log that was read."""
        return [flaw for flaw in self._flaws if not flaw.is_torn]

    def current(self) -> Mapping[str, Message]:
        """Return the current messages by id; each is the same object as long as it exists."""
        with self._lock:
            return {key: each.message for key, each in self._written.items()}

    def rows(self) -> pa.Table:
        """Return the rows of `chunks` that a fold would produce now."""
        with self._lock:
            messages = [each.message for each in self._written.values()]
            return all_rows(self.home, self.key, messages, self.settings().memory.chunker)

    def _reload(self) -> None:
        """Load the folded messages, and the rest of the log."""
        for attempt in range(1, _ATTEMPTS + 1):
            published = stamp(self.home.current)
            try:
                folded = read_folded(self.home, self.key)
            except DamagedStoreError:  # possibly because its file was deleted after `CURRENT` was read
                if attempt == _ATTEMPTS:
                    raise
                continue
            read = self._log.read(folded.offsets)
            if stamp(self.home.current) == published or attempt == _ATTEMPTS:
                break
        self._published, self.folded, self._offsets = published, folded, read.offsets
        self.tail, self._flaws = list(read.entries), list(read.flaws)
        self._recount()

    def _recount(self) -> None:
        before = self.current()
        found = current_messages(self.folded.messages, self.tail, self._oldest())
        self._written = {each.message.id: each for each in found}
        for key, each in self._written.items():
            if before.get(key) == each.message:
                self._written[key] = StoredMessage(before[key], each.repeats)
        self.version += 1

    def _oldest(self) -> int:
        return retention_start(self.settings().memory.retention_days, time_ns() // 1000)


@dataclass(frozen=True, slots=True)
class EmbeddedQuery:
    """Query, with its vector from a model if available: shape (dimension,)."""

    query: str
    vector: Vectors | None = None
    model: str = ""


@dataclass(slots=True)
class _Indexed:
    """Index of chunks, with the chunker and the model that produced it."""

    made_by: tuple[str, str]  # names of the chunker and the model
    index: TalkIndex
    version: int = -1  # version of the overlay that the index fully contains
    messages: dict[str, tuple[Message, tuple[str, ...]]] = field(default_factory=dict)  # with their chunk ids
    without_vectors: set[str] = field(default_factory=set)  # ids of messages that the model failed on

    def drop(self, ids: Collection[str]) -> None:
        """Remove messages."""
        for message_id in ids:
            _, chunks = self.messages.pop(message_id)
            self.without_vectors.discard(message_id)
            self.index.remove(chunks)

    def add(self, messages: Sequence[Message], rows: pa.Table, vectors: NDArray[np.float32] | None) -> None:
        """Add messages with their rows; without vectors, they are found only by keywords."""
        by_id = {message.id: message for message in messages}
        chunks: dict[str, list[str]] = {message.id: [] for message in messages}
        utterances: list[Utterance] = []
        for row in rows.select(list(_COLUMNS)).to_pylist():
            message = by_id[message_of(row["path"])]
            chunks[message.id].append(row["chunk_id"])
            order = (message.at, message.id, row["chunk_index"])
            spoken = (message.role, message.tool, row["text"], row["start_line"], row["end_line"])
            utterances.append(Utterance(row["chunk_id"], message.session, order, *spoken))
        nothing = np.zeros((rows.num_rows, self.index.dimension), np.float32)
        self.index.add(utterances, nothing if vectors is None else vectors)
        self.messages.update({key: (by_id[key], tuple(ids)) for key, ids in chunks.items()})
        if vectors is None:
            self.without_vectors |= by_id.keys()


class Searcher:
    """Search of one domain, shared by the threads of one process. Writes never wait for it."""

    def __init__(self, overlay: Overlay, embedder: Callable[[], Embedder]) -> None:
        """Read nothing before the first query; `embedder` returns the current embedder."""
        self._overlay = overlay
        self._embedder = embedder
        self._lock = Lock()
        self._indexed: _Indexed | None = None
        self._problem = ""

    def search(
        self,
        embedded: EmbeddedQuery,
        *,
        top_k: int,
        sessions: Collection[str] | None = None,
        roles: Collection[str] | None = None,
        until: int | None = None,
    ) -> tuple[list[tuple[Scored, Utterance, StoredMessage]], list[str]]:
        """Return the best chunks with their messages, and a warning if some messages have no vectors.

        Args:
            embedded: The query and its vector.
            top_k: The maximum number of results.
            sessions: The sessions to search; None for all.
            roles: The roles to search; None for all.
            until: The time of the last message to search, in microseconds since the epoch.

        Raises:
            ChunkerError: The configured chunker is not available.
            LogError: The log cannot be read.
            StoreError: The folded messages cannot be read.
        """
        with self._lock:
            self._overlay.refresh()
            now = self._up_to_date()
            vector = embedded.vector if embedded.model == now.made_by[1] else None
            weights = replace(TALK_WEIGHTS, decay=self._overlay.settings().memory.decay)
            with span("memory.rank", chunks=len(now.index)):
                found = now.index.search(
                    embedded.query, vector, top_k=top_k, sessions=sessions, roles=roles, until=until, weights=weights
                )
            utterances = [now.index[each.chunk_id] for each in found]
            warnings = [self._problem] if now.without_vectors else []
        there = (self._overlay.message(each.order[1]) for each in utterances)
        results = zip(found, utterances, there, strict=True)
        return [(each, piece, written) for each, piece, written in results if written is not None], warnings

    def _up_to_date(self) -> _Indexed:
        """Return the index of all current messages."""
        embedder = self._embedder()
        made_by = (self._overlay.settings().memory.chunker, embedder.name)
        if self._indexed is None or self._indexed.made_by != made_by:
            self._indexed = _Indexed(made_by, TalkIndex(embedder.dimension))
        self._update(self._indexed, embedder)
        return self._indexed

    def _update(self, now: _Indexed, embedder: Embedder) -> None:
        """Add new messages, and retry those without vectors, because the model may be available now."""
        version = self._overlay.version
        if now.version == version and not now.without_vectors:
            return
        current, retried = self._overlay.current(), now.without_vectors
        now.version = -1  # until all messages are added, because the following steps may fail
        now.drop([key for key, (one, _) in now.messages.items() if current.get(key) is not one or key in retried])
        new = [message for key, message in current.items() if key not in now.messages]
        if new:
            is_many, chunker_name = len(new) > _MANY, now.made_by[0]
            rows = (
                all_rows(self._overlay.home, self._overlay.key, new, chunker_name)
                if is_many
                else chunk_rows(self._overlay.key, new, load_chunker(chunker_name))
            )
            now.add(new, rows, self._vectors(rows, embedder, is_many=is_many))
        now.version = version

    def _vectors(self, rows: pa.Table, embedder: Embedder, *, is_many: bool) -> NDArray[np.float32] | None:
        """Return the vectors of chunks, from a fold or new ones; None if the model fails."""
        known = tables.read(self._overlay.home.table("embeddings", self._overlay.key)) if is_many else None
        try:
            table = build_embeddings(rows, known, embedder, self._overlay.key).table
        except EmbeddingError as error:
            self._problem = f"{error}; newer messages are found only by keywords"
            return None
        return matrix(table["vector"]).astype(np.float32)


def embed_query_or_warn(query: str, embedder: Embedder, warnings: list[str]) -> EmbeddedQuery:
    """Return a query with its vector; if the model fails, return it without one and add a warning."""
    try:
        with span("memory.embed query", model=embedder.name):
            return EmbeddedQuery(query, embedder.embed_query(query), embedder.name)
    except EmbeddingError as error:
        warnings.append(f"{error}; results are by words alone")
        return EmbeddedQuery(query)
