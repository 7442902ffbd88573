"""Values that cost something to find out, and may be some seconds old."""

import time
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

_Value = TypeVar("_Value")


class Kept(Generic[_Value]):
    """A value that is found out when it is asked for, if the last one is too old. Threads may share it."""

    def __init__(self, find: Callable[[], _Value], for_s: float) -> None:
        self._find = find
        self._for_s = for_s
        self._lock = Lock()
        self._last: tuple[float, _Value] | None = None

    def get(self) -> _Value:
        """The value; an error of finding it out is raised, and not kept."""
        with self._lock:
            if self._last is None or time.monotonic() - self._last[0] >= self._for_s:
                self._last = (time.monotonic(), self._find())
            return self._last[1]
