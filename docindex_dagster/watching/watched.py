"""One source that is watched: what is known of it, whether it needs a run, and when a failed one is tried again."""

import math
import time
from dataclasses import dataclass
from pathlib import Path

from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.settings import Settings
from docindex_dagster.pipeline.current import is_current
from docindex_dagster.sources.fingerprint import fingerprint
from docindex_dagster.sources.model import Source
from docindex_dagster.watching.folders import Place, folders_of, place_of

_FIRST_RETRY_S, _LAST_RETRY_S = 60.0, 3600.0


@dataclass(slots=True)
class Watched:
    """A source, and what is known of it."""

    source: Source
    folders: frozenset[str] = frozenset()  # those that show its changes
    place: Place | None = None  # its own folder; None while it is missing
    seen: str | None = None  # its fingerprint before its last run; None: it may not be up to date
    failures: int = 0  # runs since the last one that succeeded
    retry_at: float = math.inf
    problem: str = ""  # why it cannot be looked at, as it was shown to the user

    def has_moved(self) -> bool:
        """Whether its own folder came, went or was replaced."""
        return place_of(self.source.path) != self.place

    def list_folders(self, home: Path) -> None:
        """Find out which folder is its own, and which ones show its changes; `home` is where the index lies."""
        self.place = place_of(self.source.path)
        self.folders = folders_of(self.source, home)

    def look(self, settings: Settings) -> str | None:
        """The fingerprint of what is there now, if it is to be indexed; None if there is nothing to do.

        Raises:
            SourceError: the source cannot be listed.
            OSError: the same.
        """
        is_retry = self.retry_at <= time.monotonic()
        found = fingerprint(self.source)
        if found == self.seen and not is_retry:
            return None
        if _is_current(settings, self.source, found):
            self.note_success(found)
            return None
        return found

    def note_success(self, seen: str | None) -> None:
        """Remember that this is indexed."""
        self.seen, self.failures, self.retry_at, self.problem = seen, 0, math.inf, ""

    def note_failure(self, seen: str | None) -> float:
        """Remember what could not be indexed; returns in how many seconds it is tried again, ever less often."""
        self.seen = seen
        wait = min(_FIRST_RETRY_S * (1 << self.failures), _LAST_RETRY_S)
        self.failures, self.retry_at = self.failures + 1, time.monotonic() + wait
        return wait

    def note_problem(self, problem: str) -> bool:
        """Remember why it cannot be looked at; whether this is new."""
        is_new = problem != self.problem
        self.seen, self.retry_at, self.problem = None, math.inf, problem
        return is_new


def _is_current(settings: Settings, source: Source, found: str) -> bool:
    """Whether another process, or a run before our time, has indexed this already."""
    try:
        return is_current(settings, source, found)
    except DocindexError:  # a damaged store, of which the run will say what to do
        return False
