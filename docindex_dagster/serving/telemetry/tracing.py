"""OpenTelemetry traces of requests, exported with OTLP over HTTP if the environment is configured for it."""

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
from docindex_dagster.core.installation import missing_extra_message
from docindex_dagster.core.traces import Attribute

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_SDK = "opentelemetry.sdk"
_EXPORTER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
_CLOSE_TIMEOUT_S = 3.0
# FastAPI records these. The query may contain a question, and the path that of an indexed file.
_URL_ATTRIBUTES = ("url.path", "url.query")
_REDACTED = "REDACTED"
OFF = TelemetryConfig(tracing=False, metrics=False, logs=False, auto_configure=False)


class Tracing:
    """Recorder that creates OpenTelemetry spans with a provider."""

    def __init__(self, provider: "TracerProvider", *, has_texts: bool = False) -> None:
        """Trace with a provider, which is shut down on close.

        Args:
            provider: the provider of spans.
            has_texts: whether spans contain users' queries.
        """
        if not has_texts:
            provider.add_span_processor(_redacting_processor())
        self._provider = provider
        self._has_texts = has_texts
        self._tracer = provider.get_tracer("docindex", __version__)

    @property
    def for_fastapi(self) -> TelemetryConfig:
        """The settings with which FastAPI traces each request. It continues the client's trace (`traceparent`)."""
        return {**OFF, "tracing": True, "tracer_provider": self._provider, "operation_spans": False}

    def span(self, name: str, attributes: Mapping[str, Attribute]) -> "_TraceSpan":
        """Return a span for a step of the current request."""
        opened = self._tracer.start_as_current_span(
            name, attributes=_prefixed(attributes), record_exception=False, set_status_on_exception=False
        )
        return _TraceSpan(opened, has_texts=self._has_texts)

    def close(self) -> None:
        """Send the remaining spans, but give up after some seconds, since the collector may be down."""
        ending = Thread(target=self._provider.shutdown, daemon=True)
        ending.start()
        ending.join(_CLOSE_TIMEOUT_S)


class _TraceSpan:
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
        if kind is not None:  # its message may repeat the query
            self._span.set_attribute("error.type", kind.__name__)
            self._span.set_status(StatusCode.ERROR)
        self._opened.__exit__(kind, error, trace)

    def note(self, **attributes: Attribute) -> None:
        """Add attributes."""
        self._span.set_attributes(_prefixed(attributes))

    def quote(self, **texts: str) -> None:
        """Add texts, if spans may contain them."""
        if self._has_texts:
            self._span.set_attributes(_prefixed(texts))


def _prefixed(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    return {f"docindex.{name}": value for name, value in attributes.items()}


def _redacting_processor() -> "SpanProcessor":
    """Return a processor that removes texts from FastAPI's attributes when a span starts."""
    from opentelemetry.sdk.trace import Span as StartedSpan
    from opentelemetry.sdk.trace import SpanProcessor

    class RedactingProcessor(SpanProcessor):
        def on_start(self, span: StartedSpan, parent_context: Context | None = None) -> None:
            super().on_start(span, parent_context)
            for name in _URL_ATTRIBUTES:
                if span.attributes is not None and name in span.attributes:
                    span.set_attribute(name, _REDACTED)

    return RedactingProcessor()


def tracing_from_environment(warn: Callable[[str], None], *, has_texts: bool) -> Tracing | None:
    """Create tracing as configured by OpenTelemetry's variables; None if they name no collector.

    Args:
        warn: called with install instructions if tracing is configured but a package is missing.
        has_texts: whether spans contain users' queries.
    """
    if not _is_enabled():
        return None
    if not _is_installed():
        warn(missing_extra_message("tracing", "otel"))
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    ours = Resource.create().merge(Resource({"service.name": "docindex", "service.version": __version__}))
    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
    provider = TracerProvider(resource=ours.merge(OTELResourceDetector().detect()), shutdown_on_exit=False)
    tracing = Tracing(provider, has_texts=has_texts)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return tracing


def _is_enabled() -> bool:
    is_off = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    is_elsewhere = os.environ.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower() not in {"", "otlp"}
    return not is_off and not is_elsewhere and any(os.environ.get(name) for name in _ENDPOINTS)


def _is_installed() -> bool:
    try:
        return find_spec(_SDK) is not None and find_spec(_EXPORTER) is not None
    except ModuleNotFoundError:  # a parent package is missing
        return False
