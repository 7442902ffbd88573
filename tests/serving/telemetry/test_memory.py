"""Tests of memory metrics and traces: they cover reads and writes, but never reveal authors, texts or sessions."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from docindex_dagster.core.errors import LongMessageError, MessageRateError
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.core.traces import recording
from docindex_dagster.memory.fold import fold
from docindex_dagster.memory.memory import Memory
from docindex_dagster.serving.fold_scheduler import FoldResult
from docindex_dagster.serving.telemetry.metrics import Metrics
from docindex_dagster.serving.telemetry.tracing import Tracing
from tests.serving.telemetry.conftest import samples, served_of
from tests.serving.telemetry.test_traces import texts, tree

DOMAIN, SESSION = "memory/main", "monday"
TEXT = "The Scheduler uses the Queue. Quixotically."


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "docindex.toml").write_text("[memory]\nper_second = 4\nmessage_bytes = 2000\n")
    return tmp_path


@pytest.fixture
def settings(root: Path) -> Settings:
    return load_settings(root)


def measured(root: Path, metrics: Metrics) -> dict[str, float]:
    """Return the memory samples without their prefix, and for each histogram its number of observations."""
    found = samples(metrics.text("")[0].decode())
    return {
        name.removeprefix("docindex_memory_"): value
        for name, value in found.items()
        if name.startswith("docindex_memory_") and not re.search(r"_(?:bucket|sum)(?:\{|$)", name)
    }


def positive(found: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in found.items() if value}


@contextmanager
def traced() -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    traces = Tracing(provider)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with recording(traces):
        yield exporter
    traces.close()


def test_messages_are_counted_by_kind_and_role(root, settings):
    metrics, memory = Metrics(served_of(root)), Memory(settings, DOMAIN)

    with recording(metrics):
        memory.ingest(TEXT, session=SESSION, role="user")
        memory.ingest(TEXT, session=SESSION, role="user")
        memory.ingest("Two files changed", session=SESSION, role="tool", tool="grep")
        memory.ingest("Nobody knows who said it", session=SESSION, role="king of France")
        memory.ingest("  ", session=SESSION)

    found = measured(root, metrics)
    assert positive({name: value for name, value in found.items() if name.startswith("ingested")}) == {
        'ingested_total{kind="message",role="user"}': 2,
        'ingested_total{kind="tool result",role="tool"}': 1,
        'ingested_total{kind="message",role="unknown"}': 1,
    }
    assert found["repeats_total"] == 1
    assert found["chunks_total"] == 4
    assert found["concepts_total"] >= 2
    assert found["edges_total"] >= 2
    assert found['extractions_total{state="done"}'] == found["concepts_per_chunk_count"] == 4
    assert found['duration_seconds_count{operation="ingest"}'] == 4
    for step in ("admit", "anchors", "append", "cut", "extract"):
        assert found[f'step_duration_seconds_count{{step="{step}"}}'] == 4


def ingest_without_rest(memory: Memory) -> None:
    for _ in range(1000):  # enough messages for several seconds on a slow machine
        memory.ingest(TEXT, session=SESSION)


def test_what_is_refused_is_counted_by_its_reason(root, settings):
    metrics, memory = Metrics(served_of(root)), Memory(settings, DOMAIN)

    with recording(metrics):
        with pytest.raises(LongMessageError):
            memory.ingest("x" * 3000, session=SESSION)
        with pytest.raises(MessageRateError):
            ingest_without_rest(memory)

    found = measured(root, metrics)
    refused = {name: value for name, value in found.items() if name.startswith("refused")}
    assert positive(refused) == {'refused_total{reason="length"}': 1, 'refused_total{reason="rate"}': 1}


def test_recalls_and_folds_are_timed_by_their_steps(root, settings):
    metrics, memory = Metrics(served_of(root)), Memory(settings, DOMAIN)
    memory.ingest(TEXT, session=SESSION)

    with recording(metrics):
        memory.recall("scheduler")
        fold(settings, DOMAIN)
        memory.forget(session=SESSION)
        fold(settings, DOMAIN)
    metrics.folded(FoldResult(0, (("memory.read", 0.1), ("memory.fold", 0.5))))  # from a fold in another process

    found = measured(root, metrics)
    operations = {name: value for name, value in found.items() if name.startswith("duration_seconds_count")}
    assert positive(operations) == {
        'duration_seconds_count{operation="recall"}': 1,
        'duration_seconds_count{operation="fold"}': 3,
        'duration_seconds_count{operation="erase"}': 1,
    }
    for step in ("refresh", "embed query", "rank", "chunk", "embed", "graph", "publish"):
        assert found[f'step_duration_seconds_count{{step="{step}"}}'] >= 1
    assert found['step_duration_seconds_count{step="read"}'] == 3


def test_all_domains_together_show_how_memory_grows(root, settings):
    memory, other = Memory(settings, DOMAIN), Memory(settings, "project/acme")
    for number in range(3):
        memory.ingest(f"{TEXT} {number}", session=SESSION)
    fold(settings, DOMAIN)
    memory.ingest(TEXT, session=SESSION)
    other.ingest(TEXT, session=SESSION)
    other.forget(everything=True)

    found = measured(root, Metrics(served_of(root)))

    assert found["domains"] == 2
    assert found['messages{where="folded"}'] == found["folded_chunks"] == 3
    assert found['messages{where="tail"}'] == 2
    assert found["tombstones"] == 1
    assert found["folded_edges"] > 0
    assert found["size_bytes"] > 0


def test_a_domain_that_cannot_be_read_does_not_hide_the_others(root, settings):
    Memory(settings, DOMAIN).ingest(TEXT, session=SESSION)
    broken = settings.home / "memory" / "memory%2Fbroken"
    (broken / "log").mkdir(parents=True)
    (broken / "stores").mkdir()
    (broken / "stores" / "CURRENT").write_text("nonsense")

    found = measured(root, Metrics(served_of(root)))

    assert (found["domains"], found['messages{where="tail"}']) == (2, 1)


def test_each_series_is_there_before_anything_happens(root):
    found = measured(root, Metrics(served_of(root)))

    assert positive(found) == {}
    assert len(found) > 40


def test_no_label_is_a_session_or_a_domain(root, settings):
    metrics, memory = Metrics(served_of(root)), Memory(settings, DOMAIN)
    with recording(metrics):
        memory.ingest(TEXT, session=SESSION)
        memory.recall("scheduler", sessions=[SESSION])
        fold(settings, DOMAIN)

    text = metrics.text("")[0].decode()

    assert not {word for word in (SESSION, DOMAIN, "Scheduler", "scheduler", "Quixotically") if word in text}
    labels = set(re.findall(r"docindex_memory_\w+\{([^}]+)\}", text))
    assert {name for label in labels for name in re.findall(r"(\w+)=", label)} == {
        *("kind", "role", "state", "reason", "operation", "step", "where", "le"),
    }


def test_the_tree_of_an_ingestion(settings):
    memory = Memory(settings, DOMAIN)

    with traced() as exporter:
        memory.ingest(TEXT, session=SESSION)

        found = tree(exporter)
    assert found[""] == ["memory.ingest"]
    assert found["memory.ingest"] == [
        *("memory.admit", "memory.anchors", "memory.refresh", "memory.append", "memory.cut", "memory.extract")
    ]


def test_the_tree_of_a_recall(settings):
    memory = Memory(settings, DOMAIN)
    memory.ingest(TEXT, session=SESSION)

    with traced() as exporter:
        memory.recall("scheduler")

        found = tree(exporter)
    assert found[""] == ["memory.recall"]
    assert found["memory.recall"][:3] == ["memory.embed query", "memory.refresh", "memory.rank"]


def test_the_tree_of_a_fold(settings):
    memory = Memory(settings, DOMAIN)
    memory.ingest(TEXT, session=SESSION)

    with traced() as exporter:
        fold(settings, DOMAIN)

        found = tree(exporter)
    assert found[""] == ["memory.fold"]
    assert found["memory.fold"] == [f"memory.{step}" for step in ("read", "chunk", "embed", "graph", "publish")]


def test_no_text_session_or_domain_is_in_a_trace(settings):
    memory = Memory(settings, DOMAIN)

    with traced() as exporter:
        memory.ingest(TEXT, session=SESSION)
        memory.recall("quixotically", sessions=[SESSION])
        with pytest.raises(LongMessageError):
            memory.ingest(TEXT * 100, session=SESSION)
        fold(settings, DOMAIN)

        held = texts(exporter.get_finished_spans())
    assert "memory.publish" in held
    assert not {word for word in (SESSION, DOMAIN, "Scheduler", "uixotically") if word in held}
