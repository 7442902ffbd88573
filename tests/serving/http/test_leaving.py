"""Tests that a disconnected client's request costs nothing one second later."""

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pyarrow as pa
import pytest
import uvicorn
from fastapi import Depends, FastAPI

from docindex_dagster.cli import dagster_runs
from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.settings import load_settings
from docindex_dagster.search.cancellation import Patience
from docindex_dagster.search.live_index import Live
from docindex_dagster.search.text_scan import Pattern, count_matches
from docindex_dagster.serving.http.app import build_app
from docindex_dagster.serving.http.client_disconnect import cancel_on_disconnect
from docindex_dagster.serving.http.security import Access
from docindex_dagster.serving.http.served_project import ServedProject
from docindex_dagster.serving.jobs.queue import Jobs
from tests.serving.http.server import LONGEST_S, free_port

SLOW_S = 60.0


@dataclass
class Listening:
    """An application served on the loopback device by a thread of this process."""

    url: str
    loop: list[asyncio.AbstractEventLoop] = field(default_factory=list)

    def tasks(self) -> int:
        return len(asyncio.all_tasks(self.loop[0]))


@contextmanager
def listening(app: FastAPI, http: Any = "auto") -> Iterator[Listening]:
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, http=http, log_level="error", timeout_graceful_shutdown=1))
    made = Listening(f"http://127.0.0.1:{port}")

    async def serve() -> None:
        made.loop.append(asyncio.get_running_loop())
        await server.serve()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield made
    finally:
        server.should_exit = True
        thread.join()


def test_a_search_for_a_pattern_ends_with_its_client():
    texts = pa.array(["so much to look at " * 500] * 2000)
    pattern = Pattern("(.{1,60}){1,9}$^", is_regex=True)
    ended: list[str] = []
    app = FastAPI()

    @app.get("/", dependencies=[Depends(cancel_on_disconnect)])
    def search() -> None:
        try:
            while True:
                count_matches(texts.slice(0, 1), pattern, Patience.of(SLOW_S))
        except QueryError as error:
            ended.append(str(error))

    with listening(app) as server:
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(server.url, timeout=0.5)
        assert until(lambda: bool(ended))
        assert ended == ["the search was cancelled: its caller is gone"]
        assert until(lambda: server.tasks() <= 3)


def test_a_search_whose_client_stays_is_not_given_up():
    app = FastAPI()

    @app.post("/", dependencies=[Depends(cancel_on_disconnect)])
    def search(query: dict[str, Any]) -> str:
        time.sleep(0.3)
        Patience.of(SLOW_S).check()
        return "found"

    with listening(app) as server, httpx.Client(base_url=server.url) as client:
        assert [client.post("/", json={}).json() for _ in range(3)] == ["found"] * 3


def test_who_follows_a_job_and_leaves_leaves_nothing_behind(root):
    settings = load_settings(root)
    works_for_long = (sys.executable, "-c", f"import time; time.sleep({SLOW_S})")
    jobs = Jobs(settings, dagster_runs.RecordedRuns(settings), works_for_long)
    served = ServedProject(Live(settings), Access.of("127.0.0.1", None, settings.serve), dagster_runs.outcomes, jobs)
    with listening(build_app(served)) as server:
        api = f"{server.url}/api/v1"
        httpx.get(f"{api}/health")
        job = httpx.post(f"{api}/sources/library/manual/index").json()["id"]
        try:
            before = (server.tasks(), threading.active_count())
            for _ in range(20):
                with pytest.raises(httpx.ReadTimeout):
                    httpx.get(f"{api}/jobs/{job}/events", timeout=0.1)
            assert until(lambda: server.tasks() <= before[0] + 1)
            assert threading.active_count() <= before[1] + 3
        finally:
            httpx.delete(f"{api}/jobs/{job}", timeout=LONGEST_S)


def until(is_so: Any, longest_s: float = 5.0) -> bool:
    """Return whether a condition comes true in time; on an idle machine, one second is enough."""
    ends_at = time.monotonic() + longest_s
    while not is_so():
        if time.monotonic() > ends_at:
            return False
        time.sleep(0.05)
    return True
