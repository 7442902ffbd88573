"""Limits for searches that scan every text: a timeout, and cancellation when the caller stops waiting."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from docindex_dagster.core.errors import QueryError

_is_given_up: ContextVar[Callable[[], bool]] = ContextVar("docindex_is_given_up", default=lambda: False)


@contextmanager
def cancel_when(is_given_up: Callable[[], bool]) -> Iterator[None]:
    """Cancel searches in the block, and in threads that inherit its context, once `is_given_up` returns true."""
    token = _is_given_up.set(is_given_up)
    try:
        yield
    finally:
        _is_given_up.reset(token)


def check_waiting() -> None:
    """Check that the caller is still waiting for the result.

    Raises:
        QueryError: the caller is gone.
    """
    if _is_given_up.get()():
        raise QueryError("the search was cancelled: its caller is gone")


@dataclass(frozen=True, slots=True)
class Patience:
    """The deadline of a search, as a value of `time.monotonic`."""

    ends_at: float

    @classmethod
    def of(cls, seconds: float) -> "Patience":
        """Return the deadline this many seconds from now."""
        return cls(time.monotonic() + seconds)

    def check(self) -> None:
        """Check that the search may continue.

        Raises:
            QueryError: the search takes too long, or the caller is gone.
        """
        check_waiting()
        if time.monotonic() > self.ends_at:
            raise QueryError("the search takes too long: use a simpler pattern, or narrow it with --path or --source")
