"""The messages of a domain as they are now: what was folded, and over it what the log has since.

Each question looks at the log and at `CURRENT` first, so it meets all that was acknowledged before, by any process.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import RLock
from time import time_ns

import pyarrow as pa

from docindex_dagster.core.errors import DamagedStoreError
from docindex_dagster.core.files import stamp
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings
from docindex_dagster.core.traces import span
from docindex_dagster.memory.chunks import all_rows
from docindex_dagster.memory.contents import again, contents, oldest
from docindex_dagster.memory.folded import Folded, read_folded
from docindex_dagster.memory.log import Log
from docindex_dagster.memory.message import Message, Tombstone
from docindex_dagster.memory.position import Offsets
from docindex_dagster.memory.reading import Flaw, Read
from docindex_dagster.memory.records import Entry
from docindex_dagster.memory.transcript import Written

_ATTEMPTS = 5  # a fold may publish while another generation is read; more often than this, something else is wrong


@dataclass(frozen=True, slots=True)
class Changes:
    """What an index of a domain lacks."""

    messages: Mapping[str, Message] | None  # all that are there, by id, where some may have gone; else None
    new: Sequence[Message]


class Overlay:
    """The messages of one domain, for the threads of one process."""

    def __init__(self, settings: Callable[[], Settings], key: str, log: Log) -> None:
        """Nothing is read before the first question; `settings` gives those of the moment."""
        self.key = key
        self._settings = settings
        self._log = log
        self._home: Layout = log.home
        self._lock = RLock()
        self._published: tuple[int, ...] | None = None
        self._folded: Folded | None = None
        self._offsets = Offsets()
        self._tail: list[Entry] = []
        self._flaws: list[Flaw] = []
        self._written: dict[str, Written] = {}
        self._new: list[Message] = []  # what came since `changes` was called
        self._is_recounted = True  # whether anything may have come or gone since then

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
            is_rewritten = any(self._folded.offsets.end(name) < self._offsets.end(name) for name in read.gone)
            # A fold that erased may have come between: then the log has no tombstone any more.
            if is_rewritten or stamp(self._home.current) != self._published:
                self._reload()
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

    def changes(self, *, anew: bool = False) -> Changes:
        """What came or went since the last call, for the one index that there is; with `anew`, all that is there."""
        with self._lock:
            is_whole = anew or self._is_recounted
            messages = {key: each.message for key, each in self._written.items()} if is_whole else None
            found = Changes(messages, self._new)
            self._new, self._is_recounted = [], False
            return found

    def give_back(self) -> None:
        """Say that the last changes were not taken in."""
        with self._lock:
            self._is_recounted = True

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
