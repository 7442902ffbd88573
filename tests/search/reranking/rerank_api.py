"""Fake reranking API in Cohere's format on the loopback interface: real HTTP and every kind of failure."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests import loopback

KEY = "K3Y-s3cr3t"


@dataclass(slots=True)
class RerankApi:
    """Requests received and behavior: `reply` replaces the scores, `delay_s` and `drip_s` slow the response down."""

    url: str = ""
    status: int = 200
    reply: bytes | None = None
    delay_s: float = 0.0
    drip_s: float = 0.0
    broken: bytes | None = None  # bytes sent instead of a response, before closing the connection
    slow_header_s: float = 0.0
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)


def relevance(query: str, document: str) -> float:
    """Return the share of the query's words that occur in a document."""
    words = query.lower().split()
    return sum(word in document.lower() for word in words) / len(words)


@contextmanager
def serving() -> Iterator[RerankApi]:
    """Serve the API while the block runs."""
    api = RerankApi()

    class Handler(loopback.Handler):
        def do_POST(self) -> None:
            asked = self.body()
            api.asked.append(asked)
            api.keys.append(self.headers["Authorization"])
            self.is_over.wait(api.delay_s)
            if api.broken is not None:
                self.wfile.write(api.broken)
                self.close_connection = True
                return
            if api.slow_header_s:
                with suppress(ConnectionError):
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                    while not self.is_over.wait(api.slow_header_s):
                        self.wfile.write(b"x")
                        self.wfile.flush()
                return
            scores = [relevance(asked["query"], document) for document in asked["documents"]]
            best = sorted(range(len(scores)), key=lambda at: -scores[at])[: asked["top_n"]]
            answer = {"results": [{"index": at, "relevance_score": scores[at]} for at in best]}
            body = json.dumps(answer).encode() if api.reply is None else api.reply
            self.answer(api.status, body, {"Location": "/elsewhere"}, api.drip_s)

    with loopback.serving(Handler) as address:
        api.url = f"{address}/v2/rerank"
        yield api


def unused_url() -> str:
    """Return an address on which nothing listens."""
    return f"{loopback.unused_address()}/v2/rerank"
