"""Memory as metrics: what is written and asked, how long its steps take, and how the domains grow.

No label is a session or a domain: they are as many as users want.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.files import folder_bytes
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.traces import Attribute
from docindex_dagster.memory import domains
from docindex_dagster.memory.folded import offsets_of
from docindex_dagster.memory.log import NOTHING, open_log
from docindex_dagster.memory.message import Message, Role
from docindex_dagster.memory.results import ExtractionState
from docindex_dagster.serving.telemetry.kept import Kept
from docindex_dagster.stores.generation import read_generation

if TYPE_CHECKING:
    from docindex_dagster.core.settings import Settings
    from docindex_dagster.serving.http.served import Served

PREFIX = "memory."
_DOMAINS_FOR_S = 10.0
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_CONCEPTS = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 40.0)
_KINDS = ("message", "tool result")
_OPERATIONS = ("ingest", "recall", "fold", "erase")
_STEPS = (
    *("admit", "anchors", "append", "cut", "extract"),  # of an ingestion
    *("refresh", "embed query", "rank"),  # of a recall
    *("read", "chunk", "embed", "graph", "publish"),  # of a fold
)
_REFUSALS = {
    "LongMessageError": "length",
    "RateError": "rate",
    "QuotaError": "quota",
    "FullDiskError": "disk",
    "LogError": "log",
}
_OTHER = "other"


class MemoryFigures:
    """Counts and times what a server does with memory; threads may share it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Begin with nothing counted; each series is there from the start."""
        self._registry = registry
        self._ingested = self._counter("ingested", "Messages that are acknowledged, by kind and role.", "kind", "role")
        self._repeats = self._counter("repeats", "Messages among them that were there before.")
        self._chunks = self._counter("chunks", "Chunks of acknowledged messages.")
        self._concepts = self._counter("concepts", "Concepts that were found in them before the answer.")
        self._edges = self._counter("edges", "Edges that they led to.")
        self._extractions = self._counter(
            "extractions", "Extractions before an answer, by state: done, pending (until a fold), none.", "state"
        )
        self._refused = self._counter(
            "refused", "Messages that were refused, by reason: length, rate, quota, disk, log, other.", "reason"
        )
        self._density = Histogram(
            "docindex_memory_concepts_per_chunk",
            "How many concepts a chunk has, by message.",
            buckets=_CONCEPTS,
            registry=registry,
        )
        self._took = self._timed("duration", "How long ingestions, recalls, folds and erasures took.", "operation")
        self._steps = self._timed("step_duration", "How long the steps of these took.", "step")
        self._begin()

    def ended(self, name: str, known: Mapping[str, Attribute], seconds: float, error: str | None) -> None:
        """Note that a step has ended: what was known of it, and with which error."""
        step = name.removeprefix(PREFIX)
        if step not in _OPERATIONS:
            self._steps.labels(step).observe(seconds)
            return
        self._took.labels(step).observe(seconds)
        if step == "ingest":
            if error is None:
                self._acknowledged(known)
            else:
                self._refused.labels(_REFUSALS.get(error, _OTHER)).inc()

    def _acknowledged(self, known: Mapping[str, Attribute]) -> None:
        chunks, concepts = int(known["chunks"]), int(known["concepts"])
        self._ingested.labels(known["kind"], known["role"]).inc()
        self._repeats.inc(bool(known["is_repeat"]))
        self._chunks.inc(chunks)
        self._concepts.inc(concepts)
        self._edges.inc(int(known["edges"]))
        self._extractions.labels(known["extraction"]).inc()
        self._density.observe(concepts / max(chunks, 1))

    def _begin(self) -> None:
        for kind in _KINDS:
            for role in get_args(Role):
                self._ingested.labels(kind, role)
        for state in get_args(ExtractionState):
            self._extractions.labels(state)
        for reason in (*_REFUSALS.values(), _OTHER):
            self._refused.labels(reason)
        for operation in _OPERATIONS:
            self._took.labels(operation)
        for step in _STEPS:
            self._steps.labels(step)

    def _counter(self, name: str, help_text: str, *labels: str) -> Counter:
        return Counter(f"docindex_memory_{name}_total", help_text, labels, registry=self._registry)

    def _timed(self, name: str, help_text: str, label: str) -> Histogram:
        return Histogram(
            f"docindex_memory_{name}_seconds", help_text, [label], buckets=_SECONDS, registry=self._registry
        )


@dataclass(frozen=True, slots=True)
class _Sizes:
    """All domains of a project together."""

    domains: int = 0
    folded: int = 0  # messages
    tail: int = 0
    tombstones: int = 0
    chunks: int = 0
    edges: int = 0
    bytes: int = 0


class Domains(Collector):
    """Looks at the domains when it is asked."""

    def __init__(self, served: "Served") -> None:
        self._sizes = Kept(lambda: _sizes(served.settings), _DOMAINS_FOR_S)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The metrics; zeros where nothing can be read."""
        found = _Sizes()
        with suppress(DocindexError, OSError):
            found = self._sizes.get()
        messages = GaugeMetricFamily(
            "docindex_memory_messages", "Messages of all domains: folded, or in the tail of a log.", labels=["where"]
        )
        messages.add_metric(["folded"], found.folded)
        messages.add_metric(["tail"], found.tail)
        yield messages
        for name, help_text, value in (
            ("domains", "Domains that have a log.", found.domains),
            ("tombstones", "Tombstones whose messages lie in files yet.", found.tombstones),
            ("folded_chunks", "Chunks of messages that are folded.", found.chunks),
            ("folded_edges", "Edges of their graphs.", found.edges),
            ("size_bytes", "Bytes of all files of the domains.", found.bytes),
        ):
            gauge = GaugeMetricFamily(f"docindex_memory_{name}", help_text)
            gauge.add_metric([], value)
            yield gauge


def _sizes(settings: "Settings") -> _Sizes:
    layout = Layout(settings.home)
    keys = domains.domains(layout)
    found = [_sizes_of(layout, key) for key in keys]
    return _Sizes(
        domains=len(keys),
        folded=sum(one.folded for one in found),
        tail=sum(one.tail for one in found),
        tombstones=sum(one.tombstones for one in found),
        chunks=sum(one.chunks for one in found),
        edges=sum(one.edges for one in found),
        bytes=folder_bytes(layout.memory) if keys else 0,
    )


def _sizes_of(layout: Layout, key: str) -> _Sizes:
    """The sizes of one domain, without the bytes; zeros where it cannot be read."""
    home = domains.home(layout, key)
    with suppress(DocindexError, OSError):
        generation = read_generation(home)
        source = generation.sources.get(key) if generation else None
        folded = offsets_of(home, key) or NOTHING
        tail = [entry for entry in open_log(layout, key).read().entries if not folded.covers(entry.position)]
        messages = sum(isinstance(entry.record, Message) for entry in tail)
        return _Sizes(
            1,
            source.files if source else 0,
            messages,
            len(tail) - messages,
            source.chunks if source else 0,
            source.edges if source else 0,
        )
    return _Sizes(1)
