"""A reranking API in Cohere's format on the loopback device: real HTTP, and every way in which it may fail."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests import loopback

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
    """Where nobody listens."""
    return f"{loopback.unused_address()}/v2/rerank"
