"""Tests of request traces: their structure, what they omit, and that environment variables enable them."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from docindex_dagster.core.traces import recording, span
from docindex_dagster.serving.telemetry.tracing import Tracing, tracing_from_environment
from tests.serving.telemetry.conftest import call_tool, reported, serving

QUERY = "how is the valve opened"


@contextmanager
def traced(root, *, has_texts: bool = False):
    """Yield a client of a traced application, and the exporter that stores its finished spans."""
    kept, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    traces = Tracing(provider, has_texts=has_texts)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    with serving(root, traces=traces) as client:
        client.get("/api/v1/search", params={"query": "warm"})  # opens the index
        kept.clear()
        yield client, kept
    traces.close()


def tree(kept: InMemorySpanExporter) -> dict[str, list[str]]:
    """Return the names of spans, grouped by the name of their parent."""
    spans = kept.get_finished_spans()
    names = {one.context.span_id: one.name for one in spans}
    found: dict[str, list[str]] = {}
    for one in sorted(spans, key=lambda one: one.start_time or 0):
        found.setdefault(names.get(one.parent.span_id, "elsewhere") if one.parent else "", []).append(one.name)
    return found


def texts(spans: tuple[ReadableSpan, ...]) -> str:
    """Return all data of the spans except ids and times."""
    return " ".join(
        f"{one.name} {dict(one.attributes or {})} {one.status.description} {list(one.events)}" for one in spans
    )


def test_a_search_is_a_request_that_holds_retrievers_fusion_and_ranking(indexed):
    with traced(indexed) as (client, kept):
        client.get("/api/v1/search", params={"query": QUERY})

        spans = tree(kept)
        of_search = spans.pop("search")
        assert spans == {"": ["GET /api/v1/search"], "GET /api/v1/search": ["search", "look for edits"]}
        assert of_search[0] == "embed query"
        assert {*of_search[1:3]} == {"retrieve bm25", "retrieve vector"}  # run in parallel
        assert of_search[3:] == ["fuse", "read rows", "rank", "snippets"]
        assert len({one.context.trace_id for one in kept.get_finished_spans()}) == 1


def test_a_context_holds_its_search_and_its_packing(indexed):
    with traced(indexed) as (client, kept):
        client.get("/api/v1/context", params={"query": QUERY})

        found = tree(kept)
        assert found["GET /api/v1/context"] == ["context"]
        assert found["context"] == ["search", "look for edits", "gather", "pack context"]


def test_a_reranker_is_a_step_of_its_search(indexed):
    with traced(indexed) as (client, kept):
        client.get("/api/v1/search", params={"query": QUERY, "rerank": "mmr"})

        assert "rerank" in tree(kept)["search"]


def test_the_call_of_an_agent_holds_what_its_tool_does(indexed):
    with traced(indexed) as (client, kept):
        call_tool(client, "search", query=QUERY)

        found = tree(kept)
        assert found["POST /mcp"] == ["tool"]
        assert found["tool"][-2:] == ["search", "look for edits"]


def test_an_index_that_is_published_meanwhile_is_seen_to_be_opened(indexed):
    with traced(indexed) as (client, kept):
        current = next(indexed.glob(".docindex/stores/CURRENT"))
        os.utime(current, (time.time() + 1, time.time() + 1))
        client.get("/api/v1/health")

        assert "open generation" in tree(kept)["GET /api/v1/health"]


def test_what_is_known_of_a_step_is_in_its_span(indexed):
    with traced(indexed) as (client, kept):
        generation = client.get("/api/v1/search", params={"query": QUERY, "limit": 3}).json()["generation"]

        (search,) = (one for one in kept.get_finished_spans() if one.name == "search")
        assert search.attributes["docindex.mode"] == "hybrid"
        assert search.attributes["docindex.generation"] == generation


def test_the_trace_of_a_client_goes_on(indexed):
    trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    with traced(indexed) as (client, kept):
        client.get("/api/v1/health", headers={"traceparent": f"00-{trace}-{parent}-01"})

        (request,) = kept.get_finished_spans()
        assert f"{request.context.trace_id:032x}" == trace
        assert f"{request.parent.span_id:016x}" == parent


def asked(client) -> None:
    """Send a request for each place that can contain a text, and one that fails."""
    client.get("/api/v1/search", params={"query": "valve marmot"})
    client.post("/api/v1/search", json={"query": "valve marmot"})
    client.get("/api/v1/context", params={"query": "valve marmot"})
    client.get("/api/v1/files/library/shop/marmot.py")
    client.get("/api/v1/graph/callers", params={"symbol": "marmot"})
    client.get("/api/v1/search", params={"query": "(marmot", "mode": "regex"})
    call_tool(client, "search", query="marmot")
    call_tool(client, "show", place="marmot.py")


def test_no_text_of_users_is_in_a_trace(indexed):
    with traced(indexed) as (client, kept):
        asked(client)

        assert "marmot" not in texts(kept.get_finished_spans())


def test_texts_are_in_a_trace_where_the_setting_says_so(indexed):
    with traced(indexed, has_texts=True) as (client, kept):
        client.get("/api/v1/search", params={"query": QUERY})

        request, search = (
            next(one for one in kept.get_finished_spans() if one.name == name)
            for name in ("GET /api/v1/search", "search")
        )
        assert search.attributes["docindex.query"] == QUERY
        assert request.attributes["url.path"] == "/api/v1/search"


def test_a_step_that_fails_says_by_which_error(indexed):
    with traced(indexed) as (client, kept):
        client.get("/api/v1/search", params={"query": "(", "mode": "regex"})

        (search,) = (one for one in kept.get_finished_spans() if one.name == "search")
        assert search.status.status_code is StatusCode.ERROR
        assert search.attributes["error.type"] == "QueryError"


def test_metrics_are_made_beside_traces(indexed):
    with traced(indexed) as (client, _):
        assert reported(client)['docindex_search_duration_seconds_count{mode="hybrid"}'] == 1


@pytest.fixture
def no_endpoint(monkeypatch):
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("no_endpoint")
@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_without_an_endpoint_there_are_no_traces(monkeypatch, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    notes: list[str] = []

    assert tracing_from_environment(notes.append, has_texts=False) is None
    assert not notes


@pytest.mark.usefixtures("no_endpoint")
@pytest.mark.parametrize("missing", ["opentelemetry.sdk", "opentelemetry.exporter"])
def test_where_the_extra_is_missing_a_line_says_how_to_install_it(monkeypatch, missing):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    for name in [name for name in sys.modules if name.startswith(missing)]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, missing, None)
    notes: list[str] = []

    assert tracing_from_environment(notes.append, has_texts=False) is None
    (note,) = notes
    assert "pip install" in note
    assert "[otel]" in note


class Receiver:
    """OTLP receiver that accepts spans over HTTP, like a collector."""

    def __init__(self) -> None:
        self.spans: list[str] = []
        self.services: set[str] = set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                assert self.path == "/v1/traces"
                request = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["content-length"])))
                receiver.take(request)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def take(self, request: ExportTraceServiceRequest) -> None:
        for of_resource in request.resource_spans:
            values = {one.key: one.value.string_value for one in of_resource.resource.attributes}
            self.services.add(values["service.name"])
            self.spans += [one.name for scope in of_resource.scope_spans for one in scope.spans]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    thread = Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def command(root, **variables: str) -> Iterator[str]:
    """Run `docindex serve` on a project, yield its address, and stop it with Ctrl-C."""
    port = free_port()
    line = [sys.executable, "-m", "docindex_dagster.cli", "serve", "--no-jobs", "--no-ui", "--no-token"]
    line += ["--port", str(port)]
    with subprocess.Popen(line, cwd=root, env={**os.environ, **variables}) as process:
        address = f"http://127.0.0.1:{port}"
        try:
            await_answer(f"{address}/api/v1/health", process)
            yield address
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)


def await_answer(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert process.poll() is None
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"no answer from {url}")


@pytest.mark.usefixtures("no_endpoint")
def test_the_command_sends_its_spans_to_the_endpoint_and_the_last_ones_as_it_ends(indexed, receiver):
    with command(indexed, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.address) as address:
        for _ in range(3):
            with urllib.request.urlopen(f"{address}/api/v1/search?query=valve") as answer:
                assert json.load(answer)["items"]

    assert receiver.spans.count("GET /api/v1/search") == 3
    assert receiver.spans.count("retrieve bm25") == 3
    assert receiver.services == {"docindex"}


@pytest.mark.usefixtures("no_endpoint")
def test_an_endpoint_where_nobody_is_fails_no_request(indexed):
    nobody = f"http://127.0.0.1:{free_port()}"
    with (
        command(indexed, OTEL_EXPORTER_OTLP_ENDPOINT=nobody) as address,
        urllib.request.urlopen(f"{address}/api/v1/search?query=valve") as answer,
    ):
        assert answer.status == 200


@pytest.mark.usefixtures("no_endpoint")
def test_an_endpoint_that_never_answers_does_not_keep_a_server_from_ending(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        traces = tracing_from_environment(print, has_texts=False)
        assert traces is not None
        with recording(traces), span("search"):
            pass
        begun = time.monotonic()
        traces.close()

        assert time.monotonic() - begun < 8  # gives up after 3 seconds, before the export timeout of 10 seconds
