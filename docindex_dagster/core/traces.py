"""What answering goes through, step by step: a span for each, for those who record it.

Who answers requests says who records them, by `recording`; the steps themselves know of no library for it.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from typing import ParamSpec, Protocol, Self, TypeVar

Attribute = str | int | float | bool
_P = ParamSpec("_P")
_R = TypeVar("_R")


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


class _Unrecorded:
    """A span that nobody records."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def note(self, **attributes: Attribute) -> None:
        pass

    def quote(self, **texts: str) -> None:
        pass


class _Joined:
    """A span that several record."""

    def __init__(self, name: str, attributes: Mapping[str, Attribute], recorders: tuple[Recorder, ...]) -> None:
        self._begun = [recorder.span(name, attributes) for recorder in recorders]
        self._open = ExitStack()
        self._spans: list[Span] = []

    def __enter__(self) -> Self:
        self._spans = [self._open.enter_context(one) for one in self._begun]
        return self

    def __exit__(self, *error: object) -> None:
        self._open.__exit__(*error)  # type: ignore[arg-type]  # it is passed on as it came

    def note(self, **attributes: Attribute) -> None:
        for one in self._spans:
            one.note(**attributes)

    def quote(self, **texts: str) -> None:
        for one in self._spans:
            one.quote(**texts)


_UNRECORDED = _Unrecorded()
_recorders: ContextVar[tuple[Recorder, ...]] = ContextVar("docindex recorders", default=())


def span(name: str, **attributes: Attribute) -> AbstractContextManager[Span]:
    """A step of answering. Its name is one of few; what differs from request to request is in the attributes."""
    recorders = _recorders.get()
    if not recorders:
        return _UNRECORDED
    return recorders[0].span(name, attributes) if len(recorders) == 1 else _Joined(name, attributes, recorders)


def spanned(name: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Make each call of a function a span."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(function)
        def call(*arguments: _P.args, **options: _P.kwargs) -> _R:
            if not _recorders.get():
                return function(*arguments, **options)
            with span(name):
                return function(*arguments, **options)

        return call

    return decorate


@contextmanager
def recording(*recorders: Recorder) -> Iterator[None]:
    """Let recorders learn of all spans that begin within, in threads that are started for it as well."""
    token = _recorders.set(recorders)
    try:
        yield
    finally:
        _recorders.reset(token)
