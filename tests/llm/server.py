"""Fake LLM on the loopback interface: real HTTP in the formats of OpenAI and Anthropic, and every kind of failure."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from docindex_dagster.llm.chat import Delta, Usage
from tests import loopback
from tests.llm import chats

KEY = chats.KEY
_PIECE = re.compile(r"<piece (\w+)>\n(.*)\n</piece \1>", re.DOTALL)


def first_line_of(text: str) -> str:
    """Return the default answer, which quotes the first line of the text."""
    return f"It is about {text.splitlines()[0]}."


@dataclass(slots=True)
class LlmServer:
    """Requests received and behavior: answers come from `write`, unless `status`, `reply` or `broken` is set."""

    url: str = ""
    write: Callable[[str], str] = first_line_of
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    reply: bytes | None = None
    broken: bytes | None = None  # bytes sent instead of a response, before closing the connection
    delay_s: float = 0.0
    drip_s: float = 0.0
    fails: int = 0  # how many requests are answered 503 first
    refuses: dict[str, str] = field(default_factory=dict)  # maps rejected request parameters to error codes
    usage: dict[str, int] | None = field(default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 20})
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    clients: set[int] = field(default_factory=set)  # ports of client connections
    left: threading.Event = field(default_factory=threading.Event)  # set by the first client that disconnects
    concurrency: int = 0  # maximum number of concurrent requests
    under_way: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def pieces(self) -> list[str]:
        """The texts of all requests, each with its header."""
        return [_piece(asked) for asked in self.asked]


def _piece(asked: dict[str, Any]) -> str:
    text = asked["messages"][-1]["content"]
    match = _PIECE.fullmatch(text)
    return match[2] if match else text


def _handler(llm: LlmServer) -> type[loopback.Handler]:
    class Handler(loopback.Handler):
        protocol_version = "HTTP/1.1"

        def finish(self) -> None:
            super().finish()
            llm.left.set()

        def do_POST(self) -> None:
            asked = self.body()
            with llm.lock:
                llm.asked.append(asked)
                llm.keys.append(self.headers["Authorization"] or self.headers["X-Api-Key"])
                llm.paths.append(self.path)
                llm.clients.add(self.client_address[1])
                llm.under_way += 1
                llm.concurrency = max(llm.concurrency, llm.under_way)
                status = 503 if llm.fails > 0 else llm.status
                llm.fails -= 1
            self.is_over.wait(llm.delay_s)
            with llm.lock:
                llm.under_way -= 1
            if llm.broken is not None:
                self.wfile.write(llm.broken)
                self.close_connection = True
                return
            status, body = _answer(llm, asked, status, is_anthropic=self.path.endswith("/messages"))
            kind = "text/event-stream" if status == 200 and "stream" in asked else "application/json"
            headers = {"Location": "/elsewhere", "Content-Type": kind, **llm.headers}
            self.answer(status, body, headers, llm.drip_s)

    return Handler


def _answer(llm: LlmServer, asked: dict[str, Any], status: int, *, is_anthropic: bool) -> tuple[int, bytes]:
    refused = next((name for name in llm.refuses if name in asked), None)
    if refused:
        error = {"message": f"no {refused}", "param": refused, "code": llm.refuses[refused]}
        return 400, json.dumps({"error": error}).encode()
    if status != 200:
        # Repeat the key, as some servers do.
        return status, json.dumps({"error": {"message": f"wrong key {llm.keys[-1]}"}}).encode()
    if llm.reply is not None:
        return status, llm.reply
    text = llm.write(_piece(asked))
    usage = llm.usage or {}
    if "stream" not in asked:
        message = {"role": "assistant", "content": text}
        return status, json.dumps({"choices": [{"index": 0, "message": message}], "usage": usage}).encode()
    events = chats.anthropic_events if is_anthropic else chats.openai_events
    counts = Usage(usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0))
    return status, b"".join(events([Delta(text), counts]))


@contextmanager
def serving() -> Iterator[LlmServer]:
    """Serve the LLM while the block runs."""
    llm = LlmServer()
    with loopback.serving(_handler(llm)) as address:
        llm.url = f"{address}/v1"
        yield llm


def unused_url() -> str:
    """Return an address on which nothing listens."""
    return f"{loopback.unused_address()}/v1"
