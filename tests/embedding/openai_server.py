"""Fake of OpenAI's `/v1/embeddings` on the loopback interface: real HTTP and every kind of failure.

It counts each text that it embeds, which is what a real API would charge for.
"""

import base64
import json
import math
import re
import socket
import struct
import threading
import time
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests import loopback

KEY = "sk-d0c1ndex-K3Y-that-must-not-be-told"


@dataclass(frozen=True, slots=True)
class Fault:
    """Response that replaces the normal one. `change` edits the normal response instead."""

    status: int = 200
    body: bytes = b'{"error": {"message": "it fails", "param": null, "code": null}}'
    headers: dict[str, str] = field(default_factory=dict)
    reset: bool = False  # reset the connection
    delay_s: float = 0.0
    drip_s: float = 0.0  # between the bytes of the response
    change: Callable[[dict[str, Any]], dict[str, Any] | bytes] | None = None


@dataclass(slots=True)
class OpenAIServer:
    """Requests received and behavior of the server."""

    url: str = ""
    faults: deque[Fault] = field(default_factory=deque)  # for the next requests, one each
    always: Fault | None = None  # for all requests once `faults` is empty
    refuse: Callable[[str], str | None] = lambda _: None  # returns the reason for rejecting a text
    refused_options: dict[str, str] = field(default_factory=dict)  # rejected options and the reasons
    key: str | None = None  # any other key is rejected
    dimension: int = 8  # default if the request names none
    only_floats: bool = False  # reject `encoding_format`
    with_usage: bool = True
    vector: Callable[[str, int], list[float]] = field(default_factory=lambda: vector_of)
    latency_s: float = 0.0
    answers: float = math.inf  # requests hang after this many
    answered: Counter[tuple[str, int, str]] = field(default_factory=Counter)  # keys: model, dimension, text
    requests: list[dict[str, Any]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    concurrency: int = 0
    peak_concurrency: int = 0
    hanging: int = 0
    over: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def twice(self) -> list[str]:
        """Texts that one model embedded more than once."""
        return [text for (_, _, text), times in self.answered.items() if times > 1]

    def texts(self) -> int:
        """Return the number of texts embedded."""
        return sum(self.answered.values())


def vector_of(text: str, dimension: int) -> list[float]:
    """Count the words of a text in hash buckets, one per dimension. The vector is not normalized."""
    values = [0.01] * dimension
    for word in re.findall(r"\w+", text.lower()):
        values[zlib.crc32(word.encode()) % dimension] += 1
    return values


@contextmanager
def serving() -> Iterator[OpenAIServer]:  # noqa: C901 what counts is that a failure reads as it is
    """Serve the API while the block runs."""
    api = OpenAIServer()

    class Handler(loopback.Handler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            asked = self.body()
            with api.lock:
                api.requests.append(asked | {"path": self.path})
                api.times.append(time.monotonic())
                api.keys.append(self.headers["Authorization"])
                fault = api.faults.popleft() if api.faults else api.always
                api.concurrency += 1
                api.peak_concurrency = max(api.concurrency, api.peak_concurrency)
                may_answer = api.answers > 0
                api.answers -= 1
                api.hanging += not may_answer
            with suppress(ConnectionError):
                if not may_answer:
                    api.over.wait()
                    self.close_connection = True
                    return
                api.over.wait(api.latency_s)
                self._reply(asked, fault)
            with api.lock:
                api.concurrency -= 1

        def _reply(self, asked: dict[str, Any], fault: Fault | None) -> None:
            fault = fault or self._refusal(asked)
            if fault is not None:
                api.over.wait(fault.delay_s)
                if fault.reset:
                    # With a linger time of zero, closing the socket sends a reset.
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.connection.close()
                    self.close_connection = True
                    return
                if fault.status != 200:
                    self.answer(fault.status, fault.body, fault.headers)
                    return
            answer: dict[str, Any] | bytes = self._embedded(asked)
            if fault is not None and fault.change is not None:
                assert isinstance(answer, dict)
                answer = fault.change(answer)
            with api.lock:
                dimension = asked.get("dimensions", api.dimension)
                api.answered.update((asked["model"], dimension, text) for text in asked["input"])
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.answer(200, body, drip_s=fault.drip_s if fault else 0)

        def _refusal(self, asked: dict[str, Any]) -> Fault | None:
            if api.key is not None and self.headers["Authorization"] != f"Bearer {api.key}":
                message = f"Incorrect API key provided: {self.headers['Authorization']}"
                return Fault(401, json.dumps({"error": {"message": message, "code": "invalid_api_key"}}).encode())
            for option in {f"{name}={value}" for name, value in asked.items()} & api.refused_options.keys():
                message = api.refused_options[option]
                return Fault(400, json.dumps({"error": {"message": message, "param": None, "code": None}}).encode())
            for why in filter(None, map(api.refuse, asked["input"])):
                return Fault(400, json.dumps({"error": {"message": why, "param": "input"}}).encode())
            return None

        def _embedded(self, asked: dict[str, Any]) -> dict[str, Any]:
            rows = [api.vector(text, asked.get("dimensions", api.dimension)) for text in asked["input"]]
            is_packed = asked.get("encoding_format") == "base64" and not api.only_floats
            packed = [base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode() for row in rows]
            data = [
                {"object": "embedding", "index": at, "embedding": vector}
                for at, vector in enumerate(packed if is_packed else rows)
            ]
            tokens = sum(len(text.split()) for text in asked["input"])
            usage = {"usage": {"prompt_tokens": tokens, "total_tokens": tokens}} if api.with_usage else {}
            return {"object": "list", "model": asked["model"], "data": data[::-1], **usage}

    with loopback.serving(Handler) as address:
        api.url = f"{address}/v1"
        try:
            yield api
        finally:
            api.over.set()


def unused_url() -> str:
    """Return an address on which nothing listens."""
    return f"{loopback.unused_address()}/v1"
