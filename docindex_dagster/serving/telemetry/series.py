"""Series of metrics that are there from the start, and values that cost something to find out."""

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from threading import Lock
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily

_Value = TypeVar("_Value")


class Kept(Generic[_Value]):
    """A value that is found out when it is asked for, if the last one is too old. Threads may share it."""

    def __init__(self, find: Callable[[], _Value], for_s: float) -> None:
        self._find = find
        self._for_s = for_s
        self._lock = Lock()
        self._last: tuple[float, _Value] | None = None

    def get(self) -> _Value:
        """The value; an error of finding it out is raised, and not kept."""
        with self._lock:
            if self._last is None or time.monotonic() - self._last[0] >= self._for_s:
                self._last = (time.monotonic(), self._find())
            return self._last[1]


class Series:
    """Makes the metrics of a registry, with a series of zeros for each combination of labels that is known."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def counter(self, name: str, help_text: str, **labels: Sequence[str]) -> Counter:
        """A counter; of a label without values, the series come as they are counted."""
        made = Counter(name, help_text, [*labels], registry=self._registry)
        for values in product(*labels.values()) if labels else ():
            made.labels(*values)
        return made

    def timer(self, name: str, help_text: str, buckets: Sequence[float], **labels: Sequence[str]) -> Histogram:
        """A histogram of seconds, or of other numbers; labels as for a counter."""
        made = Histogram(name, help_text, [*labels], buckets=buckets, registry=self._registry)
        for values in product(*labels.values()) if labels else ():
            made.labels(*values)
        return made


def gauge(
    name: str, help_text: str, labels: Sequence[str], samples: Iterable[tuple[Sequence[str], float | None]]
) -> GaugeMetricFamily:
    """A metric of values that were looked up, each with those of its labels; None for what is not known."""
    made = GaugeMetricFamily(name, help_text, labels=labels)
    for values, value in samples:
        if value is not None:
            made.add_metric(values, value)
    return made
