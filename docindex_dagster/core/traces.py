"""Tracing of requests: a span for each step, passed to recorders.

The code that handles a request selects the recorders with `recording`; the steps do not depend on a tracing library.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ContextDecorator, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

Attribute = str | int | float | bool


class Span(Protocol):
    """A step in progress."""

    def note(self, **attributes: Attribute) -> None:
        """Add attributes, which must not contain text from users or indexed files."""

    def quote(self, **texts: str) -> None:
        """Add text from users or indexed files, which is recorded only if the settings allow it."""


class Recorder(Protocol):
    """Receiver of the spans of a request."""

    def span(self, name: str, attributes: Mapping[str, Attribute]) -> AbstractContextManager[Span]:
        """Return a context manager for a step, which lasts from its entry to its exit, with or without an error."""


@dataclass(frozen=True, slots=True)
class _Spans:
    """The spans of one step, one per recorder."""

    spans: Sequence[Span]

    def note(self, **attributes: Attribute) -> None:
        for span in self.spans:
            span.note(**attributes)

    def quote(self, **texts: str) -> None:
        for span in self.spans:
            span.quote(**texts)


_recorders: ContextVar[tuple[Recorder, ...]] = ContextVar("docindex recorders", default=())


@contextmanager
def span(name: str, **attributes: Attribute) -> Iterator[Span]:
    """Record a step of a request. Use a fixed set of names; put values that vary per request into attributes."""
    with ExitStack() as stack:
        yield _Spans([stack.enter_context(recorder.span(name, attributes)) for recorder in _recorders.get()])


def spanned(name: str) -> ContextDecorator:
    """Return a decorator that records each call of a function as a span."""
    return span(name)


@contextmanager
def recording(*recorders: Recorder) -> Iterator[None]:
    """Pass all spans that start in the block to recorders, including spans in background threads."""
    token = _recorders.set(recorders)
    try:
        yield
    finally:
        _recorders.reset(token)
