"""How often an API may be asked, by all threads together: requests and tokens a minute, and not before it says so."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from docindex_dagster.embedding.concurrency import pause

_MINUTE = 60.0


@dataclass(slots=True)
class Rate:
    """Requests are spread evenly: each takes its share of a minute, in which no other begins.

    So within any minute there are never more than allowed, but for what the last request began. None is no limit.
    """

    requests: int | None = None  # a minute
    tokens: int | None = None
    now: Callable[[], float] = time.monotonic  # seconds
    sleep: Callable[[float], None] = pause
    _free_at: float = field(default=0.0, init=False)  # from when on the next request may begin
    _held_until: float = field(default=0.0, init=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def wait(self, tokens: int) -> None:
        """Return when a request of so many tokens may begin."""
        with self._lock:
            start = max(self.now(), self._free_at)
            shares = (1 / self.requests if self.requests else 0, tokens / self.tokens if self.tokens else 0)
            self._free_at = start + _MINUTE * max(shares)
        while (left := max(start, self._held_until) - self.now()) > 0:
            self.sleep(left)

    def hold(self, seconds: float) -> None:
        """Let no request begin for so long."""
        with self._lock:
            self._held_until = max(self._held_until, self.now() + seconds)
