"""Process that indexes a project and reports its current stage: python -m tests.incremental.child HOW [ARGUMENT…].

`DOCINDEX_ROOT` names the project. The process initializes, prints `ready` and waits for a line. HOW selects what it
then runs:

- `library`: `docindex_dagster.runner.runs`, with graphs extracted in another process;
- `command`: `docindex index`, or the arguments if there are any;
- `loop`: as `library`, repeatedly until its input ends.

The stage is inferred from opened files, started commands and progress events. `DOCINDEX_TEST_MODEL` makes the default
provider supply another model.
"""

import os
import runpy
import select
import sys
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from docindex_dagster.core import events
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.embedding import providers
from docindex_dagster.embedding.providers import Provider
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.pipeline import graph
from docindex_dagster.runner import runs
from docindex_dagster.runner.run import index
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source
from tests.models import TinyEmbedder

_STORES = ("LanceDB", "Tantivy", "CURRENT")
_SAVED = {f".{asset}" for asset in ("discovered_files", "commits", "chunks", "references", "embeddings")}
_GIT_COMMANDS = ("clone", "fetch", "checkout", "worktree", "status", "log")
_out = os.dup(1)
_stages: list[str] = []


def announce(stage: str) -> None:
    """Print the name of a new stage, with a number if the stage repeats, as for the next source."""
    if stage not in _stages[-1:]:
        _stages.append(stage)
        times = _stages.count(stage)
        os.write(_out, f"{stage}\n".encode() if times == 1 else f"{stage} ({times})\n".encode())


def _on_event(event: events.Event) -> None:
    if isinstance(event, events.Waiting):
        announce("waiting")
    elif isinstance(event, events.Progress) and event.stage == "stores":
        announce(_STORES[event.done] if event.done < len(_STORES) else "clean-up")
    elif isinstance(event, events.Progress):
        announce(event.stage)


def _on_audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen" and "git" in os.fsdecode(arguments[0]):
        words = {os.fsdecode(word) for word in arguments[1]}
        announce(next((f"git {name}" for name in _GIT_COMMANDS if name in words), "git"))
    elif event in {"open", "os.rename"} and isinstance(arguments[0], str) and arguments[0].endswith(".tmp"):
        path = Path(arguments[0])
        if path.parent.parent.name == "tables":
            announce(f"saving {path.parent.name}")
        elif path.name.startswith((".CURRENT", ".PREVIOUS")):
            announce("clean-up" if event == "os.rename" and path.name.startswith(".CURRENT") else "CURRENT")


def _warm_up() -> None:
    """Load models and libraries, and start the parser, by indexing another project."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "docs").mkdir()
        (root / "docs" / "a.py").write_text("def a():\n    return 1\n")
        index(
            Settings(root=root, home=root / "home"),
            Source("library/a", "library", "a", root / "docs"),
            StaticEmbedder(),
        )


def _index_all() -> None:
    settings = load_settings()
    for key in registry.sources(settings):
        outcome = runs.index(settings, key)
        if not outcome.succeeded:
            raise RuntimeError(f"{key}: {outcome.failures}")


def main() -> None:
    """Initialize, wait for input, and index."""
    is_command = sys.argv[1] == "command"
    if os.environ.get("DOCINDEX_TEST_MODEL"):
        ours: dict[str, Provider] = {"static": lambda _: TinyEmbedder(), "former": lambda _: StaticEmbedder()}
        providers.PROVIDERS = replace(providers.PROVIDERS, ours=ours)
    if not is_command:
        graph.CHUNKS_WORTH_A_PROCESS = 0
        _warm_up()
    os.write(_out, b"ready\n")
    if not os.read(0, 1):
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.addaudithook(_on_audit)
    announce("start")
    with events.listening(_on_event), suppress(SystemExit):
        if is_command:
            sys.argv = ["docindex", *(sys.argv[2:] or ["index"])]
            runpy.run_module("docindex_dagster.cli", run_name="__main__")
        else:
            _index_all()
        while sys.argv[1] == "loop" and not select.select([0], [], [], 0)[0]:
            _index_all()
    announce("done")


if __name__ == "__main__":
    main()
