"""Metrics of one server, in a registry of its own: counters and timers of requests and jobs.

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

    from docindex_dagster.serving.http.served_project import Served


_ANSWERS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_STEPS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_WRITTEN_S = (0.01, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0)
_STREAM = "text/event-stream"
_LEFT = frozenset({"CancelledError", "GeneratorExit"})  # how what nobody waits for ends
_REFUSALS = {303: "token", 401: "token", 403: "foreign", 413: "too large", 414: "too large", 421: "host", 503: "busy"}
# When each series was begun would be one more series each, which nobody asks for.
disable_created_metrics()  # type: ignore[no-untyped-call]  # it has no types


# By the names of spans: a metric, what it says, the attribute that tells its kinds apart, and its buckets.
_ANSWERS = {
    "search": ("search_duration", "How long searches took, by mode.", "mode", _ANSWERS_S),
    "context": ("context_duration", "How long contexts took, their search included.", None, _ANSWERS_S),
    "graph question": ("graph_question_duration", "How long questions to the graph took.", "question", _ANSWERS_S),
    "question": (
        "question_duration",
        "How long questions took to be answered, by who answers: model, agent, or nobody (passages alone).",
        "by",
        _WRITTEN_S,
    ),
    "first word": (
        "question_first_word",
        "How long it took from the end of the search to the first word of an answer.",
        None,
        _WRITTEN_S,
    ),
    "tool": ("mcp_tool_duration", "How long calls of agents took, by tool.", "tool", _ANSWERS_S),
}
_JOBS_S = (1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0)
_KINDS: tuple[str, ...] = get_args(Kind)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_FAILED = 500


class Metrics:
    """Counts and times requests and their steps. It is a recorder of spans, and threads may share it."""

    def __init__(self, served: "Served") -> None:
        """Begin with nothing counted."""
        registry = self._registry = CollectorRegistry()
        own = Series(registry)
        self._requests = own.counter(
            "docindex_http_requests_total",
            "Requests that are over, by method, route, and class of the status, as 2xx.",
            method=(),
            route=(),
            status=(),
        )
        self._latency = own.timer(
            "docindex_http_request_duration_seconds",
            "How long requests took, by method and route; streams of events are not among them.",
            _ANSWERS_S,
            method=(),
            route=(),
        )
        self.under_way = Gauge(
            "docindex_http_requests_in_progress", "Requests that are being answered.", registry=registry
        )
        self.streams = Gauge("docindex_http_event_streams", "Streams of events that are open.", registry=registry)
        self._refused = own.counter(
            "docindex_http_requests_refused_total",
            "Requests that the guard refused, by reason: token, host, foreign (of another site), busy, too large.",
            reason=(*_REFUSALS.values(),),
        )
        self._answers = {
            name: (own.timer(f"docindex_{metric}_seconds", text, buckets, **({label: ()} if label else {})), label)
            for name, (metric, text, label, buckets) in _ANSWERS.items()
        }
        self._steps = own.timer(
            "docindex_step_duration_seconds",
            "How long the steps of searches and contexts took, such as each retriever, fusing and ranking.",
            _STEPS_S,
            step=(),
        )
        self._failures = own.counter(
            "docindex_failures_total",
            "Searches, contexts, questions and tool calls that ended with an error, by its kind; (left): by a client.",
            operation=(),
            error=(),
        )
        self._memory = memory.MemoryFigures(registry)
        about = Gauge("docindex_build_info", "Which version answers; always 1.", ["version"], registry=registry)
        about.labels(__version__).set(1)
        for collector in (Published(served), JobFigures(served.jobs.all), memory.Domains(served)):
            registry.register(collector)
        ProcessCollector(registry=registry)
        self.span = Stopwatch(self.answered).span

    def answered(self, name: str, attributes: Mapping[str, Attribute], seconds: float, error: str | None) -> None:
        """Note that a step has ended, and with which error."""
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
            self._failures.labels(name, "(left)" if error in _LEFT else error).inc()

    def folded(self, done: FoldResult) -> None:
        """Note what a fold took that was done in a process of its own."""
        for name, seconds in done.timings:
            self.answered(name, {}, seconds, None)

    def requested(self, method: str, route: str | None, status: int, media_type: str, seconds: float) -> None:
        """Note that a request is over; `route` is None where it came to none, `status` 0 where its client had left."""
        named = route or "(none)"
        self._requests.labels(method, named, f"{status // 100}xx" if status else "(none)").inc()
        if not media_type.startswith(_STREAM):
            self._latency.labels(method, named).observe(seconds)
        if route is None and status in _REFUSALS:
            self._refused.labels(_REFUSALS[status]).inc()

    def text(self, accept: str) -> tuple[bytes, str]:
        """All metrics in a form that a client accepts, and the media type of it."""
        encode, media_type = choose_encoder(accept)
        return encode(self._registry), media_type


class JobFigures(Collector):
    """Counts the jobs when it is asked: those that have ended since it was asked last, each once."""

    def __init__(self, jobs: Callable[[], Sequence[Job]]) -> None:
        """`jobs` gives all that are known, those of others included."""
        self._jobs = jobs
        self._lock = Lock()
        self._counted: frozenset[str] | None = None  # None: nobody has asked yet
        own = Series(CollectorRegistry())
        ends = [state.value for state in State if state.has_ended]
        self._ended = own.counter(
            "docindex_jobs_ended_total", "Jobs that have ended, by kind and state.", kind=_KINDS, state=ends
        )
        self._took = own.timer(
            "docindex_job_duration_seconds", "How long jobs worked that have ended, by kind.", _JOBS_S, kind=_KINDS
        )

    def collect(self) -> Iterator[Metric]:
        """The metrics; of no jobs where they cannot be read."""
        found: Sequence[Job] = ()
        with suppress(DocindexError, OSError):
            found = self._jobs()
            self._count(found)
        counts: Counter[tuple[str, State]] = Counter((job.request.kind, job.state) for job in found)
        yield gauge(
            "docindex_jobs",
            "Jobs that are not over, by kind and state.",
            ["kind", "state"],
            (((kind, state), counts[kind, state]) for kind in _KINDS for state in State if not state.has_ended),
        )
        waiting = sum(job.state is State.QUEUED for job in found)
        yield GaugeMetricFamily("docindex_jobs_queue_length", "Jobs that wait for others to end.", value=waiting)
        yield from self._ended.collect()
        yield from self._took.collect()

    def _count(self, found: Sequence[Job]) -> None:
        """Count those that have ended since; the first time none, since they were counted by the server before."""
        ended = {job.id: job for job in found if job.state.has_ended}
        with self._lock:
            fresh = ended.keys() - self._counted if self._counted is not None else set()
            self._counted = frozenset(ended)
        for job in map(ended.__getitem__, fresh):
            self._ended.labels(job.request.kind, job.state.value).inc()
            if job.seconds is not None:
                self._took.labels(job.request.kind).observe(job.seconds)


class Measured:
    """Measures requests by the route that answers them: never by their paths, of which there are too many."""

    def __init__(self, app: "ASGIApp", metrics: Metrics, further: tuple[Recorder, ...]) -> None:
        """Measure an application; `further` recorders learn of the steps as well."""
        self._app = app
        self._metrics = metrics
        self._recorders = (metrics, *further)
        self._routes: dict[object, str] | None = None

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        metrics, begun = self._metrics, time.perf_counter()
        status, media_type = 0, ""

        async def note_and_send(message: "Message") -> None:
            nonlocal status, media_type
            if message["type"] == "http.response.start":
                status = message["status"]
                media_type = Headers(raw=message.get("headers", [])).get("content-type", "")
                metrics.streams.inc(_is_stream(media_type))
            await send(message)

        metrics.under_way.inc()
        try:
            with recording(*self._recorders):
                await self._app(scope, receive, note_and_send)
        except Exception:
            status = _FAILED  # a layer around this one answers it
            raise
        finally:
            metrics.under_way.dec()
            metrics.streams.dec(_is_stream(media_type))
            method = scope["method"] if scope["method"] in _METHODS else "other"
            metrics.requested(method, self._route(scope), status, media_type, time.perf_counter() - begun)

    def _route(self, scope: "Scope") -> str | None:
        """The template of the path that was asked for; None where there is no such route."""
        if self._routes is None:
            found = iter_route_contexts(scope["app"].routes)
            # What is mounted, as a folder of files, is an application rather than an endpoint.
            self._routes = {one.endpoint or one.app: one.path_format or "" for one in found}
        return self._routes.get(scope.get("endpoint"))


def _is_stream(media_type: str) -> bool:
    return media_type.startswith("text/event-stream")


def install(app: FastAPI, metrics: Metrics, further: tuple[Recorder, ...]) -> None:
    """Measure an application, and tell what was measured at `/metrics`. It is to be the last layer that is added."""

    @app.get("/metrics", include_in_schema=False)
    def figures(request: Request) -> Response:
        text, media_type = metrics.text(request.headers.get("accept", ""))
        return Response(text, media_type=media_type)

    app.add_middleware(Measured, metrics=metrics, further=further)
