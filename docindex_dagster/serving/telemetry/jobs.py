"""The jobs of a server as metrics, with the runs that others started."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from threading import Lock
from typing import get_args

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from docindex_dagster.core.errors import DocindexError
from docindex_dagster.runner.entries import Kind, State
from docindex_dagster.serving.jobs.model import Job
from docindex_dagster.serving.telemetry.series import Series, gauge

_JOBS_S = (1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0)
_KINDS: tuple[str, ...] = get_args(Kind)


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
