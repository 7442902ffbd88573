"""Traces of requests by OpenTelemetry, sent by OTLP over HTTP where the environment says so."""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from importlib.util import find_spec
from threading import Thread
from types import TracebackType
from typing import TYPE_CHECKING, Self

from fastapi.telemetry import TelemetryConfig
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Span, StatusCode

from docindex_dagster import __version__
from docindex_dagster.core.installation import needs_extra
from docindex_dagster.core.traces import Attribute

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_SDK = "opentelemetry.sdk"
_EXPORTER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
_LONGEST_END_S = 3.0
# What FastAPI notes of an address: its query may be a question, and its path that of an indexed file.
_TEXTS_OF_ADDRESSES = ("url.path", "url.query")
_REDACTED = "REDACTED"
OFF = TelemetryConfig(tracing=False, metrics=False, logs=False, auto_configure=False)


class Tracing:
    """Makes spans of a provider, by the standard of OpenTelemetry; a recorder of spans."""

    def __init__(self, provider: "TracerProvider", *, has_texts: bool = False) -> None:
        """Trace by a provider, which ends with this.

        Args:
            provider: where spans go.
            has_texts: whether spans hold what users ask for.
        """
        if not has_texts:
            provider.add_span_processor(_without_texts())
        self._provider = provider
        self._has_texts = has_texts
        self._tracer = provider.get_tracer("docindex", __version__)

    @property
    def of_requests(self) -> TelemetryConfig:
        """What FastAPI has to know to trace each request; it goes on with the trace of a client (`traceparent`)."""
        return {**OFF, "tracing": True, "tracer_provider": self._provider, "operation_spans": False}

    def span(self, name: str, attributes: Mapping[str, Attribute]) -> "_Step":
        """A step of the request that is being answered."""
        opened = self._tracer.start_as_current_span(
            name, attributes=_named(attributes), record_exception=False, set_status_on_exception=False
        )
        return _Step(opened, has_texts=self._has_texts)

    def close(self) -> None:
        """Send what is left, and give up on it after some seconds: nobody may be there."""
        ending = Thread(target=self._provider.shutdown, daemon=True)
        ending.start()
        ending.join(_LONGEST_END_S)


class _Step:
    """A span of OpenTelemetry."""

    __slots__ = ("_has_texts", "_opened", "_span")

    def __init__(self, opened: "AbstractContextManager[Span]", *, has_texts: bool) -> None:
        self._opened = opened
        self._has_texts = has_texts
        self._span: Span = INVALID_SPAN

    def __enter__(self) -> Self:
        self._span = self._opened.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:  # its message may repeat what was asked
            self._span.set_attribute("error.type", kind.__name__)
            self._span.set_status(StatusCode.ERROR)
        self._opened.__exit__(kind, error, trace)

    def note(self, **attributes: Attribute) -> None:
        """Add attributes."""
        self._span.set_attributes(_named(attributes))

    def quote(self, **texts: str) -> None:
        """Add texts, where they are wanted."""
        if self._has_texts:
            self._span.set_attributes(_named(texts))


def _named(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    return {f"docindex.{name}": value for name, value in attributes.items()}


def _without_texts() -> "SpanProcessor":
    """Takes the texts out of what FastAPI notes of a request, as its span begins."""
    from opentelemetry.sdk.trace import Span as Begun
    from opentelemetry.sdk.trace import SpanProcessor

    class WithoutTexts(SpanProcessor):
        def on_start(self, span: Begun, parent_context: Context | None = None) -> None:
            super().on_start(span, parent_context)
            for name in _TEXTS_OF_ADDRESSES:
                if span.attributes is not None and name in span.attributes:
                    span.set_attribute(name, _REDACTED)

    return WithoutTexts()


def of_environment(warn: Callable[[str], None], *, has_texts: bool) -> Tracing | None:
    """Tracing as OpenTelemetry's variables say; None where they name nobody who collects traces.

    Args:
        warn: called with how to install what is missing, where they do, and no trace is made.
        has_texts: whether spans hold what users ask for.
    """
    if not _is_wanted():
        return None
    if not _is_installed():
        warn(needs_extra("tracing", "otel"))
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    ours = Resource.create().merge(Resource({"service.name": "docindex", "service.version": __version__}))
    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES have the last word.
    provider = TracerProvider(resource=ours.merge(OTELResourceDetector().detect()), shutdown_on_exit=False)
    tracing = Tracing(provider, has_texts=has_texts)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return tracing


def _is_wanted() -> bool:
    is_off = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    is_elsewhere = os.environ.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower() not in {"", "otlp"}
    return not is_off and not is_elsewhere and any(os.environ.get(name) for name in _ENDPOINTS)


def _is_installed() -> bool:
    try:
        return find_spec(_SDK) is not None and find_spec(_EXPORTER) is not None
    except ModuleNotFoundError:  # a package around it is missing
        return False
