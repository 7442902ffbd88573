"""What one size of the project costs: updates, searches, memory and disk. Each in a process of its own."""

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
_WARM_UP_EDITS = 8  # so many that the libraries for each kind of file are loaded
_MB = 1e6


@dataclass(frozen=True, slots=True)
class Updates:
    """Edits of one file, each until it is published. Times are seconds, in the order of the edits.

    Attributes:
        clock: of each.
        cpu: of each, of this process and those that it started.
        maintained: of each maintenance of the stores between them.
        peak_mib: of the resident memory of these processes.
    """

    clock: tuple[float, ...]
    cpu: tuple[float, ...]
    maintained: tuple[float, ...]
    peak_mib: float


@dataclass(frozen=True, slots=True)
class Searches:
    """Searches: of a process that is asked again and again, and of new ones.

    Attributes:
        opened_s: until the first one was answered.
        warm_ms: the median of each mode.
        resident_mib: of the process that answered them.
        cold_s: the median of new processes, from start to end.
        cold_cpu_s: their CPU time.
    """

    opened_s: float
    warm_ms: dict[str, float]
    resident_mib: float
    cold_s: float
    cold_cpu_s: float


@dataclass(frozen=True, slots=True)
class Disk:
    """Megabytes of the stores, and of what LanceDB's published version holds."""

    stores: dict[str, float]
    rows: float
    current: float

    @property
    def total(self) -> float:
        """All of it."""
        return sum(self.stores.values()) + self.current


def updates(project: Project, number: int, way: Way) -> Updates:
    """Edit one file and publish it, so many times, after some that warm up."""
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
    """Updates by the library alone, or by runs of Dagster that are recorded."""
    settings, source, embedder = project.settings, project.edited, StaticEmbedder()
    if way == "library":
        yield lambda: void(index(settings, source, embedder))
        return
    job = build_definitions(settings.root).resolve_job_def("index_source")
    with dagster_runs.instance(settings) as instance:
        yield lambda: void(job.execute_in_process(instance=instance, partition_key=source.key))


def void(_: object) -> None:
    """Take a result and return nothing."""


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
    """Seconds of a search as a new process: of the clock, and of CPU time."""
    command = [sys.executable, "-m", "docindex_dagster.cli", "search", question]
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = spent.ru_utime + spent.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - started, worked


def disk(project: Project) -> Disk:
    """What the stores take on the disk."""
    layout = project.layout
    folders = {folder.name: folder_bytes(folder) / _MB for folder in sorted(layout.stores.iterdir()) if folder.is_dir()}
    statistics_of_table: Any = open_reader(layout).table.stats()  # a dictionary, whatever its declared type
    return Disk(folders, statistics_of_table["total_bytes"] / _MB, layout.current.stat().st_size / _MB)


def _mib(process: int, name: str) -> float:
    """A figure of the memory of a process; 0 for one that has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:")), 0)
