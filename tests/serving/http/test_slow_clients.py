"""Tests that slow and aborted requests do not block other clients."""

import asyncio
import logging
import shutil
import socket
import threading
import time
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from docindex_dagster.cli import dagster_runs
from docindex_dagster.cli.dagster_runs import job_queue
from docindex_dagster.core.settings import load_settings
from docindex_dagster.search.live_index import Live
from docindex_dagster.serving.http import connections
from docindex_dagster.serving.http.app import build_app, writing_logs
from docindex_dagster.serving.http.security import Access
from docindex_dagster.serving.http.served_project import ServedProject
from tests.serving.http.server import Server, running
from tests.serving.http.slow_clients import health_ms, opened, slow_clients
from tests.serving.http.test_leaving import listening
from tests.serving.http.test_process import BEARER, TOKEN, VARIABLE

LONGEST_MS = 100.0


@pytest.fixture(scope="module")
def server(indexed, tmp_path_factory):
    root = Path(shutil.copytree(indexed, tmp_path_factory.mktemp("slow") / "project", symlinks=True))
    with running(root, "--no-jobs", environment={VARIABLE: TOKEN}) as started:
        health_ms(port_of(started), 5)  # the first request loads modules
        yield started


def port_of(server: Server) -> int:
    return int(server.url.rpartition(":")[2])


def test_health_answers_within_100_ms_beside_200_aborted_and_slow_requests(server):
    with slow_clients(port_of(server), 200, TOKEN):
        found = health_ms(port_of(server), 100)
    assert found[50] < LONGEST_MS, found  # the slowest responses depend on other load on the machine


def test_half_sent_logins_keep_nobody_from_searching(server):
    held = [opened(port_of(server), "half a body") for _ in range(64)]
    try:
        time.sleep(0.2)
        answer = httpx.get(f"{server.url}/api/v1/search", params={"query": "pump"}, headers=BEARER, timeout=30)
        assert answer.status_code == 200
    finally:
        for connection in held:
            connection.close()


def test_an_aborted_login_is_no_error(server):
    opened(port_of(server), "half a body").close()
    assert health_ms(port_of(server), 5)[0] < LONGEST_MS
    assert "ERROR" not in server.output.read_text()


@pytest.fixture
def impatient(indexed, monkeypatch):
    """Run a server with timeouts of half a second and a limit of five waiting connections per client."""
    for name, value in {"HEADERS_S": 0.5, "BODY_S": 0.5, "MOST_WAITING": 5}.items():
        monkeypatch.setattr(connections, name, value)
    settings = load_settings(indexed)
    access = Access.of("127.0.0.1", None, settings.serve)
    served = ServedProject(Live(settings), access, dagster_runs.outcomes, job_queue(settings, is_on=False))
    with listening(build_app(served), http=connections.Connection) as started:
        httpx.get(f"{started.url}/api/v1/health", timeout=30)
        yield int(started.url.rpartition(":")[2])


def is_closed(connection: socket.socket, longest_s: float = 5.0) -> bool:
    connection.settimeout(longest_s)
    try:
        while connection.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize("kind", ["nothing", "half the headers", "half a body"])
def test_a_request_that_is_not_sent_in_time_is_given_up(impatient, kind):
    with opened(impatient, kind) as connection:
        assert is_closed(connection)


def test_headers_that_drip_are_given_up_all_the_same(impatient):
    with opened(impatient, "half the headers") as connection:
        for _ in range(20):
            time.sleep(0.1)
            try:
                connection.send(b"x")
            except ConnectionError:
                return
    pytest.fail("the server still waits")


def test_a_second_request_on_a_connection_has_to_come_in_time_too(impatient):
    request = f"GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1:{impatient}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", impatient)) as connection:
        connection.sendall(request)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
        connection.sendall(request[:20])
        assert is_closed(connection)


def test_a_request_that_takes_long_to_answer_is_not_given_up(monkeypatch):
    for name in ("HEADERS_S", "BODY_S"):
        monkeypatch.setattr(connections, name, 0.3)
    app = FastAPI()

    @app.post("/")
    async def slow() -> str:
        await asyncio.sleep(1)
        return "done"

    with listening(app, http=connections.Connection) as started:
        assert httpx.post(started.url, content=b"{}").json() == "done"


def test_one_connection_too_many_of_a_client_closes_its_oldest(impatient, monkeypatch):
    monkeypatch.setattr(connections, "BODY_S", 60.0)
    held = [opened(impatient, "half a body") for _ in range(6)]
    try:
        assert is_closed(held[0], 2)
        assert not is_closed(held[1], 0.3)
    finally:
        for connection in held:
            connection.close()


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("127.0.0.1", "127.8.8.8", True),
        ("127.0.0.1", "::1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("2001:db8::1", "2001:db8::2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
    ],
)
def test_what_counts_as_one_client(one, other, is_same):
    assert (connections.sender_of(one) == connections.sender_of(other)) == is_same


def test_an_error_is_formatted_by_another_thread(capsys, monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's handlers
    formatted_by = []

    class Shown:
        def __str__(self) -> str:
            formatted_by.append(threading.current_thread())
            return "shown"

    with writing_logs():
        logging.getLogger("x").error("failed: %s", Shown())
    assert formatted_by
    assert threading.current_thread() not in formatted_by
    assert "ERROR x: failed: shown" in capsys.readouterr().err
