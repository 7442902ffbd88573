"""How much may be written into a domain: bytes of a message, messages a second, bytes of the domain."""

import threading
import time
from collections.abc import Callable

from docindex_dagster.core.errors import LongMessageError, QuotaError, RateError
from docindex_dagster.core.files import folder_bytes
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import MemorySettings

Clock = Callable[[], float]
_ROUNDING = 1e-6  # of a token: who waits as long as is asked for gets it
_MEASURED_FOR_S = 30.0  # how long the measured size of a domain counts, with what this process added


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
