"""Metrics of memory: requests, the duration of their steps, and the size of the domains.

Labels never name a session or a domain, because users can create any number of them.
"""

from collections import Counter as Counts
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, get_args

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.files import folder_bytes
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.traces import Attribute
from docindex_dagster.memory import domains
from docindex_dagster.memory.folded_messages import offsets_of
from docindex_dagster.memory.log import NOTHING, open_log
from docindex_dagster.memory.message import Message, Role
from docindex_dagster.memory.results import ExtractionState
from docindex_dagster.serving.telemetry.series import Cached, Series, gauge
from docindex_dagster.stores.generation import read_generation

if TYPE_CHECKING:
    from docindex_dagster.core.settings import Settings
    from docindex_dagster.serving.http.served_project import ServedProject

PREFIX = "memory."
_DOMAINS_MAX_AGE_S = 10.0
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_CONCEPTS = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 40.0)
_KINDS = ("message", "tool result")
_OPERATIONS = ("ingest", "recall", "fold", "erase")
_STEPS = (
    *("admit", "anchors", "append", "cut", "extract"),  # of an ingestion
    *("refresh", "embed query", "rank"),  # of a recall
    *("read", "chunk", "embed", "graph", "publish"),  # of a fold
)
_REJECTIONS = {
    "LongMessageError": "length",
    "MessageRateError": "rate",
    "QuotaError": "quota",
    "FullDiskError": "disk",
    "LogError": "log",
}
_OTHER = "other"


class MemoryFigures:
    """Counters and timers for a server's work with memory. Threads may share them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register all series with zeros, so that they exist from the start."""
        own = Series(registry)

        def counter(name: str, help_text: str, **labels: Sequence[str]) -> Counter:
            return own.counter(f"docindex_memory_{name}_total", help_text, **labels)

        self._ingested = counter(
            "ingested", "Acknowledged messages, by kind and role.", kind=_KINDS, role=get_args(Role)
        )
        self._repeats = counter("repeats", "Acknowledged messages that had been stored before.")
        self._chunks = counter("chunks", "Chunks of acknowledged messages.")
        self._concepts = counter("concepts", "Concepts found in acknowledged messages before the response.")
        self._edges = counter("edges", "Edges created from these concepts.")
        self._extractions = counter(
            "extractions",
            "Extractions before the response, by state: done, pending (until a fold), none.",
            state=get_args(ExtractionState),
        )
        self._rejected = counter(
            "refused",
            "Rejected messages, by reason: length, rate, quota, disk, log, other.",
            reason=(*_REJECTIONS.values(), _OTHER),
        )
        self._density = own.timer(
            "docindex_memory_concepts_per_chunk", "Concepts per chunk, for each message.", _CONCEPTS
        )
        took = "Duration of ingestions, recalls, folds and erasures."
        self._took = own.timer("docindex_memory_duration_seconds", took, _SECONDS, operation=_OPERATIONS)
        steps = "Duration of the steps of these operations."
        self._steps = own.timer("docindex_memory_step_duration_seconds", steps, _SECONDS, step=_STEPS)

    def ended(self, name: str, attributes: Mapping[str, Attribute], seconds: float, error: str | None) -> None:
        """Record the end of a step, with its attributes and the name of its error."""
        step = name.removeprefix(PREFIX)
        if step not in _OPERATIONS:
            self._steps.labels(step).observe(seconds)
            return
        self._took.labels(step).observe(seconds)
        if step == "ingest":
            if error is None:
                self._acknowledged(attributes)
            else:
                self._rejected.labels(_REJECTIONS.get(error, _OTHER)).inc()

    def _acknowledged(self, attributes: Mapping[str, Attribute]) -> None:
        chunks, concepts = int(attributes["chunks"]), int(attributes["concepts"])
        self._ingested.labels(attributes["kind"], attributes["role"]).inc()
        self._repeats.inc(bool(attributes["is_repeat"]))
        self._chunks.inc(chunks)
        self._concepts.inc(concepts)
        self._edges.inc(int(attributes["edges"]))
        self._extractions.labels(attributes["extraction"]).inc()
        self._density.observe(concepts / max(chunks, 1))


class Domains(Collector):
    """Collector that measures the domains on each scrape."""

    def __init__(self, served: "ServedProject") -> None:
        self._sizes = Cached(lambda: _sizes(served.settings), _DOMAINS_MAX_AGE_S)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics; zeros if nothing can be read."""
        found: Counts[str] = Counts()
        with suppress(DocindexError, OSError):
            found = self._sizes.get()
        yield gauge(
            "docindex_memory_messages",
            "Messages of all domains: folded, or still in the tail of a log.",
            ["where"],
            (((where,), found[where]) for where in ("folded", "tail")),
        )
        for name, help_text in (
            ("domains", "Domains with a log."),
            ("tombstones", "Tombstones whose messages are still in files."),
            ("folded_chunks", "Chunks of folded messages."),
            ("folded_edges", "Edges in the graphs of folded messages."),
            ("size_bytes", "Size of all files of the domains, in bytes."),
        ):
            yield GaugeMetricFamily(f"docindex_memory_{name}", help_text, value=found[name])


def _sizes(settings: "Settings") -> Counts[str]:
    """Return the totals of all domains. An unreadable domain counts only with its bytes."""
    layout = Layout(settings.home)
    keys = domains.domains(layout)
    found = Counts(domains=len(keys), size_bytes=folder_bytes(layout.memory) if keys else 0)
    for key in keys:
        with suppress(DocindexError, OSError):
            _count(layout, key, found)
    return found


def _count(layout: Layout, key: str, found: Counts[str]) -> None:
    home = domains.home(layout, key)
    generation = read_generation(home)
    folded = offsets_of(home, key) or NOTHING
    tail = [entry for entry in open_log(layout, key).read().entries if not folded.covers(entry.position)]
    messages = sum(isinstance(entry.record, Message) for entry in tail)
    found.update(tail=messages, tombstones=len(tail) - messages)
    if generation and (source := generation.sources.get(key)):
        found.update(folded=source.files, folded_chunks=source.chunks, folded_edges=source.edges)
