"""Metrics of one server, in its own registry: counters and timers of requests and jobs.

Metrics of jobs, the disk and the published index (`published`) are collected when Prometheus scrapes.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, get_args

from fastapi import FastAPI, Request, Response
from fastapi.routing import iter_route_contexts
from prometheus_client import CollectorRegistry, Gauge, Metric, disable_created_metrics
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from starlette.datastructures import Headers

from docindex_dagster import __version__
from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.traces import Attribute, Recorder, recording
from docindex_dagster.runner.entries import Kind, State
from docindex_dagster.serving.fold_scheduler import FoldResult, Stopwatch
from docindex_dagster.serving.jobs.model import Job
from docindex_dagster.serving.telemetry import memory
from docindex_dagster.serving.telemetry.published import Published
from docindex_dagster.serving.telemetry.series import Series, gauge

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from docindex_dagster.serving.http.served_project import ServedProject


_ANSWERS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_STEPS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_WRITTEN_S = (0.01, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0)
_STREAM = "text/event-stream"
_DISCONNECT_ERRORS = frozenset({"CancelledError", "GeneratorExit"})  # raised when a client has disconnected
_REJECTIONS = {303: "token", 401: "token", 403: "foreign", 413: "too large", 414: "too large", 421: "host", 503: "busy"}
# Creation timestamps would double the number of series, and nobody uses them.
disable_created_metrics()  # type: ignore[no-untyped-call]  # it is untyped


# For each span name: the metric, its help text, the attribute that becomes its label, and its buckets.
_ANSWERS = {
    "search": ("search_duration", "Duration of searches, by mode.", "mode", _ANSWERS_S),
    "context": ("context_duration", "Duration of contexts, including their search.", None, _ANSWERS_S),
    "graph question": ("graph_question_duration", "Duration of graph questions.", "question", _ANSWERS_S),
    "question": (
        "question_duration",
        "Duration of answering questions, by who answers: model, agent, or nobody (passages only).",
        "by",
        _WRITTEN_S,
    ),
    "first word": (
        "question_first_word",
        "Time from the end of the search to the first word of an answer.",
        None,
        _WRITTEN_S,
    ),
    "tool": ("mcp_tool_duration", "Duration of agents' tool calls, by tool.", "tool", _ANSWERS_S),
}
_JOBS_S = (1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0)
_KINDS: tuple[str, ...] = get_args(Kind)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_FAILED = 500


class Metrics:
    """Counters and timers of requests and their steps. They record spans, and threads may share them."""

    def __init__(self, served: "ServedProject") -> None:
        """Register the metrics."""
        registry = self._registry = CollectorRegistry()
        own = Series(registry)
        self._requests = own.counter(
            "docindex_http_requests_total",
            "Completed requests, by method, route and status class, such as 2xx.",
            method=(),
            route=(),
            status=(),
        )
        self._latency = own.timer(
            "docindex_http_request_duration_seconds",
            "Duration of requests except event streams, by method and route.",
            _ANSWERS_S,
            method=(),
            route=(),
        )
        self.in_progress = Gauge("docindex_http_requests_in_progress", "Requests in progress.", registry=registry)
        self.streams = Gauge("docindex_http_event_streams", "Open event streams.", registry=registry)
        self._rejected = own.counter(
            "docindex_http_requests_refused_total",
            "Requests rejected by the guard, by reason: token, host, foreign (another site), busy, too large.",
            reason=(*_REJECTIONS.values(),),
        )
        self._answers = {
            name: (own.timer(f"docindex_{metric}_seconds", text, buckets, **({label: ()} if label else {})), label)
            for name, (metric, text, label, buckets) in _ANSWERS.items()
        }
        self._steps = own.timer(
            "docindex_step_duration_seconds",
            "Duration of the steps of searches and contexts, such as each retriever, fusion and ranking.",
            _STEPS_S,
            step=(),
        )
        self._failures = own.counter(
            "docindex_failures_total",
            "Searches, contexts, questions and tool calls that failed, by error; (left): the client disconnected.",
            operation=(),
            error=(),
        )
        self._memory = memory.MemoryFigures(registry)
        info = Gauge("docindex_build_info", "The version of the server; always 1.", ["version"], registry=registry)
        info.labels(__version__).set(1)
        for collector in (Published(served), JobFigures(served.jobs.all), memory.Domains(served)):
            registry.register(collector)
        ProcessCollector(registry=registry)
        self.span = Stopwatch(self.answered).span

    def answered(self, name: str, attributes: Mapping[str, Attribute], seconds: float, error: str | None) -> None:
        """Record the end of a step, with the name of its error."""
        if name.startswith(memory.PREFIX):
            self._memory.ended(name, attributes, seconds, error)
            return
        measured = self._answers.get(name)
        if measured is None:
            self._steps.labels(name).observe(seconds)
            return
        histogram, label = measured
        (histogram.labels(attributes[label]) if label else histogram).observe(seconds)
        if error is not None:
            self._failures.labels(name, "(left)" if error in _DISCONNECT_ERRORS else error).inc()

    def folded(self, done: FoldResult) -> None:
        """Record the timings of a fold that ran in its own process."""
        for name, seconds in done.timings:
            self.answered(name, {}, seconds, None)

    def requested(self, method: str, route: str | None, status: int, media_type: str, seconds: float) -> None:
        """Record a request. `route` is None if none matched; `status` is 0 if the client disconnected before."""
        named = route or "(none)"
        self._requests.labels(method, named, f"{status // 100}xx" if status else "(none)").inc()
        if not media_type.startswith(_STREAM):
            self._latency.labels(method, named).observe(seconds)
        if route is None and status in _REJECTIONS:
            self._rejected.labels(_REJECTIONS[status]).inc()

    def text(self, accept: str) -> tuple[bytes, str]:
        """Return all metrics in a format that the client accepts, with its media type."""
        encode, media_type = choose_encoder(accept)
        return encode(self._registry), media_type


class JobFigures(Collector):
    """Collector that counts jobs on each scrape. Each job that ended since the last scrape counts once."""

    def __init__(self, jobs: Callable[[], Sequence[Job]]) -> None:
        """Create a collector. `jobs` returns all known jobs and runs."""
        self._jobs = jobs
        self._lock = Lock()
        self._counted: frozenset[str] | None = None  # None before the first scrape
        own = Series(CollectorRegistry())
        ends = [state.value for state in State if state.has_ended]
        self._ended = own.counter(
            "docindex_jobs_ended_total", "Jobs that have ended, by kind and state.", kind=_KINDS, state=ends
        )
        self._took = own.timer(
            "docindex_job_duration_seconds", "Duration of jobs that have ended, by kind.", _JOBS_S, kind=_KINDS
        )

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; without jobs if they cannot be read."""
        found: Sequence[Job] = ()
        with suppress(DocindexError, OSError):
            found = self._jobs()
            self._count(found)
        counts: Counter[tuple[str, State]] = Counter((job.request.kind, job.state) for job in found)
        yield gauge(
            "docindex_jobs",
            "Jobs that have not ended, by kind and state.",
            ["kind", "state"],
            (((kind, state), counts[kind, state]) for kind in _KINDS for state in State if not state.has_ended),
        )
        waiting = sum(job.state is State.QUEUED for job in found)
        yield GaugeMetricFamily("docindex_jobs_queue_length", "Jobs waiting for other jobs to end.", value=waiting)
        yield from self._ended.collect()
        yield from self._took.collect()

    def _count(self, found: Sequence[Job]) -> None:
        """Count the jobs that ended since the last scrape. The first scrape counts none: the last server did."""
        ended = {job.id: job for job in found if job.state.has_ended}
        with self._lock:
            fresh = ended.keys() - self._counted if self._counted is not None else set()
            self._counted = frozenset(ended)
        for job in map(ended.__getitem__, fresh):
            self._ended.labels(job.request.kind, job.state.value).inc()
            if job.seconds is not None:
                self._took.labels(job.request.kind).observe(job.seconds)


class MeasuringMiddleware:
    """Middleware that measures requests by route. Paths would create too many series."""

    def __init__(self, app: "ASGIApp", metrics: Metrics, further: tuple[Recorder, ...]) -> None:
        """Measure an application. The `further` recorders receive the spans as well."""
        self._app = app
        self._metrics = metrics
        self._recorders = (metrics, *further)
        self._routes: dict[object, str] | None = None

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Measure a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        metrics, started_at = self._metrics, time.perf_counter()
        status, media_type = 0, ""

        async def note_and_send(message: "Message") -> None:
            nonlocal status, media_type
            if message["type"] == "http.response.start":
                status = message["status"]
                media_type = Headers(raw=message.get("headers", [])).get("content-type", "")
                metrics.streams.inc(_is_stream(media_type))
            await send(message)

        metrics.in_progress.inc()
        try:
            with recording(*self._recorders):
                await self._app(scope, receive, note_and_send)
        except Exception:
            status = _FAILED  # an outer layer sends the response
            raise
        finally:
            metrics.in_progress.dec()
            metrics.streams.dec(_is_stream(media_type))
            method = scope["method"] if scope["method"] in _METHODS else "other"
            metrics.requested(method, self._route(scope), status, media_type, time.perf_counter() - started_at)

    def _route(self, scope: "Scope") -> str | None:
        """Return the path template of the matching route; None if there is none."""
        if self._routes is None:
            found = iter_route_contexts(scope["app"].routes)
            # A mounted folder of files is an application rather than an endpoint.
            self._routes = {route.endpoint or route.app: route.path_format or "" for route in found}
        return self._routes.get(scope.get("endpoint"))


def _is_stream(media_type: str) -> bool:
    return media_type.startswith("text/event-stream")


def install(app: FastAPI, metrics: Metrics, further: tuple[Recorder, ...]) -> None:
    """Measure an application and expose the metrics at `/metrics`. Must be the last middleware to be added."""

    @app.get("/metrics", include_in_schema=False)
    def figures(request: Request) -> Response:
        text, media_type = metrics.text(request.headers.get("accept", ""))
        return Response(text, media_type=media_type)

    app.add_middleware(MeasuringMiddleware, metrics=metrics, further=further)
