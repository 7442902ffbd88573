"""Measure the cost of updates.

    python -m benchmarks.updates REPOSITORY

In a clone of a git repository, the benchmark measures a cold run, no changes, one file, ten files, and a switch to an
older commit and back. It uses the library in a warm process, a recorded Dagster run in a warm process, and the command
line. Each update is timed until a search finds the new text. The output has the median and the maximum of the
repetitions and, for the library, the stages of the last one.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from docindex_dagster.cli import dagster_runs
from docindex_dagster.core import events
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import CONFIG_NAME, load_settings
from docindex_dagster.definitions import build_definitions
from docindex_dagster.embedding.providers import load_embedder
from docindex_dagster.runner.run import index
from docindex_dagster.search.engine import search
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.model import Mode
from docindex_dagster.sources import registry
from docindex_dagster.stores.reader import open_reader

_REPETITIONS = 7
_COMMITS_BACK = 20
_TEXT_FILES = {".py", ".go", ".rs", ".c", ".cc", ".h", ".cpp", ".java", ".ts", ".js", ".rb", ".php", ".cs"}


@dataclass(slots=True)
class Bench:
    """A clone, a project that indexes it, and a way to update the index."""

    clone: Path
    project: Path
    update: Callable[[], None]
    stages: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    edits: int = 0

    def cases(self) -> Iterator[tuple[str, list[float]]]:
        """Return each case with its seconds."""
        yield "cold", [self.timed(lambda: None)]
        yield "nothing changed", [self.timed(lambda: None) for _ in range(_REPETITIONS)]
        yield "one file", [self.timed(lambda: self.edit(1), searched=True) for _ in range(_REPETITIONS)]
        yield "ten files", [self.timed(lambda: self.edit(10), searched=True) for _ in range(_REPETITIONS)]
        self.git("stash", "--quiet")
        self.timed(lambda: None)
        old = self.git("rev-parse", f"HEAD~{_COMMITS_BACK}").strip()
        there, back = [], []
        for _ in range(3):
            there.append(self.timed(lambda: self.git("switch", "--quiet", "--detach", old)))
            back.append(self.timed(lambda: self.git("switch", "--quiet", "-")))
        yield f"{_COMMITS_BACK} commits back, first", there[:1]
        yield f"{_COMMITS_BACK} commits back, again", there[1:]
        yield "and back", back

    def timed(self, change: Callable[[], object], *, searched: bool = False) -> float:
        """Return the seconds from the end of a change until it is published, or found."""
        self.stages.clear()
        change()
        started = time.perf_counter()
        self.update()
        if searched:
            self.find(f"zebrafinch{self.edits}")
        return time.perf_counter() - started

    def edit(self, number: int) -> None:
        """Add a line to the given number of files."""
        self.edits += 1
        paths = [self.clone / name for name in self.git("ls-files").splitlines() if Path(name).suffix in _TEXT_FILES]
        step = max(1, len(paths) // number)
        for path in paths[: step * number : step]:
            with path.open("a") as file:
                file.write(f"\n// zebrafinch{self.edits} {path.name}\n")

    def find(self, word: str) -> None:
        """Search for a word that only the last edit added."""
        hits = search(
            open_reader(Layout(self.project / ".docindex")), word, NotImplemented, mode=Mode.BM25, filters=Filters()
        )
        if not any(word in hit.text for hit in hits):
            raise SystemExit(f"{word} was not found after the update")

    def git(self, *arguments: str) -> str:
        """Run git in the clone."""
        return subprocess.run(["git", *arguments], cwd=self.clone, check=True, capture_output=True, text=True).stdout


@contextmanager
def library(project: Path) -> Iterator[Callable[[], None]]:
    """Update with the library alone."""
    settings = load_settings(project)
    (source,) = registry.sources(settings).values()
    embedder = load_embedder(settings.embedding)
    yield lambda: void(index(settings, source, embedder))


@contextmanager
def dagster(project: Path) -> Iterator[Callable[[], None]]:
    """Update with a Dagster run in this process, recorded in the project's instance."""
    settings = load_settings(project)
    (key,) = registry.sources(settings)
    job = build_definitions(project).resolve_job_def("index_source")
    with dagster_runs.instance(settings) as instance:
        yield lambda: void(job.execute_in_process(instance=instance, partition_key=key))


@contextmanager
def command(project: Path) -> Iterator[Callable[[], None]]:
    """Update with the command line, in a new process each time."""
    arguments = [sys.executable, "-m", "docindex_dagster.cli", "index"]
    yield lambda: void(subprocess.run(arguments, cwd=project, check=True, capture_output=True))


def void(_: object) -> None:
    """Discard the result of a function."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--way", choices=["library", "dagster", "command"], action="append")
    arguments = parser.parse_args()
    ways = {"library": library, "dagster": dagster, "command": command}
    print("| way | case | median ms | slowest ms | where (last time, ms) |\n|---|---|---|---|---|")
    for way in arguments.way or ways:
        with tempfile.TemporaryDirectory(prefix="docindex-updates-") as folder:
            clone, project = Path(folder, "clone"), Path(folder, "project")
            subprocess.run(["git", "clone", "--quiet", arguments.repository, clone], check=True)
            for setting in ("user.name=Bench", "user.email=bench@example.com"):
                subprocess.run(["git", "config", *setting.split("=")], cwd=clone, check=True)
            project.mkdir()
            (project / CONFIG_NAME).write_text(f'[[source]]\nkind = "git"\npath = "{clone}"\n')
            with ways[way](project) as update:
                bench = Bench(clone, project, update)
                with events.listening(partial(record, bench)):
                    for case, seconds in bench.cases():
                        where = ", ".join(f"{name} {spent * 1000:.0f}" for name, spent in bench.stages.items())
                        median, slowest = statistics.median(seconds) * 1000, max(seconds) * 1000
                        print(f"| {way} | {case} | {median:.0f} | {slowest:.0f} | {where} |", flush=True)


def record(bench: Bench, event: events.Event) -> None:
    """Record how long each stage takes."""
    if isinstance(event, events.StageEnded):
        bench.stages[event.stage] += event.seconds


if __name__ == "__main__":
    main()
