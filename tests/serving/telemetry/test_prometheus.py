"""Tests that a real Prometheus, scraping `docindex serve` under load, has data for every dashboard expression."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from tests.serving.telemetry import dashboard
from tests.serving.telemetry.conftest import write_project
from tests.serving.telemetry.test_traces import await_answer, free_port

pytestmark = pytest.mark.prometheus
TOKEN = "a-token-that-is-long-enough-0123456789"
LONGEST_S = 300
CONFIGURATION = """\
global:
  scrape_interval: 2s
  scrape_timeout: 2s
scrape_configs:
  - job_name: docindex
    authorization:
      credentials_file: {token}
    static_configs:
      - targets: ["{target}"]
"""


@pytest.fixture(scope="module", autouse=True)
def _programs() -> None:
    for name in ("prometheus", "promtool"):
        assert shutil.which(name), f"there is no {name}: apt-get install prometheus"


@contextmanager
def running(line: list[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process until the end of the test."""
    with subprocess.Popen(line, **options) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[str]:
    """Yield the address of a server for an indexed project, with jobs and a token."""
    root = write_project(tmp_path_factory.mktemp("prometheus") / "project")
    command = [sys.executable, "-m", "docindex_dagster.cli"]
    subprocess.run([*command, "index"], cwd=root, check=True, capture_output=True)
    port = free_port()
    environment = {**os.environ, "DOCINDEX_SERVE__TOKEN": TOKEN}
    with running(
        [*command, "serve", "--port", str(port), "--domain", "memory/main"], cwd=root, env=environment
    ) as process:
        await_answer(f"http://127.0.0.1:{port}/api/v1/health", process)
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def prometheus(server: str, tmp_path_factory) -> Iterator[str]:
    """Yield the address of a Prometheus that scrapes the server."""
    folder = tmp_path_factory.mktemp("tsdb")
    token, configuration, port = folder / "token", folder / "prometheus.yml", free_port()
    token.write_text(TOKEN)
    configuration.write_text(CONFIGURATION.format(token=token, target=server.removeprefix("http://")))
    line = ["prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={folder / 'data'}"]
    line += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
    with running(line) as process:
        await_answer(f"http://127.0.0.1:{port}/-/ready", process)
        yield f"http://127.0.0.1:{port}"


def ask(server: str, path: str, body: Any = None, **headers: str) -> Any:
    """Return the server's response, whatever its status."""
    sent = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json, text/event-stream", **headers}
    data = None
    if body is not None:
        data, sent["Content-Type"] = json.dumps(body).encode(), "application/json"
    try:
        with urlopen(Request(f"{server}{path}", data, sent), timeout=60) as answer:
            return json.load(answer)
    except HTTPError as error:
        return json.load(error)


def make_load(server: str, is_over: Event) -> None:
    """Request every kind of endpoint in a loop."""
    while not is_over.is_set():
        for mode in ("hybrid", "vector", "bm25", "graph", "literal"):
            ask(server, f"/api/v1/search?{urlencode({'query': 'pump', 'mode': mode})}")
        ask(server, "/api/v1/search?query=(&mode=regex")
        ask(server, "/api/v1/context?query=valve")
        for question in ("callers", "callees", "impact"):
            ask(server, f"/api/v1/graph/{question}?symbol=pump")
        ask(server, "/api/v1/ask", {"question": "How is a pump started?"})
        call = {"name": "search", "arguments": {"query": "water"}}
        ask(server, "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        ask(server, "/api/v1/memory/messages", {"text": f"The Pump uses the Valve at {time.time()}", "session": "s"})
        ask(server, "/api/v1/memory/recall", {"query": "valve"})
        ask(server, "/api/v1/memory/fold", {})
        ask(server, "/api/v1/status", Authorization="Bearer wrong")
        ask(server, "/api/v1/status", Host="example.com")


def index_again(server: str, is_over: Event) -> None:
    """Run jobs in a loop, and follow the events of each to the end."""
    while not is_over.is_set():
        job = ask(server, "/api/v1/sources/library/shop/index", {"mode": "full"})
        request = Request(f"{server}/api/v1/jobs/{job['id']}/events", headers={"Authorization": f"Bearer {TOKEN}"})
        with urlopen(request, timeout=LONGEST_S) as events:
            events.read()


@pytest.fixture(scope="module")
def load(server: str) -> Iterator[None]:
    """Keep requests and jobs running until the end of the test."""
    is_over = Event()
    threads = [Thread(target=work, args=(server, is_over)) for work in (make_load, make_load, index_again)]
    for thread in threads:
        thread.start()
    yield
    is_over.set()
    for thread in threads:
        thread.join()


def values(prometheus: str, expression: str) -> list[float]:
    """Return the current values of an expression."""
    with urlopen(f"{prometheus}/api/v1/query?{urlencode({'query': expression})}", timeout=30) as answer:
        result = json.load(answer)["data"]["result"]
    return [float(series["value"][1]) for series in result]


@pytest.mark.usefixtures("load")
def test_each_expression_of_the_dashboard_gives_data(prometheus):
    left = dict.fromkeys(dashboard.expressions(), 0)
    given: dict[tuple[str, str], list[float]] = {}
    ends_at = time.monotonic() + LONGEST_S
    while left and time.monotonic() < ends_at:
        time.sleep(2)
        for title, expression in [*left]:
            found = values(prometheus, dashboard.filled_in(expression))
            if any(math.isfinite(value) for value in found):
                given[title, expression] = found
                del left[title, expression]

    for (title, _), found in given.items():
        print(f"{title}: {len(found)} series, {min(found):.4g} to {max(found):.4g}")  # noqa: T201 what was measured
    assert not left, f"no data for {[*left]}"


def test_promtool_finds_nothing_to_mend(server):
    with urlopen(Request(f"{server}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}), timeout=60) as answer:
        text = answer.read()

    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)

    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
    assert b"docindex_search_duration_seconds_bucket" in text


def test_who_has_no_token_scrapes_nothing(server, tmp_path: Path):
    with pytest.raises(HTTPError, match="401"):
        urlopen(f"{server}/metrics")
