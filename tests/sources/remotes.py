"""Remote repositories: created with git and served by git's own HTTP server on the loopback interface."""

import base64
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from docindex_dagster.core.layout import Layout
from docindex_dagster.sources import clone
from docindex_dagster.sources.model import Remote, Source
from tests import loopback
from tests.sources.conftest import Tree

_PASSED_ON = {
    "Content-Type": "CONTENT_TYPE",
    "Git-Protocol": "GIT_PROTOCOL",
    "Content-Encoding": "HTTP_CONTENT_ENCODING",
}


@dataclass(slots=True)
class Server:
    """The requests that a server received, and its access control."""

    url: str = ""
    password: str | None = None  # of the user `ada`; None: no authentication
    requests: list[str] = field(default_factory=list)

    def _admits(self, authorization: str | None) -> bool:
        wanted = base64.b64encode(f"ada:{self.password}".encode()).decode()
        return self.password is None or authorization == f"Basic {wanted}"


@contextmanager
def serving(folder: Path, password: str | None = None) -> Iterator[Server]:
    """Serve the repositories in a folder with `git http-backend`."""
    server = Server(password=password)

    class Handler(loopback.Handler):
        def do_GET(self) -> None:
            self._run(b"")

        def do_POST(self) -> None:
            if self.headers.get("Transfer-Encoding") == "chunked":
                body = b"".join(iter(self._chunk, b""))
            else:
                body = self.rfile.read(int(self.headers["Content-Length"]))
            self._run(body)

        def _chunk(self) -> bytes:
            data = self.rfile.read(int(self.rfile.readline(), 16))
            self.rfile.readline()
            return data

        def _run(self, body: bytes) -> None:
            path, _, query = self.path.partition("?")
            server.requests.append(f"{self.command} {path}")
            if not server._admits(self.headers.get("Authorization")):
                self.answer(401, headers={"WWW-Authenticate": 'Basic realm="git"'})
                return
            variables = {"REQUEST_METHOD": self.command, "PATH_INFO": path, "QUERY_STRING": query}
            variables |= {"GIT_PROJECT_ROOT": str(folder), "GIT_HTTP_EXPORT_ALL": "1", "REMOTE_ADDR": "127.0.0.1"}
            variables |= {name: self.headers[header] for header, name in _PASSED_ON.items() if self.headers[header]}
            variables |= {"PATH": os.environ["PATH"], "CONTENT_LENGTH": str(len(body)), "GIT_CONFIG_NOSYSTEM": "1"}
            answer = subprocess.run(
                ["git", "http-backend"], input=body, env=variables, capture_output=True, check=False
            ).stdout
            head, _, content = answer.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.answer(int(fields.pop("Status", "200 OK").split()[0]), content, fields)

    with loopback.serving(Handler) as server.url:
        yield server


@dataclass(frozen=True, slots=True)
class Followed:
    """A source that follows a repository, in a separate home."""

    home: Path
    url: str
    ref: str | None = None
    label: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    reports: list[str] = field(default_factory=list)

    @property
    def layout(self) -> Layout:
        return Layout(self.home)

    @property
    def source(self) -> Source:
        key = f"git/up{self.label}"
        remote = Remote(self.url, self.ref, self.layout.repository(key))
        place = self.layout.checkout(key)
        return Source(key, "git", key[4:], place, remote, untracked=False, **self.settings)

    def at(self, ref: str | None) -> "Followed":
        return replace(self, ref=ref, label=f"@{ref}" if ref else "")

    def update(self, history: int = 0) -> dict[str, str]:
        """Update the checkout and return the texts of its files by path."""
        clone.update(self.source, self.layout, history=history, report=self.reports.append)
        return self.files

    @property
    def tree(self) -> Tree:
        return Tree(self.source.path, "git")

    @property
    def files(self) -> dict[str, str]:
        root = self.source.path
        return {
            str(path.relative_to(root)): path.read_text(errors="replace")
            for path in sorted(root.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(root).parts
        }

    @property
    def head(self) -> str:
        return self.tree.git("rev-parse", "HEAD")
