"""Costs of a project at one size: updates, searches, memory and disk, each in its own process."""

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from benchmarks.growth.project import Project
from benchmarks.latency import COLD_RUNS, WARM_UP
from benchmarks.repositories import tree
from benchmarks.stages import cpu_seconds
from docindex_dagster.cli import dagster_runs
from docindex_dagster.core.files import folder_bytes
from docindex_dagster.definitions import build_definitions
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Mode
from docindex_dagster.stores import maintenance
from docindex_dagster.stores.reader import open_reader

Way = Literal["library", "recorded"]
MODES = (Mode.HYBRID, Mode.VECTOR, Mode.BM25)
_WARM_UP_EDITS = 8  # enough to load the libraries for each file type
_MB = 1e6


@dataclass(frozen=True, slots=True)
class Updates:
    """Edits of one file, each until publication. Times are in seconds, in the order of the edits.

    Attributes:
        clock: wall-clock time of each edit.
        cpu: CPU time of each edit, including child processes.
        maintained: time of each maintenance of the stores.
        peak_mib: peak resident memory of these processes.
    """

    clock: tuple[float, ...]
    cpu: tuple[float, ...]
    maintained: tuple[float, ...]
    peak_mib: float


@dataclass(frozen=True, slots=True)
class Searches:
    """Searches in a warm process and in new processes.

    Attributes:
        opened_s: time until the first answer.
        warm_ms: median of each mode.
        resident_mib: memory of the warm process.
        cold_s: median of new processes, from start to end.
        cold_cpu_s: CPU time of new processes.
    """

    opened_s: float
    warm_ms: dict[str, float]
    resident_mib: float
    cold_s: float
    cold_cpu_s: float


@dataclass(frozen=True, slots=True)
class Disk:
    """Megabytes of the stores, and of the rows in LanceDB's published version."""

    stores: dict[str, float]
    rows: float
    current: float

    @property
    def total(self) -> float:
        """Return the size of all stores."""
        return sum(self.stores.values()) + self.current


def updates(project: Project, number: int, way: Way) -> Updates:
    """Edit one file and publish it repeatedly, after a warm-up."""
    clock, cpu, maintained = [], [], []
    with _updating(project, way) as update:
        for _ in islice(project.edits(), _WARM_UP_EDITS + number):
            started, worked = time.perf_counter(), cpu_seconds(os.getpid())
            update()
            clock.append(time.perf_counter() - started)
            cpu.append(cpu_seconds(os.getpid()) - worked)
            started = time.perf_counter()
            if maintenance.bring_up_to_date(project.layout):
                maintained.append(time.perf_counter() - started)
        peak = sum(_mib(process, "VmHWM") for process in tree(os.getpid()))
    return Updates(tuple(clock[_WARM_UP_EDITS:]), tuple(cpu[_WARM_UP_EDITS:]), tuple(maintained), peak)


@contextmanager
def _updating(project: Project, way: Way) -> Iterator[Callable[[], None]]:
    """Return a function that updates with the library alone, or with recorded Dagster runs."""
    settings, source, embedder = project.settings, project.edited, StaticEmbedder()
    if way == "library":
        yield lambda: void(index(settings, source, embedder))
        return
    job = build_definitions(settings.root).resolve_job_def("index_source")
    with dagster_runs.instance(settings) as instance:
        yield lambda: void(job.execute_in_process(instance=instance, partition_key=source.key))


def void(_: object) -> None:
    """Discard the result of a function."""


def searches(project: Project, questions: Sequence[str]) -> Searches:
    """Ask each question in each mode, and one of them in new processes."""
    started = time.perf_counter()
    reader, embedder = open_reader(project.layout), StaticEmbedder()
    search(reader, questions[0], lambda: embedder)
    opened = time.perf_counter() - started
    warm = {}
    for mode in MODES:
        seconds = []
        for question in questions:
            started = time.perf_counter()
            search(reader, question, lambda: embedder, mode=mode)
            seconds.append(time.perf_counter() - started)
        warm[mode.value] = statistics.median(seconds[WARM_UP:]) * 1000
    resident = _mib(os.getpid(), "VmRSS")
    cold = [_cold(project.root, question) for question in questions[:COLD_RUNS]]
    clock, cpu = (statistics.median(column) for column in zip(*cold, strict=True))
    return Searches(opened, warm, resident, clock, cpu)


def _cold(root: Path, question: str) -> tuple[float, float]:
    """Return the seconds of a search in a new process: wall-clock and CPU time."""
    command = [sys.executable, "-m", "docindex_dagster.cli", "search", question]
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = spent.ru_utime + spent.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - started, worked


def disk(project: Project) -> Disk:
    """Return the disk use of the stores."""
    layout = project.layout
    folders = {folder.name: folder_bytes(folder) / _MB for folder in sorted(layout.stores.iterdir()) if folder.is_dir()}
    statistics_of_table: Any = open_reader(layout).table.stats()  # a dictionary, despite its declared type
    return Disk(folders, statistics_of_table["total_bytes"] / _MB, layout.current.stat().st_size / _MB)


def _mib(process: int, name: str) -> float:
    """Return a memory value of a process in MiB, or 0 if it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:")), 0)
