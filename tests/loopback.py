"""HTTP test server on the loopback device, with real sockets, real timeouts and every way of failing to answer.

The responses and recorded requests of each API are defined next to the tests of that API.
"""

import json
import select
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_NO_HEADERS: Mapping[str, str] = {}


class Handler(BaseHTTPRequestHandler):
    """Request handler that logs nothing and ignores disconnected clients."""

    is_over: threading.Event  # set at the end of the test, to release waiting handlers

    def handle(self) -> None:
        with suppress(ConnectionError):  # the client timed out
            super().handle()

    def body(self) -> Any:
        """Return the request body, parsed as JSON."""
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def answer(
        self, status: int, body: bytes = b"", headers: Mapping[str, str] = _NO_HEADERS, drip_s: float = 0.0
    ) -> None:
        """Send a response, one byte at a time if a delay is given."""
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        step = 1 if drip_s else max(1, len(body))
        for at in range(0, len(body), step):
            self.wfile.write(body[at : at + step])
            self.wfile.flush()
            if drip_s and self.is_over.wait(drip_s):
                return

    def stream(self, pieces: Iterable[bytes], headers: Mapping[str, str] = _NO_HEADERS, drip_s: float = 0.0) -> None:
        """Start a response of unknown length and send pieces of it unchanged.

        `end_stream` completes the response; closing the connection first truncates it.
        """
        self.send_response(200)
        for name, value in {"Transfer-Encoding": "chunked", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        for piece in pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
            if drip_s and self.is_over.wait(drip_s):
                return

    def end_stream(self) -> None:
        """End a response that `stream` started."""
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def has_left(self, within_s: float) -> bool:
        """Return whether the client closes the connection within this time."""
        until = time.monotonic() + within_s
        while time.monotonic() < until and not self.is_over.is_set():
            if select.select([self.connection], [], [], 0.01)[0]:
                try:
                    return not self.connection.recv(1, socket.MSG_PEEK)
                except ConnectionError:
                    return True
        return False

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    request_queue_size = 64

    def handle_error(self, *_: object) -> None:
        """Ignore disconnected clients."""


@contextmanager
def serving(handler: type[Handler], *, reads_all: bool = False) -> Iterator[str]:
    """Serve requests and yield the address: http://127.0.0.1:PORT.

    Args:
        handler: the request handler.
        reads_all: read every request to its end before stopping.
    """
    is_over = threading.Event()
    server = _Server(("127.0.0.1", 0), type(handler.__name__, (handler,), {"is_over": is_over}))
    server.daemon_threads = not reads_all
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        is_over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def unused_address() -> str:
    """Return an address at which no server listens."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.server_close()
    return f"http://127.0.0.1:{server.server_port}"
