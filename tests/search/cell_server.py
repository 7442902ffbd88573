"""The server of a cell, which can be slow or broken; `serving/http/cell.py` speaks as it does."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

from docindex_dagster.core.layout import Layout
from docindex_dagster.search import remote_cells, wire
from docindex_dagster.stores.reader import Reader, open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of

KEYS = ("library/a", "library/b")
OK, BROKEN = 200, 500
LONGEST_S = 30.0


@dataclass
class CellServer:
    """A server on the loopback device."""

    reader: Reader
    port: int
    broken: frozenset[str] = frozenset()  # names of questions, or "" for what it has published
    slow: frozenset[str] = frozenset()
    asked: list[str] = field(default_factory=list)
    goes_on: Event = field(default_factory=Event)

    def answer(self, name: str, body: bytes) -> tuple[int, bytes]:
        self.asked.append(name)
        if name in self.slow:
            self.goes_on.wait(LONGEST_S)
        if name in self.broken:
            return BROKEN, b"{}"
        return OK, wire.written(wire.question(name, body).of(self.reader) if name else self.reader.generation)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def serving(reader: Reader, port: int = 0) -> Iterator[CellServer]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            name = self.path.removeprefix(remote_cells.PATH).removeprefix("/")
            status, content = cell.answer(name, body)
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    cell = CellServer(reader, server.server_port)
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield cell
    finally:
        cell.goes_on.set()
        server.shutdown()
        server.server_close()


def indexed(root: Path, keys: Sequence[str] = KEYS) -> list[Reader]:
    """A cell for each source, of which each has one chunk."""
    for key in keys:
        chunks = chunks_of({"field.py": [f"wheat of {key}"]}, key)
        publish_rows(Layout(root / key), key, chunks, vectors_of(chunks))
    return [open_reader(Layout(root / key)) for key in keys]
