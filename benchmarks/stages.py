"""Measure the stages of indexing large repositories.

    python -m benchmarks.stages FOLDER... [--limit SECONDS]

Each folder is indexed in a fresh project by its own process, as with `docindex index`. Stages are measured in seconds
of CPU time of the process and its parsing workers, which depends little on load. Memory is the peak of all processes
together. Warnings of the runs follow the table. A run is interrupted after the given number of wall-clock seconds.
"""

import argparse
import multiprocessing
import os
import signal
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.repositories import proportional_kib, tree
from docindex_dagster.cli import dagster_runs
from docindex_dagster.core import events, tables
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import load_settings
from docindex_dagster.pipeline.stages import OURS
from docindex_dagster.sources import config_edits
from docindex_dagster.stores.generation import read_generation

_REST = "rest"
_STAGES = (*(stage.name for stage in OURS), _REST)
_SAMPLE_S = 0.5
_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print a row for each folder when it is measured, then the warnings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--limit", type=int, default=3600)
    arguments = parser.parse_args()
    columns = ("repository", "files", "chunks", "edges", "cut", *_STAGES, "longest", "clock, s", "MiB")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
    warnings = []
    spawning = multiprocessing.get_context("spawn")
    for folder in arguments.folders:
        with ProcessPoolExecutor(1, mp_context=spawning) as pool:
            row, reasons = pool.submit(_measured, folder.absolute(), arguments.limit).result()
        print(row, flush=True)
        warnings += [f"{folder.name}: {warning}" for warning in reasons]
    print("\n".join(warnings))


@dataclass(slots=True)
class _Clock:
    """CPU seconds by stage; the time since the end of the previous stage belongs to the stage that ends."""

    spent: dict[str, float] = field(default_factory=dict)
    last: float = field(default_factory=lambda: cpu_seconds(os.getpid()))

    def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.StageEnded):
            self.end(event.stage)

    def end(self, stage: str) -> None:
        now = cpu_seconds(os.getpid())
        self.spent[stage] = self.spent.get(stage, 0) + now - self.last
        self.last = now


def _measured(folder: Path, limit: int) -> tuple[str, list[str]]:
    """Return a row of the table and warnings. Runs in the main thread of its own process."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    clock, done = _Clock(), threading.Event()
    peak = [0.0]
    sampler = threading.Thread(target=_sample, args=(peak, done), daemon=True)
    sampler.start()
    with tempfile.TemporaryDirectory() as project:
        os.chdir(project)
        started = time.monotonic()
        signal.alarm(limit)
        reasons = _index(folder, clock)
        signal.alarm(0)
        clock.end(_REST)
        seconds = time.monotonic() - started
        done.set()
        numbers = _published(Layout(Path(project) / ".docindex"))
        os.chdir("/")
    slowest = max(clock.spent, key=clock.spent.__getitem__)
    spent = [f"{clock.spent.get(stage, 0):.1f}" for stage in _STAGES]
    cells = [folder.name, *numbers, *spent, slowest, f"{seconds:.0f}", f"{peak[0]:.0f}"]
    return f"| {' | '.join(cells)} |", reasons


def _index(folder: Path, clock: _Clock) -> list[str]:
    """Index a folder as the command line does; return failures and warnings."""
    key = config_edits.declare(Path.cwd(), str(folder))[0]
    settings = load_settings()
    try:
        with events.listening(clock.on_event):
            outcome = dagster_runs.index(settings, key)
    except KeyboardInterrupt:
        return ["not finished within the limit"]
    return [*outcome.failures, *outcome.warnings]


def _published(layout: Layout) -> list[str]:
    """Return files, chunks, edges, and files with only definition edges; for an unfinished run, its chunks."""
    if (generation := read_generation(layout)) is None:
        chunks = sum(tables.row_count(path) for path in layout.tables("chunks"))
        return ["-", str(chunks), "-", "-"]
    (source,) = generation.sources.values()
    return [str(number) for number in (source.files, source.chunks, source.edges, source.graph_failures)]


def _sample(peak: list[float], done: threading.Event) -> None:
    while not done.wait(_SAMPLE_S):
        peak[0] = max(peak[0], sum(proportional_kib(pid) for pid in tree(os.getpid())) / 1024)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process, its children and its finished children."""
    return sum(_own_seconds(process) for process in tree(pid))


def _own_seconds(pid: int) -> float:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    fields = stat.rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:15]) / _TICKS


if __name__ == "__main__":
    main()
