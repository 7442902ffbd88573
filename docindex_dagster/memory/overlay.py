"""The messages of a domain as they are now: what was folded, and over it what the log has since.

Each question looks at the log and at `CURRENT` first, so it meets all that was acknowledged before, by any process.
"""

from collections.abc import Callable, Mapping, Sequence
from threading import RLock
from time import time_ns

import pyarrow as pa

from docindex_dagster.core.errors import DamagedStoreError
from docindex_dagster.core.files import stamp
from docindex_dagster.core.settings import Settings
from docindex_dagster.core.traces import span
from docindex_dagster.memory.chunks import all_rows
from docindex_dagster.memory.folded import Folded, read_folded
from docindex_dagster.memory.log import NOTHING, Flaw, Log
from docindex_dagster.memory.message import Entry, Message, Written, contents, count, oldest

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
        """Damage of what was read of the log."""
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
