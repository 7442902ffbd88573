"""Metric series that exist from the start, and a cache for values that are expensive to compute."""

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from threading import Lock
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily

_Value = TypeVar("_Value")


class Cached(Generic[_Value]):
    """A cached value, recomputed on access when it is too old. Threads may share it."""

    def __init__(self, compute: Callable[[], _Value], max_age_s: float) -> None:
        self._compute = compute
        self._max_age_s = max_age_s
        self._lock = Lock()
        self._cached: tuple[float, _Value] | None = None

    def get(self) -> _Value:
        """Return the value. An error while computing it is raised and not cached."""
        with self._lock:
            if self._cached is None or time.monotonic() - self._cached[0] >= self._max_age_s:
                self._cached = (time.monotonic(), self._compute())
            return self._cached[1]


class Series:
    """Factory for the metrics of a registry, with a zero series for each known combination of labels."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def counter(self, name: str, help_text: str, **labels: Sequence[str]) -> Counter:
        """Create a counter. For a label without known values, series appear as they are counted."""
        created = Counter(name, help_text, [*labels], registry=self._registry)
        for values in product(*labels.values()) if labels else ():
            created.labels(*values)
        return created

    def timer(self, name: str, help_text: str, buckets: Sequence[float], **labels: Sequence[str]) -> Histogram:
        """Create a histogram of seconds or other numbers. Labels work as for a counter."""
        created = Histogram(name, help_text, [*labels], buckets=buckets, registry=self._registry)
        for values in product(*labels.values()) if labels else ():
            created.labels(*values)
        return created


def gauge(
    name: str, help_text: str, labels: Sequence[str], samples: Iterable[tuple[Sequence[str], float | None]]
) -> GaugeMetricFamily:
    """Create a gauge from samples, each with its label values. Samples with None are left out."""
    created = GaugeMetricFamily(name, help_text, labels=labels)
    for values, value in samples:
        if value is not None:
            created.add_metric(values, value)
    return created
