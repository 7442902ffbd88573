"""Child processes that index a project: start, watch and kill them, and compare their results."""

import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from docindex_dagster.core.layout import Layout
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.sources import registry
from tests.incremental.contents import Contents, from_nothing, stores_of, tables_of
from tests.incremental.projects import TOPICS, Project

How = Literal["library", "command"]

CHECKOUT = Path(__file__).parents[2]
_SLOWEST_S = 120.0


@dataclass(slots=True)
class Child:
    """A process that is ready to index."""

    process: "subprocess.Popen[bytes]"
    stages: list[tuple[str, float]] = field(default_factory=list)  # each with its start time
    _pending: bytes = b""

    @classmethod
    def start(
        cls, project: Project, how: How | Literal["loop"], arguments: Sequence[str] = (), **variables: str
    ) -> "Child":
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.incremental.child", how, *arguments],
            cwd=CHECKOUT,
            env=project.environment(os.environ) | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
        return cls(process)

    def go(self) -> None:
        """Wait until the process is ready, and start its run."""
        while "ready" not in dict(self.stages):
            if not self._listen(_SLOWEST_S):
                raise AssertionError("the process did not become ready")
        self.process.stdin.write(b"\n")

    def run_to(self, stage: str, delay_s: float) -> None:
        """Return `delay_s` after the stage starts, or at the end of the run."""
        while stage not in dict(self.stages):
            if not self._listen(_SLOWEST_S):
                return
        until = dict(self.stages)[stage] + delay_s
        while (left := until - time.monotonic()) > 0:
            if not self._listen(left):
                return

    def stop(self) -> int:
        """End its loop and return its exit code."""
        self.process.stdin.close()
        while self._listen(_SLOWEST_S):
            pass
        self.process.stdout.close()
        return self.process.wait()

    def kill(self, *, with_children: bool) -> str:
        """Kill it and return the stage in which it died."""
        if with_children:
            os.killpg(self.process.pid, 9)
        else:
            self.process.kill()
        while self._listen(_SLOWEST_S):
            pass
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        return self.stages[-1][0] if self.stages else "not begun"

    def _listen(self, timeout_s: float) -> bool:
        """Read its next output, and return whether it is still running; a timeout counts as running."""
        if not select.select([self.process.stdout.fileno()], [], [], timeout_s)[0]:
            return True
        data = os.read(self.process.stdout.fileno(), 4096)
        now = time.monotonic()
        *lines, self._pending = (self._pending + data).split(b"\n")
        known = dict(self.stages)
        self.stages += [(stage, now) for line in lines if (stage := line.decode()) not in known]
        return bool(data)


def docindex(project: Project, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a docindex command on a project."""
    return subprocess.run(
        [sys.executable, "-m", "docindex_dagster.cli", *arguments],
        cwd=CHECKOUT,
        env=project.environment(os.environ) | variables,
        check=False,
        capture_output=True,
        text=True,
    )


def index_by_command(project: Project, **variables: str) -> None:
    """Run `docindex index`, and assert that it succeeds."""
    done = docindex(project, "index", **variables)
    assert done.returncode == 0, done.stderr


def index_by_library(project: Project) -> None:
    """Index every source in this process."""
    for source in project.sources:
        index(project.settings, source, StaticEmbedder())


def contents_of(project: Project) -> Contents:
    """Return all rows of a project's tables and stores."""
    return tables_of(project.layout, [source.key for source in project.sources]) | stores_of(project.layout, TOPICS)


def anew(project: Project, how: How) -> Contents:
    """Return the contents of a full build by the same kind of run."""
    home = project.root / "anew"
    if how == "library":
        settings = project.settings.model_copy(update={"home": home})  # the home also contains the clones
        return from_nothing(settings, list(registry.sources(settings).values()), home, TOPICS)
    try:
        index_by_command(project, DOCINDEX_HOME=str(home))
        return tables_of(Layout(home), [source.key for source in project.sources]) | stores_of(Layout(home), TOPICS)
    finally:
        shutil.rmtree(home)


def descendants(session: int) -> list[int]:
    """Return the running processes of a session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def ended(session: int, within_s: float) -> bool:
    """Return whether all processes of a session end by themselves."""
    until = time.monotonic() + within_s
    while descendants(session):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
