"""A webhook on the loopback device that answers as told and remembers what was posted."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pydantic import SecretStr

SECRET = "T0CK3N-s3cr3t"


@dataclass(slots=True)
class Webhook:
    """What was posted, and the statuses that are still to be answered; 200 after them, or no answer if it is silent."""

    address: str = ""
    statuses: list[int] = field(default_factory=list)
    is_silent: bool = False
    posted: list[dict[str, Any]] = field(default_factory=list)
    types: list[str] = field(default_factory=list)  # the content type of each
    followed: list[str] = field(default_factory=list)  # paths asked for that are not the webhook's

    @property
    def url(self) -> SecretStr:
        return SecretStr(f"{self.address}/services/{SECRET}?key={SECRET}")

    def texts(self) -> list[str]:
        return [message["text"] for message in self.posted]


@contextmanager
def listening(statuses: Sequence[int] = ()) -> Iterator[Webhook]:
    """Serve a webhook."""
    hook = Webhook(statuses=list(statuses))
    is_over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if not self.path.startswith("/services/"):
                hook.followed.append(self.path)
            hook.posted.append(body)
            hook.types.append(self.headers["Content-Type"])
            if hook.is_silent:
                is_over.wait()
                return
            self.send_response(hook.statuses.pop(0) if hook.statuses else 200)
            self.send_header("Location", f"http://127.0.0.1:{server.server_port}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            hook.followed.append(self.path)
            self.send_error(404)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False  # so that closing it waits until all that was sent is read
    hook.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield hook
    finally:
        is_over.set()
        server.shutdown()
        thread.join()
        server.server_close()
