"""Scripted Codex program: an executable that reads, writes, fails and hangs like the real one."""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

VERSION = "codex-cli 0.169.0"
_PROGRAM = f"""#!{sys.executable} -IS
import json, os, subprocess, sys, time
from pathlib import Path

here = Path(__file__).parent
script = json.loads((here / "script.json").read_text())
arguments = sys.argv[1:]
if arguments == ["--version"]:
    print({VERSION!r})
    sys.exit(0)
if arguments == ["login", "status"]:
    print("Logged in using ChatGPT" if script["is_logged_in"] else "Not logged in", file=sys.stderr)
    sys.exit(0 if script["is_logged_in"] else 1)
settings = dict(item.split("=", 1) for flag, item in zip(arguments, arguments[1:]) if flag == "-c")
asked = {{
    "arguments": arguments,
    "folder": os.getcwd(),
    "files": os.listdir(),
    "instructions": Path(json.loads(settings["model_instructions_file"])).read_text(),
    "environment": dict(os.environ),
    "pids": [os.getpid()],
}}
if script["starts"]:
    asked["pids"].append(subprocess.Popen([sys.executable, "-IS", "-c", "import time; time.sleep(60)"]).pid)
asked["prompt"] = sys.stdin.read() if script["reads"] else ""
(here / "asked.tmp").write_text(json.dumps(asked))
os.replace(here / "asked.tmp", here / "asked.json")
for line in script["lines"]:
    print(line, flush=True)
    time.sleep(script["drip_s"])
time.sleep(script["stays_s"])
sys.exit(script["exit_code"])
"""


@dataclass(slots=True)
class Codex:
    """Behavior of the program and the last request it received.

    Attributes:
        folder: folder of the program, on the PATH.
        lines: lines that it writes.
        reads: whether it reads the prompt.
        starts: whether it starts a child process.
        drip_s: delay between lines.
        stays_s: delay after the last line.
    """

    folder: Path
    lines: list[str] = field(default_factory=list)
    reads: bool = True
    starts: bool = False
    drip_s: float = 0.0
    stays_s: float = 0.0
    exit_code: int = 0
    is_logged_in: bool = True

    def play(self, *events: dict[str, Any] | str, **how: Any) -> None:
        """Set the output and the behavior."""
        self.lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
        for name, value in how.items():
            setattr(self, name, value)
        script = {name: getattr(self, name) for name in self.__slots__ if name != "folder"}
        self.folder.joinpath("script.json").write_text(json.dumps(script))

    @property
    def asked(self) -> dict[str, Any]:
        """The arguments, the prompt, and the working directory of the last call."""
        asked: dict[str, Any] = json.loads(self.folder.joinpath("asked.json").read_text())
        return asked

    @property
    def was_asked(self) -> bool:
        return self.folder.joinpath("asked.json").exists()


def install(folder: Path, patch: pytest.MonkeyPatch) -> Codex:
    """Install the program as the only one on the PATH."""
    folder.mkdir()
    program = folder / "codex"
    program.write_text(_PROGRAM)
    program.chmod(0o755)
    patch.setenv("PATH", str(folder))
    codex = Codex(folder)
    codex.play()
    return codex


def is_running(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def message(text: str) -> dict[str, Any]:
    """Return a message of the model in the program's format."""
    return {"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": text}}


STARTED: list[dict[str, Any]] = [
    {"type": "thread.started", "thread_id": "01a2"},
    {"type": "item.completed", "item": {"id": "item_0", "type": "error", "message": "Model metadata not found."}},
    {"type": "turn.started"},
]
DONE = {"type": "turn.completed", "usage": {"input_tokens": 11, "cached_input_tokens": 3, "output_tokens": 5}}
