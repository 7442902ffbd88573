"""Requests and bytes of a publication at an object store, counted by a proxy."""

import http.client
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from threading import Lock, Thread
from typing import TypeVar
from urllib.parse import urlsplit

from benchmarks.growth.project import Project, make_tables
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.objects import prepared, shared_stores, snapshots
from docindex_dagster.objects.bucket import Bucket
from docindex_dagster.objects.shared_stores import configured_bucket
from docindex_dagster.objects.snapshots import Manifest
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.runner.prepared import publish_prepared

ENDPOINT = "AWS_ENDPOINT_URL"
_Result = TypeVar("_Result")


@dataclass(slots=True)
class Traffic:
    """Requests by method, and the bytes of their bodies: sent to the store and received from it."""

    requests: dict[str, int] = field(default_factory=dict)
    sent: int = 0
    received: int = 0

    @property
    def total(self) -> int:
        """Return the number of all requests."""
        return sum(self.requests.values())

    def note(self, method: str, sent: int, received: int) -> None:
        """Count a request."""
        self.requests[method] = self.requests.get(method, 0) + 1
        self.sent += sent
        self.received += received


@dataclass(frozen=True, slots=True)
class Publication:
    """The traffic of one edit of one file, by its origin."""

    worker: Traffic
    publisher: Traffic
    search_server: Traffic


class CountingProxy:
    """Forwards requests to an endpoint and counts them."""

    def __init__(self, endpoint: str) -> None:
        self._target, self._lock, self._traffic = urlsplit(endpoint), Lock(), Traffic()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def serving(self) -> Iterator["CountingProxy"]:
        """Run the proxy and direct clients to it in this block."""
        thread, before = Thread(target=self._server.serve_forever), os.environ[ENDPOINT]
        thread.start()
        os.environ |= {ENDPOINT: self.url, "AWS_ALLOW_HTTP": "true"}
        try:
            yield self
        finally:
            os.environ[ENDPOINT] = before
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def counted(self, work: Callable[[], _Result]) -> tuple[_Result, Traffic]:
        """Call a function and count its requests."""
        with self._lock:
            self._traffic = Traffic()
        result = work()
        with self._lock:
            return result, self._traffic

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                """Suppress logging."""

            def do_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                target = http.client.HTTPConnection(proxy._target.hostname or "", proxy._target.port)
                target.request(self.command, self.path, body, dict(self.headers))
                answer = target.getresponse()
                data = answer.read()
                target.close()
                with proxy._lock:
                    proxy._traffic.note(self.command, len(body), len(data))
                self.send_response_only(answer.status, answer.reason)
                for name, value in answer.getheaders():
                    if name.lower() not in {"content-length", "transfer-encoding", "connection"}:
                        self.send_header(name, value)
                size = answer.getheader("Content-Length", "0") if self.command == "HEAD" else len(data)
                self.send_header("Content-Length", str(size))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = do_any

        return Handler


def publications(project: Project, url: str, number: int) -> list[Publication]:
    """Share the stores of the project at a URL, then edit one file and publish it repeatedly.

    Worker, publisher and search server have separate homes, which they keep between edits.
    """
    settings = project.settings
    settings = settings.model_copy(update={"storage": settings.storage.model_copy(update={"url": url})})
    key = project.edited.key
    with CountingProxy(os.environ[ENDPOINT]).serving() as proxy:
        bucket = configured_bucket(settings)
        snapshots.push(bucket, project.layout, Manifest())
        prepared.push(bucket, project.layout, key, None, "the benchmark")
        worker = settings.model_copy(update={"home": project.root / "worker"})
        replica = Layout(project.root / "search-server")
        prepared.pull(bucket, Layout(worker.home), key)
        snapshots.pull(bucket, replica)
        found = []
        for _ in islice(project.edits(), number):
            _, prepares = proxy.counted(lambda: _prepare(project, worker, bucket))
            _, publishes = proxy.counted(lambda: _publish(settings))
            _, follows = proxy.counted(lambda: snapshots.pull(bucket, replica))
            found.append(Publication(prepares, publishes, follows))
        return found


def _prepare(project: Project, settings: Settings, bucket: Bucket) -> None:
    """Run a worker's stages: all except the last."""
    run = SourceRun(settings, project.edited, StaticEmbedder)
    base = prepared.pull(bucket, run.layout, run.key)
    make_tables(run)
    prepared.push(bucket, run.layout, run.key, base, "a worker")


def _publish(settings: Settings) -> None:
    with shared_stores.open_for_publishing(settings, None, "the benchmark", lambda _: None) as stores:
        done = [each for batch in publish_prepared(settings, stores, StaticEmbedder) for each in batch]
    if len(done) != 1 or done[0].refusal is not None:
        raise SystemExit(f"published {len(done)} sources, expected one")
