"""Minimal S3 server on the loopback interface: objects, conditional puts, and faults on demand."""

import hashlib
import re
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

Fault = Literal["refuse", "do and refuse"]


@dataclass
class S3:
    """Objects on the server and its next failures.

    Attributes:
        faults: faults of the next puts, one each. "do and refuse" stores the object but answers 500.
        most: maximum bytes of an object in a response, after which the connection closes.
        cuts: number of upcoming responses with a body that stop halfway.
    """

    url: str
    objects: dict[str, bytes] = field(default_factory=dict)
    faults: deque[Fault] = field(default_factory=deque)
    cuts: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    most: int | None = None


def tag_of(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'


def environment(server: S3) -> dict[str, str]:
    """Return the environment variables that point a client to the server."""
    keys = {"AWS_ACCESS_KEY_ID": "one", "AWS_SECRET_ACCESS_KEY": "two", "AWS_REGION": "here"}
    return {**keys, "AWS_ENDPOINT_URL": server.url, "AWS_ALLOW_HTTP": "true"}


@contextmanager
def serving() -> Iterator[S3]:
    """Run the server during the block."""
    server = _Server(("127.0.0.1", 0), _Handler)
    held = server.held = S3(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield held
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    held: S3


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if "list-type=2" in parts.query:
            prefix = f"{parts.path}/{parse_qs(parts.query)['prefix'][0]}"
            found = "".join(
                f"<Contents><Key>{escape(unquote(name.removeprefix(f'{parts.path}/')))}</Key><Size>{len(data)}</Size>"
                f"<ETag>{tag_of(data)}</ETag><LastModified>2026-11-24T10:00:00Z</LastModified></Contents>"
                for name, data in sorted(self.server.held.objects.items())
                if unquote(name).startswith(prefix)
            )
            self._answer(200, f"<ListBucketResult><KeyCount>1</KeyCount>{found}</ListBucketResult>".encode())
            return
        data = self.server.held.objects.get(self.path)
        if data is None:
            self._answer(404)
        elif self.headers.get("If-None-Match") == tag_of(data):
            self._answer(304)
        elif wanted := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            first, last = int(wanted[1]), min(int(wanted[2] or len(data)), len(data) - 1)
            self._answer(206, data[first : last + 1], tag_of(data), f"bytes {first}-{last}/{len(data)}")
        else:
            self._answer(200, data)

    def do_PUT(self) -> None:
        held = self.server.held
        data = self.rfile.read(int(self.headers["Content-Length"]))
        with held.lock:
            fault = held.faults.popleft() if held.faults else None
            before = held.objects.get(self.path)
            if fault == "refuse":
                self._answer(500)
                return
            wanted = self.headers.get("If-Match")
            if (self.headers.get("If-None-Match") == "*" and before is not None) or (
                wanted is not None and (before is None or tag_of(before) != wanted)
            ):
                self._answer(412)
                return
            held.objects[self.path] = data
        self._answer(500 if fault else 200, tag=tag_of(data))

    def do_POST(self) -> None:
        """Delete objects, the only POST request in use."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        bucket = urlsplit(self.path).path
        names = re.findall("<Key>(.*?)</Key>", body)
        for name in names:
            self.server.held.objects.pop(f"{bucket}/{quote(unescape(name))}", None)
        deleted = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names)
        self._answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())

    def _answer(self, status: int, data: bytes = b"", tag: str | None = None, part: str = "") -> None:
        self.send_response(status)
        if part:
            self.send_header("Content-Range", part)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", tag or tag_of(data))
        self.send_header("Last-Modified", "Tue, 24 Nov 2026 10:00:00 GMT")
        self.end_headers()
        held, most = self.server.held, self.server.held.most
        if data and held.cuts:
            held.cuts -= 1
            most = len(data) // 2
        self.wfile.write(data[:most])
        self.close_connection = most is not None and len(data) > most
