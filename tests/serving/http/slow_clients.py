"""Clients that send requests slowly or partially, and the latency of health checks in their presence."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection

KINDS = ("aborted", "half a body", "half the headers", "nothing", "dripping")
_EACH_S = 1.0


def opened(port: int, kind: str, token: str = "") -> socket.socket:
    """Open a connection and send part of a request."""
    connection = socket.create_connection(("127.0.0.1", port))
    head = f"POST /login HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    if token:
        head = f"POST /api/v1/search HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
    if kind == "half the headers":
        connection.sendall(head.encode())
    elif kind != "nothing":
        connection.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\ntoken=".encode())
    return connection


@contextmanager
def slow_clients(port: int, count: int, token: str = "") -> Iterator[None]:
    """Keep `count` requests in flight: reopen aborted ones, and send a byte on some of them now and then."""
    kinds = [KINDS[number % len(KINDS)] for number in range(count)]
    connections = [opened(port, kind, token if number % 2 else "") for number, kind in enumerate(kinds)]
    ended = threading.Event()

    def keep_on() -> None:
        while not ended.wait(_EACH_S):
            for at, kind in enumerate(kinds):
                if kind == "nothing":
                    continue
                try:
                    if kind == "aborted":
                        connections[at].close()
                    else:
                        connections[at].send(b"x" if kind == "dripping" else b"")
                        continue
                except OSError:
                    connections[at].close()
                connections[at] = opened(port, kind, token if at % 2 else "")

    thread = threading.Thread(target=keep_on)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        for connection in connections:
            connection.close()


def health_ms(port: int, count: int) -> list[float]:
    """Return the sorted latencies of health checks in milliseconds, each on a new connection."""
    found = []
    for _ in range(count):
        began = time.perf_counter()
        with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
            connection.request("GET", "/api/v1/health")
            answer = connection.getresponse()
            text = answer.read()
        found.append((time.perf_counter() - began) * 1000)
        assert answer.status == 200, text
        time.sleep(0.02)
    return sorted(found)
