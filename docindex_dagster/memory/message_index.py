"""The messages of a domain as they are now, and one index in memory of all their chunks, which is searched.

They are what was folded, and over it what the log has since. Each question looks at the log and at `CURRENT` first, so
it meets all that was acknowledged before, by any process.
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
from docindex_dagster.memory.message import Entry, Message, Written, contents, count, oldest
from docindex_dagster.memory.ranking import TALK_WEIGHTS, TalkIndex, Utterance
from docindex_dagster.search.model import Scored

_MANY = 64  # messages, for which the tables of the last fold are read
_COLUMNS = ("chunk_id", "path", "chunk_index", "text", "start_line", "end_line")
_ATTEMPTS = 5  # a fold may publish while another generation is read; more often than this, something else is wrong


class Overlay:
    """The messages of one domain, for the threads of one process."""

    def __init__(self, settings: Callable[[], Settings], key: str, log: Log) -> None:
        """Nothing is read before the first question; `settings` gives those of the moment."""
        self.key = key
        self.folded = Folded()
        self.tail: list[Entry] = []  # what the log has since
        self.version = 0  # another one once messages came or went
        self.settings = settings
        self._log = log
        self.home = log.home
        self._lock = RLock()
        self._published: tuple[int, ...] | None = ()  # the stamp of what was read; no file has this one
        self._offsets = NOTHING
        self._flaws: list[Flaw] = []
        self._written: dict[str, Written] = {}

    def refresh(self) -> None:
        """Take in all that was acknowledged before.

        Raises:
            LogError: the log cannot be read.
            StoreError: what was folded cannot be read.
        """
        with self._lock, span("memory.refresh"):
            if stamp(self.home.current) != self._published:
                self._reload()
                return
            read = self._log.read(self._offsets)
            if stamp(self.home.current) != self._published:  # a fold that erased took the tombstones out of the log
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
    def messages(self) -> list[Written]:
        """All that are there, by time, then by id."""
        with self._lock:
            return sorted(self._written.values(), key=lambda each: (each.message.at, each.message.id))

    def message(self, message_id: str) -> Written | None:
        """The message with an id, if it is there."""
        with self._lock:
            return self._written.get(message_id)

    @property
    def flaws(self) -> Sequence[Flaw]:
        """The damage in the part of the log that was read."""
        return [flaw for flaw in self._flaws if not flaw.is_torn]

    def there(self) -> Mapping[str, Message]:
        """The messages that are there, by id; each is the same object as long as it is there."""
        with self._lock:
            return {key: each.message for key, each in self._written.items()}

    def rows(self) -> pa.Table:
        """The rows of `chunks` that a fold would make now."""
        with self._lock:
            messages = [each.message for each in self._written.values()]
            return all_rows(self.home, self.key, messages, self.settings().memory.chunker)

    def _reload(self) -> None:
        """Read what was folded, and all of the log that was not."""
        for attempt in range(1, _ATTEMPTS + 1):
            published = stamp(self.home.current)
            try:
                folded = read_folded(self.home, self.key)
            except DamagedStoreError:  # or its file went away after `CURRENT` was read
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
        before = self.there()
        found = contents(self.folded.messages, self.tail, self._oldest())
        self._written = {each.message.id: each for each in found}
        for key, each in self._written.items():
            if before.get(key) == each.message:
                self._written[key] = Written(before[key], each.repeats)
        self.version += 1

    def _oldest(self) -> int:
        return oldest(self.settings().memory.retention_days, time_ns() // 1000)


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, and its vector by a model, if that could be had: shape (dimension,)."""

    query: str
    vector: Vectors | None = None
    model: str = ""


@dataclass(slots=True)
class _Indexed:
    """An index of chunks that one chunker cut and one model embedded."""

    made_by: tuple[str, str]  # the names of both
    index: TalkIndex
    version: int = -1  # of the overlay, of which it holds all
    messages: dict[str, tuple[Message, tuple[str, ...]]] = field(default_factory=dict)  # with the ids of their chunks
    without_vectors: set[str] = field(default_factory=set)  # ids of those for which the model failed

    def drop(self, ids: Collection[str]) -> None:
        """Take messages out."""
        for message_id in ids:
            _, chunks = self.messages.pop(message_id)
            self.without_vectors.discard(message_id)
            self.index.remove(chunks)

    def add(self, messages: Sequence[Message], rows: pa.Table, vectors: NDArray[np.float32] | None) -> None:
        """Take messages in with their rows; without vectors, they are found by their words alone."""
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
    """The search of one domain, for the threads of one process. No write of a message waits for it."""

    def __init__(self, overlay: Overlay, embedder: Callable[[], Embedder]) -> None:
        """Nothing is read before the first question; `embedder` gives that of the moment."""
        self._overlay = overlay
        self._embedder = embedder
        self._lock = Lock()
        self._indexed: _Indexed | None = None
        self._problem = ""

    def search(
        self,
        asked: Asked,
        *,
        top_k: int,
        sessions: Collection[str] | None = None,
        roles: Collection[str] | None = None,
        until: int | None = None,
    ) -> tuple[list[tuple[Scored, Utterance, Written]], list[str]]:
        """The best chunks for a query with the messages that they are of, and what keeps vectors from being asked.

        Args:
            asked: any text, with its vector.
            top_k: how many at most.
            sessions: of which a message must be; None for all.
            roles: who must have said it; None for all.
            until: the last moment that counts, in microseconds since 1970.

        Raises:
            ChunkerError: the chunker of the settings is not there.
            LogError: the log cannot be read.
            StoreError: what was folded cannot be read.
        """
        with self._lock:
            self._overlay.refresh()
            now = self._up_to_date()
            vector = asked.vector if asked.model == now.made_by[1] else None
            weights = replace(TALK_WEIGHTS, decay=self._overlay.settings().memory.decay)
            with span("memory.rank", chunks=len(now.index)):
                found = now.index.search(
                    asked.query, vector, top_k=top_k, sessions=sessions, roles=roles, until=until, weights=weights
                )
            uttered = [now.index[each.chunk_id] for each in found]
            warnings = [self._problem] if now.without_vectors else []
        there = (self._overlay.message(each.order[1]) for each in uttered)
        together = zip(found, uttered, there, strict=True)
        return [(each, piece, written) for each, piece, written in together if written is not None], warnings

    def _up_to_date(self) -> _Indexed:
        """The index of all messages that are there."""
        embedder = self._embedder()
        made_by = (self._overlay.settings().memory.chunker, embedder.name)
        if self._indexed is None or self._indexed.made_by != made_by:
            self._indexed = _Indexed(made_by, TalkIndex(embedder.dimension))
        self._take(self._indexed, embedder)
        return self._indexed

    def _take(self, now: _Indexed, embedder: Embedder) -> None:
        """Take in what came since, and again what has no vectors: the model may work by now."""
        version = self._overlay.version
        if now.version == version and not now.without_vectors:
            return
        there, again = self._overlay.there(), now.without_vectors
        now.version = -1  # until it has all: what follows may fail
        now.drop([key for key, (one, _) in now.messages.items() if there.get(key) is not one or key in again])
        new = [message for key, message in there.items() if key not in now.messages]
        if new:
            is_many, cut_by = len(new) > _MANY, now.made_by[0]
            rows = (
                all_rows(self._overlay.home, self._overlay.key, new, cut_by)
                if is_many
                else chunk_rows(self._overlay.key, new, load_chunker(cut_by))
            )
            now.add(new, rows, self._vectors(rows, embedder, is_many=is_many))
        now.version = version

    def _vectors(self, rows: pa.Table, embedder: Embedder, *, is_many: bool) -> NDArray[np.float32] | None:
        """The vectors of chunks: those that a fold made, or new ones; None where the model fails."""
        known = tables.read(self._overlay.home.table("embeddings", self._overlay.key)) if is_many else None
        try:
            table = build_embeddings(rows, known, embedder, self._overlay.key).table
        except EmbeddingError as error:
            self._problem = f"{error}; what was written since is found by its words alone"
            return None
        return matrix(table["vector"]).astype(np.float32)


def asking(query: str, embedder: Embedder, warnings: list[str]) -> Asked:
    """A query with its vector; where the model fails, without one, and with a warning."""
    try:
        with span("memory.embed query", model=embedder.name):
            return Asked(query, embedder.embed_query(query), embedder.name)
    except EmbeddingError as error:
        warnings.append(f"{error}; results are by words alone")
        return Asked(query)
