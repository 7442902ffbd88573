"""What answering goes through, step by step: a span for each, for those who record it.

Who answers requests says who records them, by `recording`; the steps themselves know of no library for it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ContextDecorator, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

Attribute = str | int | float | bool


class Span(Protocol):
    """A step that is under way."""

    def note(self, **attributes: Attribute) -> None:
        """Say what is known of it now; nothing that users or indexed files wrote."""

    def quote(self, **texts: str) -> None:
        """Say what users or indexed files wrote, which is kept only where that is wanted."""


class Recorder(Protocol):
    """Learns of the spans of a request."""

    def span(self, name: str, attributes: Mapping[str, Attribute]) -> AbstractContextManager[Span]:
        """A step that begins where it is entered, and ends where it is left, with or without an error."""


@dataclass(frozen=True, slots=True)
class _Spans:
    """One step, as each recorder keeps it."""

    spans: Sequence[Span]

    def note(self, **attributes: Attribute) -> None:
        for one in self.spans:
            one.note(**attributes)

    def quote(self, **texts: str) -> None:
        for one in self.spans:
            one.quote(**texts)


_recorders: ContextVar[tuple[Recorder, ...]] = ContextVar("docindex recorders", default=())


@contextmanager
def span(name: str, **attributes: Attribute) -> Iterator[Span]:
    """A step of answering. Its name is one of few; what differs from request to request is in the attributes."""
    with ExitStack() as stack:
        yield _Spans([stack.enter_context(recorder.span(name, attributes)) for recorder in _recorders.get()])


def spanned(name: str) -> ContextDecorator:
    """Make each call of a function a span."""
    return span(name)


@contextmanager
def recording(*recorders: Recorder) -> Iterator[None]:
    """Let recorders learn of all spans that begin within, in threads that are started for it as well."""
    token = _recorders.set(recorders)
    try:
        yield
    finally:
        _recorders.reset(token)
