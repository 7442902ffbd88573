"""A reranking API in Cohere's format on the loopback device: real HTTP, and every way in which it may fail."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "K3Y-s3cr3t"


@dataclass(slots=True)
class RerankApi:
    """What was asked, and how to answer: `reply` instead of scores, after `delay_s`, or in drops."""

    url: str = ""
    status: int = 200
    reply: bytes | None = None
    delay_s: float = 0.0
    drip_s: float = 0.0
    broken: bytes | None = None  # sent in place of status and headers, after which the connection ends
    slow_header_s: float = 0.0
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)


def relevance(query: str, document: str) -> float:
    """The share of the query's words that a document has."""
    words = query.lower().split()
    return sum(word in document.lower() for word in words) / len(words)


@contextmanager
def serving() -> Iterator[RerankApi]:
    """Serve it."""
    api = RerankApi()
    is_over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            api.asked.append(asked)
            api.keys.append(self.headers["Authorization"])
            is_over.wait(api.delay_s)
            if api.broken is not None:
                self.wfile.write(api.broken)
                self.close_connection = True
                return
            if api.slow_header_s:
                with suppress(ConnectionError):
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                    while not is_over.wait(api.slow_header_s):
                        self.wfile.write(b"x")
                        self.wfile.flush()
                return
            scores = [relevance(asked["query"], document) for document in asked["documents"]]
            best = sorted(range(len(scores)), key=lambda at: -scores[at])[: asked["top_n"]]
            answer = {"results": [{"index": at, "relevance_score": scores[at]} for at in best]}
            body = json.dumps(answer).encode() if api.reply is None else api.reply
            with suppress(ConnectionError):  # the client had waited long enough
                self._answer(body)

        def _answer(self, body: bytes) -> None:
            self.send_response(api.status)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            step = 1 if api.drip_s else max(1, len(body))
            for at in range(0, len(body), step):
                self.wfile.write(body[at : at + step])
                self.wfile.flush()
                if api.drip_s and is_over.wait(api.drip_s):
                    return

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    api.url = f"http://127.0.0.1:{server.server_port}/v2/rerank"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield api
    finally:
        is_over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def unused_url() -> str:
    """Where nobody listens."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.server_close()
    return f"http://127.0.0.1:{server.server_port}/v2/rerank"
