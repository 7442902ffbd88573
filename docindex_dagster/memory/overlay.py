"""A domain as it is now: what was folded, and over it what the log has since, in one index.

Each question looks at the log and at `CURRENT` first, so it meets all that was acknowledged before, by any process.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from threading import RLock
from time import time_ns

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from docindex_dagster.chunking.chunkers import load_chunker
from docindex_dagster.core import tables
from docindex_dagster.core.errors import DamagedStoreError, EmbeddingError
from docindex_dagster.core.files import stamp
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings
from docindex_dagster.core.traces import span
from docindex_dagster.embedding.build import build_embeddings
from docindex_dagster.embedding.protocol import Embedder, Vectors
from docindex_dagster.memory.chunks import all_rows, chunk_rows, message_of
from docindex_dagster.memory.contents import again, contents, oldest
from docindex_dagster.memory.folded import Folded, read_folded
from docindex_dagster.memory.log import Log
from docindex_dagster.memory.message import Message, Tombstone
from docindex_dagster.memory.position import Offsets
from docindex_dagster.memory.ranking import TALK_WEIGHTS, TalkIndex, Utterance
from docindex_dagster.memory.reading import Flaw, Read
from docindex_dagster.memory.records import Entry
from docindex_dagster.memory.transcript import Written
from docindex_dagster.search.model import Scored

_ATTEMPTS = 5  # a fold may publish while another generation is read; more often than this, something else is wrong


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk of a message that is there, and where it stands in the message."""

    message_id: str
    text: str
    start_line: int
    end_line: int


class Overlay:
    """The messages of one domain, for the threads of one process."""

    def __init__(self, settings: Callable[[], Settings], key: str, log: Log, embedder: Callable[[], Embedder]) -> None:
        """Nothing is read before the first question; `settings` gives those of the moment."""
        self.key = key
        self._settings = settings
        self._log = log
        self._home: Layout = log.home
        self._embedder = embedder
        self._lock = RLock()
        self._published: tuple[int, ...] | None = None
        self._folded: Folded | None = None
        self._offsets = Offsets()
        self._tail: list[Entry] = []
        self._flaws: list[Flaw] = []
        self._written: dict[str, Written] = {}
        self._pieces: dict[str, Piece] = {}
        self._chunks: dict[str, tuple[Message, list[str]]] = {}  # what is in the index, by the ids of messages
        self._new: list[Message] = []  # what came since the index was asked
        self._is_recounted = True  # whether anything may have come or gone
        self._index: TalkIndex | None = None
        self._cut_by = ""
        self._warnings: list[str] = []

    def refresh(self) -> None:
        """Take in all that was acknowledged before.

        Raises:
            LogError: the log cannot be read.
            StoreError: what was folded cannot be read.
        """
        with self._lock, span("memory.refresh"):
            if self._folded is None or stamp(self._home.current) != self._published:
                self._reload()
                return
            read = self._log.read(self._offsets)
            if any(self._folded.offsets.end(segment) < self._offsets.end(segment) for segment in read.gone):
                self._reload()  # the log was rewritten
            elif read.entries or read.flaws or read.gone:
                self._take(read)
            self._drop_old()

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
    def folded(self) -> Folded:
        """What was folded when it was last looked at."""
        return self._folded or Folded()

    @property
    def tail(self) -> Sequence[Entry]:
        """What the log has since."""
        return self._tail

    @property
    def flaws(self) -> Sequence[Flaw]:
        """Damage of what was read of the log."""
        return [flaw for flaw in self._flaws if not flaw.is_torn]

    def search(
        self,
        query: str,
        *,
        top_k: int,
        sessions: Collection[str] | None = None,
        roles: Collection[str] | None = None,
        until: int | None = None,
    ) -> tuple[list[tuple[Scored, Piece, Written]], list[str]]:
        """The best chunks for a query with what they are of, and what keeps the vectors from being asked.

        Args:
            query: any text.
            top_k: how many at most.
            sessions: of which a message must be; None for all.
            roles: who must have said it; None for all.
            until: the last moment that counts, in microseconds since 1970.

        Raises:
            ChunkerError: the chunker of the settings is not there.
        """
        with self._lock:
            index = self._indexed()
            warnings = list(self._warnings)
            if not len(index):
                return [], warnings
            vector = self._vector(query, warnings)
            weights = replace(TALK_WEIGHTS, decay=self._settings().memory.decay)
            with span("memory.rank", chunks=len(index)):
                found = index.search(
                    query, vector, top_k=top_k, sessions=sessions, roles=roles, until=until, weights=weights
                )
            pieces = [(each, self._pieces[each.chunk_id]) for each in found]
            return [(each, piece, self._written[piece.message_id]) for each, piece in pieces], warnings

    def rows(self) -> pa.Table:
        """The rows of `chunks` that a fold would make now."""
        with self._lock:
            messages = [each.message for each in self._written.values()]
            return all_rows(self._home, self.key, messages, self._settings().memory.chunker)

    def _reload(self) -> None:
        """Read what was folded, and all of the log that was not."""
        for attempt in range(1, _ATTEMPTS + 1):
            published = stamp(self._home.current)
            try:
                folded = read_folded(self._home, self.key)
            except DamagedStoreError:  # or its file went away after `CURRENT` was read
                if attempt == _ATTEMPTS:
                    raise
                continue
            read = self._log.read(folded.offsets)
            if stamp(self._home.current) == published or attempt == _ATTEMPTS:
                break
        self._published, self._folded = published, folded
        self._tail, self._flaws = list(read.entries), list(read.flaws)
        self._offsets = read.offsets
        self._recount()

    def _take(self, read: Read) -> None:
        """Take in what came since the last look."""
        self._offsets = read.offsets
        self._flaws += read.flaws
        self._tail += read.entries
        if any(isinstance(entry.record, Tombstone) for entry in read.entries):
            self._recount()
            return
        for entry in read.entries:
            if isinstance(entry.record, Message):
                known = self._written.get(entry.record.id)
                self._written[entry.record.id] = again(known, 1) if known else Written(entry.record, entry.position, 0)
                self._new += [] if known else [entry.record]

    def _recount(self) -> None:
        found = contents(self.folded.messages, self._tail, self._oldest())
        self._written = {each.message.id: each for each in found}
        self._is_recounted = True

    def _oldest(self) -> int:
        return oldest(self._settings().memory.retention_days, time_ns() // 1000)

    def _drop_old(self) -> None:
        since = self._oldest()
        if since and any(each.message.at < since for each in self._written.values()):
            self._recount()

    def _indexed(self) -> TalkIndex:
        """The index of what is there: of what changed since the last question, rows are made now."""
        index, cut_by = self._index, self._settings().memory.chunker
        if index is None or cut_by != self._cut_by:
            index = self._index = TalkIndex(self._embedder().dimension)
            self._chunks, self._pieces, self._cut_by = {}, {}, cut_by
            self._is_recounted = True
        if self._is_recounted:
            self._drop(index)
            self._new = [each.message for key, each in self._written.items() if key not in self._chunks]
        if self._new:
            self._add(index, self._new)
        self._new, self._is_recounted = [], False
        return index

    def _drop(self, index: TalkIndex) -> None:
        """Take out of the index what is not there, or is there as another message of the same id."""
        gone = [
            key
            for key, (message, _) in self._chunks.items()
            if key not in self._written or self._written[key].message != message
        ]
        for key in gone:
            _, chunks = self._chunks.pop(key)
            index.remove(chunks)
            for chunk in chunks:
                del self._pieces[chunk]

    def _add(self, index: TalkIndex, messages: Sequence[Message]) -> None:
        rows = all_rows(self._home, self.key, messages, self._cut_by) if self._is_recounted else self._cut(messages)
        self._chunks.update({message.id: (message, []) for message in messages})
        utterances: list[Utterance] = []
        columns = ("chunk_id", "path", "chunk_index", "text", "start_line", "end_line")
        for row in rows.select(list(columns)).to_pylist():
            message, chunks = self._chunks[message_of(row["path"])]
            self._pieces[row["chunk_id"]] = Piece(message.id, row["text"], row["start_line"], row["end_line"])
            chunks.append(row["chunk_id"])
            order = (message.at, message.id, row["chunk_index"])
            utterances.append(
                Utterance(row["chunk_id"], message.session, order, message.role, message.tool, row["text"])
            )
        index.add(utterances, self._vectors(rows))

    def _cut(self, messages: Sequence[Message]) -> pa.Table:
        return chunk_rows(self.key, messages, load_chunker(self._cut_by))

    def _vectors(self, rows: pa.Table) -> NDArray[np.float32]:
        """The vectors of chunks: those that a fold made, or new ones; of length 0 where the model fails."""
        embedder = self._embedder()
        if not rows.num_rows:
            return np.zeros((0, embedder.dimension), np.float32)
        known = tables.read(self._home.table("embeddings", self.key)) if self._is_recounted else None
        try:
            table = build_embeddings(rows, known, embedder, self.key).table
        except EmbeddingError as error:
            self._warnings = [f"{error}; what was said since is found by its words alone"]
            return np.zeros((rows.num_rows, embedder.dimension), np.float32)
        values = table["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        found: NDArray[np.float32] = values.reshape(-1, embedder.dimension).astype(np.float32)
        return found

    def _vector(self, query: str, warnings: list[str]) -> Vectors | None:
        try:
            with span("memory.embed query"):
                return self._embedder().embed_query(query)
        except EmbeddingError as error:
            warnings.append(f"{error}; results are by words alone")
            return None
