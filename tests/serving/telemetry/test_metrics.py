"""Tests of the Prometheus metrics that `docindex serve` reports at `/metrics`."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import load_settings
from docindex_dagster.core.traces import span
from docindex_dagster.runner.entries import State
from docindex_dagster.serving.jobs.model import Job, JobRequest
from docindex_dagster.serving.telemetry.metrics import JobFigures, MeasuringMiddleware, Metrics
from docindex_dagster.serving.telemetry.published import OTHER, figures, sizes
from docindex_dagster.serving.telemetry.series import Cached
from docindex_dagster.status import source_status
from docindex_dagster.status.catalog import CatalogEntry
from docindex_dagster.status.source_status import Runs, SourceState
from tests.serving.telemetry.conftest import call_tool, reported, served_of, serving

TOKEN = "a-token-that-is-long-enough-0123456789"
ENTRY = CatalogEntry("git/a", 100, 7, 1000, 0, 0, {"go": 7}, "v", None, "2026-11-21T03:04:05+00:00", 0)


def test_requests_are_counted_by_their_route_and_never_by_their_path(client):
    client.get("/api/v1/files/library/shop/tank.py")
    client.get("/api/v1/files/library/shop/nothing.py")
    client.get("/api/v1/graph/callers", params={"symbol": "pump"})
    client.get("/somewhere/else")
    client.request("BREW", "/api/v1/health")

    found = reported(client)

    requests = {name: value for name, value in found.items() if name.startswith("docindex_http_requests_total{")}
    assert requests == {
        'docindex_http_requests_total{method="GET",route="/api/v1/files/{place}",status="2xx"}': 1,
        'docindex_http_requests_total{method="GET",route="/api/v1/files/{place}",status="4xx"}': 1,
        'docindex_http_requests_total{method="GET",route="/api/v1/graph/{question}",status="2xx"}': 1,
        'docindex_http_requests_total{method="GET",route="(none)",status="4xx"}': 1,
        'docindex_http_requests_total{method="other",route="/api/v1/health",status="4xx"}': 1,
    }
    assert found['docindex_http_request_duration_seconds_count{method="GET",route="/api/v1/files/{place}"}'] == 2
    assert found["docindex_http_requests_in_progress"] == 1  # the request for the metrics


@pytest.mark.parametrize("mode", ["hybrid", "vector", "bm25", "literal", "regex"])
def test_searches_are_timed_by_mode_with_their_steps(client, mode):
    client.get("/api/v1/search", params={"query": "pump", "mode": mode})

    found = reported(client)

    assert found[f'docindex_search_duration_seconds_count{{mode="{mode}"}}'] == 1
    step = {"hybrid": "retrieve bm25", "vector": "retrieve vector", "bm25": "fuse"}.get(mode, "scan")
    assert found[f'docindex_step_duration_seconds_count{{step="{step}"}}'] == 1
    assert found['docindex_step_duration_seconds_count{step="rank"}'] == 1


def test_contexts_questions_to_the_graph_and_calls_of_agents_are_timed(client):
    client.get("/api/v1/context", params={"query": "pump"})
    client.get("/api/v1/graph/callees", params={"symbol": "Tank.fill"})
    call_tool(client, "search", query="pump")
    call_tool(client, "graph", symbol="pump", question="callers")

    found = reported(client)

    assert found["docindex_context_duration_seconds_count"] == 1
    assert found['docindex_graph_question_duration_seconds_count{question="callees"}'] == 1
    assert found['docindex_graph_question_duration_seconds_count{question="callers"}'] == 1
    assert found['docindex_mcp_tool_duration_seconds_count{tool="search"}'] == 1
    assert found['docindex_mcp_tool_duration_seconds_count{tool="graph"}'] == 1
    assert found['docindex_search_duration_seconds_count{mode="hybrid"}'] == 2  # one from context, one from the agent


def test_questions_are_timed_by_who_answers_them(client):
    client.post("/api/v1/ask", json={"question": "What is a pump?"})
    client.post("/v1/chat/completions", json={"model": "docindex", "messages": [{"role": "user", "content": "Pump?"}]})
    client.post("/api/v1/ask", json={"question": " "})

    found = reported(client)

    assert found['docindex_question_duration_seconds_count{by="nobody"}'] == 3
    assert found["docindex_question_first_word_seconds_count"] == 2
    assert found['docindex_failures_total{error="QueryError",operation="question"}'] == 1


def test_what_fails_is_counted_by_its_kind(client):
    client.get("/api/v1/search", params={"query": "(", "mode": "regex"})

    assert reported(client)['docindex_failures_total{error="QueryError",operation="search"}'] == 1


def test_the_guard_keeps_the_metrics_from_who_has_no_token(indexed):
    with serving(indexed, token=TOKEN) as client:
        assert client.get("/metrics").status_code == 401
        assert client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_requests_that_the_guard_refuses_are_counted_by_the_reason(indexed):
    with serving(indexed, token=TOKEN) as client:
        client.get("/api/v1/status")
        client.get("/api/v1/status", headers={"Accept": "text/html"}, follow_redirects=False)
        client.get("/api/v1/health", headers={"Host": "example.com"})
        client.post("/api/v1/sources", json={}, headers={"Origin": "http://example.com"})
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        client.get("/nowhere")

        found = reported(client)

    refused = {name: value for name, value in found.items() if name.startswith("docindex_http_requests_refused_total{")}
    assert refused == {
        'docindex_http_requests_refused_total{reason="token"}': 2,
        'docindex_http_requests_refused_total{reason="host"}': 1,
        'docindex_http_requests_refused_total{reason="foreign"}': 1,
        'docindex_http_requests_refused_total{reason="busy"}': 0,
        'docindex_http_requests_refused_total{reason="too large"}': 0,
    }


def test_each_application_counts_for_itself(indexed):
    with serving(indexed) as one, serving(indexed) as other:
        one.get("/api/v1/search", params={"query": "pump"})

        assert 'docindex_search_duration_seconds_count{mode="hybrid"}' in reported(one)
        assert 'docindex_search_duration_seconds_count{mode="hybrid"}' not in reported(other)


def test_what_is_published_is_reported(client, indexed):
    found = reported(client)

    of_source = '{source="library/shop"}'
    assert found["docindex_ready"] == 1
    assert found["docindex_generation"] == client.get("/api/v1/health").json()["generation"]
    assert found[f"docindex_source_files{of_source}"] == 2
    assert found[f"docindex_source_chunks{of_source}"] == 2
    assert found[f"docindex_source_text_bytes{of_source}"] > 100
    assert found[f"docindex_source_changed_timestamp_seconds{of_source}"] > 1_700_000_000
    assert sum(value for name, value in found.items() if name.startswith("docindex_sources{")) == 1
    assert sum(value for name, value in found.items() if name.startswith("docindex_source_state{")) == 1
    tantivy = Layout(load_settings(indexed).home).tantivy
    on_disk = sum(file.stat().st_size for file in tantivy.rglob("*") if file.is_file())
    assert found['docindex_store_size_bytes{store="tantivy"}'] == on_disk
    assert found["process_resident_memory_bytes"] > 0


def test_without_an_index_the_metrics_say_so(tmp_path):
    (tmp_path / "docindex.toml").write_text("")
    with serving(tmp_path) as client:
        found = reported(client)

        assert found["docindex_ready"] == 0
        assert "docindex_generation" not in found


def test_the_sources_beyond_the_largest_are_one_that_holds_their_sums():
    entries = [replace(ENTRY, source=f"git/{name}", chunks=chunks) for name, chunks in (("a", 1), ("b", 3), ("c", 2))]
    states = [SourceState(one.source, one, Runs(checked_at=one.chunks), source_status.State.OK) for one in entries]

    largest, rest = figures(states, most=1)

    assert (largest.source, largest.chunks) == ("git/b", 3)
    assert (rest.source, rest.files, rest.chunks, rest.text_bytes) == (OTHER, 200, 3, 2000)
    assert rest.checked_at == 1  # the oldest check
    assert rest.states == (source_status.State.OK, source_status.State.OK)


def test_a_folder_that_is_not_there_has_no_size(tmp_path):
    assert set(sizes(Layout(tmp_path)).values()) == {0}


def test_what_costs_something_is_found_out_once_in_a_while():
    found = iter(range(10))
    kept, fresh = Cached(lambda: next(found), 60.0), Cached(lambda: next(found), 0.0)

    assert (kept.get(), kept.get()) == (0, 0)
    assert (fresh.get(), fresh.get()) == (1, 2)


def job(name: str, state: State) -> Job:
    ended_at = "2026-11-21T03:04:17+00:00" if state.has_ended else None
    times = ("2026-11-21T03:04:00+00:00", "2026-11-21T03:04:05+00:00", ended_at)
    request = JobRequest("index", "git/a")
    return Job(name, request, state, None, None, None, 0, *times, None, None, (), launched_by="serve")


def values(collector: JobFigures) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for metric in collector.collect()
        for sample in metric.samples
    }


def test_jobs_that_end_are_counted_once_and_those_of_an_earlier_server_never():
    jobs = [job("1", State.SUCCEEDED)]
    collector = JobFigures(lambda: jobs)
    assert values(collector)["docindex_jobs_ended_total", "index", "succeeded"] == 0

    jobs += [job("2", State.FAILED), job("3", State.RUNNING), job("4", State.QUEUED)]
    values(collector)
    found = values(collector)

    assert found["docindex_jobs_ended_total", "index", "succeeded"] == 0
    assert found["docindex_jobs_ended_total", "index", "failed"] == 1
    assert found["docindex_job_duration_seconds_sum", "index"] == 12
    assert found["docindex_jobs", "index", "running"] == 1
    assert found["docindex_jobs_queue_length",] == 1


def test_a_stream_of_events_is_open_until_its_end_and_no_latency(indexed):
    metrics, during = Metrics(served_of(indexed)), list[str]()

    async def events(_):
        async def lines():
            during.append(metrics.text("")[0].decode())
            yield "data: 1\n\n"

        return StreamingResponse(lines(), media_type="text/event-stream")

    app = Starlette(routes=[Route("/events", events)])
    app.add_middleware(MeasuringMiddleware, metrics=metrics, further=())
    TestClient(app).get("/events")

    assert "docindex_http_event_streams 1.0" in during[0]
    after = metrics.text("")[0].decode()
    assert "docindex_http_event_streams 0.0" in after
    assert 'requests_total{method="GET",route="/events",status="2xx"} 1.0' in after
    assert "docindex_http_request_duration_seconds_count" not in after


def test_a_request_that_its_client_leaves_is_no_failure_of_the_server(indexed):
    metrics = Metrics(served_of(indexed))

    async def endless(*_):
        await asyncio.sleep(60)

    async def leave() -> None:
        scope = {"type": "http", "method": "GET", "app": Starlette()}
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(MeasuringMiddleware(endless, metrics, ())(scope, endless, endless), 0.01)

    asyncio.run(leave())

    assert 'requests_total{method="GET",route="(none)",status="(none)"} 1.0' in metrics.text("")[0].decode()


def test_steps_outside_of_a_request_are_recorded_by_nobody():
    with span("search", mode="hybrid") as one, span("search", mode="bm25") as other:
        one.note(results=3)
        other.quote(query="x")

        assert one == other


def test_openmetrics_is_given_to_who_asks_for_it(client):
    answer = client.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})

    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


def test_metrics_are_not_in_the_description_of_the_api(client):
    assert "/metrics" not in client.get("/openapi.json").json()["paths"]


def test_no_path_of_the_machine_is_reported(client, indexed: Path):
    assert str(indexed) not in client.get("/metrics").text
