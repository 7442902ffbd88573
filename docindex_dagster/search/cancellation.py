"""How long a search that reads every text may go on: some seconds, and no longer than someone waits for its answer."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from docindex_dagster.core.errors import QueryError

_is_given_up: ContextVar[Callable[[], bool]] = ContextVar("docindex_is_given_up", default=lambda: False)


@contextmanager
def until(is_given_up: Callable[[], bool]) -> Iterator[None]:
    """Let what is searched in the block, and in threads that take over its context, end once nobody waits for it."""
    token = _is_given_up.set(is_given_up)
    try:
        yield
    finally:
        _is_given_up.reset(token)


def check_waiting() -> None:
    """Look whether someone still waits for what is worked out here.

    Raises:
        QueryError: nobody does.
    """
    if _is_given_up.get()():
        raise QueryError("the search was given up: who asked for it has left")


@dataclass(frozen=True, slots=True)
class Patience:
    """The end of one search, of `time.monotonic`."""

    ends_at: float

    @classmethod
    def of(cls, seconds: float) -> "Patience":
        """So much, from now on."""
        return cls(time.monotonic() + seconds)

    def check(self) -> None:
        """Look whether to go on.

        Raises:
            QueryError: it takes too long, or nobody waits for it any more.
        """
        check_waiting()
        if time.monotonic() > self.ends_at:
            raise QueryError("the search takes too long: give a simpler pattern, or narrow it by --path or --source")
