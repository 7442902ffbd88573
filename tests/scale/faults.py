"""Object store proxy that counts requests and makes some of them fail, as determined by a seed.

The proxy forwards signed requests unchanged, including the client's `Host` header. It serializes conditional puts, so
that a store which does not handle them atomically behaves as if it did.
"""

import asyncio
import random
import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from threading import Event, Thread
from typing import Literal
from urllib.parse import parse_qs, unquote, urlsplit

from tests.scale.s3 import ObjectStore

Fault = Literal["error", "slow_down", "conflict", "cut", "lost_answer"]

_LONGEST_HEAD = 1 << 20
_WRITES = frozenset({"PUT", "POST", "DELETE"})
_CONDITIONS = frozenset({"if-match", "if-none-match"})
_WITHOUT_BODY = frozenset({"204", "304"})
_STATUS: Mapping[Fault, tuple[str, str]] = {
    "error": ("500 Internal Server Error", "InternalError"),
    "lost_answer": ("500 Internal Server Error", "InternalError"),
    "slow_down": ("503 Slow Down", "SlowDown"),
    "conflict": ("409 Conflict", "ConditionalRequestConflict"),
}


@dataclass(frozen=True, slots=True)
class Faults:
    """Fault rates, each as a share of the requests that the fault can affect.

    Attributes:
        error: status 500 without forwarding the request.
        slow_down: status 503 without forwarding the request.
        conflict: status 409 for a conditional put, without forwarding it.
        cut: the connection closes in the middle of a response body or, for a write, instead of the response, whether
            the write was done or not.
        lost_answer: status 500 after the write was done; a client that retries a conditional write finds its own
            object.
        delay: the response is late.
        delay_s: length of the delay in seconds.
    """

    error: float = 0.0
    slow_down: float = 0.0
    conflict: float = 0.0
    cut: float = 0.0
    lost_answer: float = 0.0
    delay: float = 0.0
    delay_s: float = 0.5


NO_FAULTS = Faults()


@dataclass(frozen=True, slots=True, order=True)
class Kind:
    """Kind of request: its method (`LIST` for a listing) and the first key segment after the prefix."""

    method: str
    folder: str


@dataclass(frozen=True, slots=True)
class Figures:
    """Number of requests, and bytes of the bodies that clients sent and received."""

    requests: int = 0
    sent: int = 0
    received: int = 0

    def __add__(self, other: "Figures") -> "Figures":
        return Figures(self.requests + other.requests, self.sent + other.sent, self.received + other.received)

    def __sub__(self, other: "Figures") -> "Figures":
        return Figures(self.requests - other.requests, self.sent - other.sent, self.received - other.received)


@dataclass(frozen=True, slots=True)
class Traffic:
    """Figures per kind of request."""

    kinds: Mapping[Kind, Figures]

    @property
    def total(self) -> Figures:
        return sum(self.kinds.values(), Figures())

    def since(self, before: "Traffic") -> "Traffic":
        """Return the traffic since an earlier snapshot."""
        rest = {kind: figures - before.kinds.get(kind, Figures()) for kind, figures in sorted(self.kinds.items())}
        return Traffic({kind: figures for kind, figures in rest.items() if figures.requests})


@dataclass(frozen=True, slots=True)
class _Message:
    """A request or response: its first line and headers, ended by an empty line, and its body."""

    head: bytes
    body: bytes

    @property
    def first_line(self) -> list[str]:
        return self.head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)

    @property
    def headers(self) -> dict[str, str]:
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}

    def with_header(self, name: str, value: str) -> "_Message":
        """Return a copy in which one header replaces all headers of that name."""
        first, *lines = self.head.rstrip(b"\r\n").split(b"\r\n")
        others = [line for line in lines if line.split(b":", 1)[0].lower() != name.lower().encode()]
        return replace(self, head=b"\r\n".join([first, *others, f"{name}: {value}".encode(), b"", b""]))


@dataclass(slots=True)
class Gate:
    """Gate that holds the next request of a kind until it opens; later requests pass.

    Attributes:
        kind: kind of the request.
        answer: final status of the response.
    """

    kind: Kind
    answer: str = ""
    _is_taken: bool = False
    _opened: Event = field(default_factory=Event)
    _held: Event = field(default_factory=Event)

    @property
    def is_holding(self) -> bool:
        """Return whether a request is being held."""
        return self._held.is_set()

    def open(self) -> None:
        """Forward the held request, even if its client has disconnected."""
        self._opened.set()

    def takes(self, kind: Kind) -> bool:
        """Return whether to hold this request; only the first of its kind is held."""
        is_first = kind == self.kind and not self._is_taken
        self._is_taken |= is_first
        return is_first

    async def wait(self) -> None:
        """Wait until the gate opens."""
        self._held.set()
        while not self._opened.is_set():  # noqa: ASYNC110 it is opened by another thread
            await asyncio.sleep(0.05)


@dataclass(slots=True)
class Proxy:
    """A running proxy; `faults` may be changed while it runs."""

    store: ObjectStore
    behind: ObjectStore
    prefix: str
    faults: Faults
    chance: random.Random
    happened: Counter[str] = field(default_factory=Counter)
    _figures: dict[Kind, Figures] = field(default_factory=dict)
    _one_condition: asyncio.Lock = field(default_factory=asyncio.Lock)
    _in_work: set["asyncio.Task[None]"] = field(default_factory=set)
    _gates: list[Gate] = field(default_factory=list)

    def hold_next(self, method: str, folder: str) -> Gate:
        """Hold the next request of a kind; opening the gate forwards it unchanged."""
        gate = Gate(Kind(method, folder))
        self._gates.append(gate)
        return gate

    def traffic(self) -> Traffic:
        """Return the traffic so far."""
        return Traffic(dict(self._figures))

    async def serve(self, listener: socket.socket, is_ready: Event, is_over: asyncio.Event) -> None:
        """Serve connections until the end."""
        server = await asyncio.start_server(self._connection, sock=listener, limit=_LONGEST_HEAD)
        is_ready.set()
        await is_over.wait()
        server.close()
        for task in self._in_work:
            task.cancel()
        await asyncio.gather(*self._in_work, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._in_work.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client disconnected
        finally:
            self._in_work.discard(task)
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Handle one request, and return whether the connection can be reused."""
        request = await _request(reader)
        method = request.first_line[0]
        is_conditional = method == "PUT" and not _CONDITIONS.isdisjoint(request.headers)
        fault = self._drawn(is_write=method in _WRITES, is_conditional=is_conditional)
        if self.chance.random() < self.faults.delay:
            self.happened["delay"] += 1
            await asyncio.sleep(self.faults.delay_s)
        if fault == "cut" and method in _WRITES and self.chance.random() < 0.5:
            self._count(request, b"")
            return False
        answer = _refusal(fault) if fault in {"error", "slow_down", "conflict"} else None
        if answer is None:
            answer = await self._passed_on(request, is_conditional=is_conditional)
        if fault == "lost_answer":
            answer = _refusal(fault)
        if fault == "cut":
            half = b"" if method in _WRITES else answer.body[: len(answer.body) // 2]
            self._count(request, half)
            writer.write((answer.head + half) if half else b"")
            await writer.drain()
            return False
        self._count(request, answer.body)
        writer.write(answer.head)
        writer.write(answer.body)
        await writer.drain()
        return True

    def _drawn(self, *, is_write: bool, is_conditional: bool) -> Fault | None:
        """Draw the fault of a request, if any."""
        shares: list[tuple[Fault, float]] = [("error", self.faults.error), ("slow_down", self.faults.slow_down)]
        shares.append(("cut", self.faults.cut))
        if is_write:
            shares.append(("lost_answer", self.faults.lost_answer))
        if is_conditional:
            shares.append(("conflict", self.faults.conflict))
        left = self.chance.random()
        for fault, share in shares:
            if left < share:
                self.happened[fault] += 1
                return fault
            left -= share
        return None

    async def _passed_on(self, request: _Message, *, is_conditional: bool) -> _Message:
        kind = _kind(request, self.store.bucket, self.prefix)
        for gate in self._gates:
            if gate.takes(kind):
                await gate.wait()
                answer = await self._asked(request, is_conditional=is_conditional)
                gate.answer = answer.first_line[1]
                return answer
        return await self._asked(request, is_conditional=is_conditional)

    async def _asked(self, request: _Message, *, is_conditional: bool) -> _Message:
        if not is_conditional:
            return await _ask(self.behind.port, request)
        async with self._one_condition:
            return await _ask(self.behind.port, request)

    def _count(self, request: _Message, received: bytes) -> None:
        kind = _kind(request, self.store.bucket, self.prefix)
        one = Figures(1, len(request.body), len(received))
        self._figures[kind] = self._figures.get(kind, Figures()) + one


async def _request(reader: asyncio.StreamReader) -> _Message:
    head = await reader.readuntil(b"\r\n\r\n")
    message = _Message(head, b"")
    return replace(message, body=await reader.readexactly(int(message.headers.get("content-length", 0))))


async def _ask(port: int, request: _Message) -> _Message:
    """Forward a request over a new connection and read the complete response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=_LONGEST_HEAD)
    try:
        writer.write(request.with_header("Connection", "close").head)
        writer.write(request.body)
        await writer.drain()
        answer = _Message(await reader.readuntil(b"\r\n\r\n"), await reader.read(-1))
    finally:
        writer.transport.abort()
    answer = answer.with_header("Connection", "keep-alive")
    if request.first_line[0] == "HEAD" or answer.first_line[1] in _WITHOUT_BODY:
        return replace(answer, body=b"")
    return answer.with_header("Content-Length", str(len(answer.body)))


def _refusal(fault: Fault) -> _Message:
    status, code = _STATUS[fault]
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>As planned</Message></Error>".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n\r\n"
    return _Message(head.encode(), body)


def _kind(request: _Message, bucket: str, prefix: str) -> Kind:
    method, target, _ = request.first_line
    parts = urlsplit(target)
    asked = parse_qs(parts.query, keep_blank_values=True)
    is_listing = method == "GET" and "list-type" in asked
    path = asked.get("prefix", [""])[0] if is_listing else unquote(parts.path).removeprefix(f"/{bucket}").lstrip("/")
    below = path.removeprefix(prefix).lstrip("/")
    return Kind("LIST" if is_listing else method, below.split("/", 1)[0])


@contextmanager
def proxy(behind: ObjectStore, seed: int, faults: Faults = NO_FAULTS, prefix: str = "") -> Iterator[Proxy]:
    """Run a proxy in front of an object store, in a thread of this process.

    Args:
        behind: the object store.
        seed: seed for the faults, which are drawn in the order of requests.
        faults: initial fault rates.
        prefix: prefix of all keys; kinds of requests are named after the key segment that follows it.
    """
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    loop = asyncio.new_event_loop()
    is_ready, is_over = Event(), asyncio.Event()
    store = replace(behind, port=int(listener.getsockname()[1]))
    made = Proxy(store, behind, prefix, faults, random.Random(seed))
    thread = Thread(target=loop.run_until_complete, args=(made.serve(listener, is_ready, is_over),), daemon=True)
    thread.start()
    is_ready.wait()
    try:
        yield made
    finally:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(is_over.set)
        thread.join()
        loop.close()
