"""Measure whether a bug report finds the files that its fix changed.

    python -m benchmarks.tasks BENCH MIRRORS [--set NAME] [--repository OWNER/NAME] [--most N] [--graph] [--keep FOLDER]

BENCH has `tasks/SET.jsonl`; MIRRORS has a bare clone of each repository, as OWNER+NAME or OWNER+NAME/repo. A task has
the text of an issue, a commit, and the files that the accepted fix changed. Tasks of a repository are indexed in order
of their commits, each from the index of the one before, in a work tree that has no other reference, so that neither
files nor the history after the commit are visible.

- Acc@k: the share of tasks whose files are all among the first k files.
- any@k: the share of tasks with at least one of their files among the first k.
- MRR: the mean reciprocal rank of the first file of the fix.

Intervals are 95 % by bootstrap over tasks. `--keep` stores the index of each task, for experiments.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.quality.evaluate import SAMPLES
from docindex_dagster.callgraph.table import as_table
from docindex_dagster.chunking.build import build_chunks
from docindex_dagster.chunking.inputs import gather
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import ChunkingSettings, GraphSettings, HistorySettings, LLMSettings
from docindex_dagster.embedding.build import build_embeddings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.graph.extraction import EVERYTHING, Extraction, GraphPlan, extract
from docindex_dagster.search.engine import search
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.model import Granularity
from docindex_dagster.sources.commits import read_commits
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source
from docindex_dagster.stores.publish import publish
from docindex_dagster.stores.reader import Reader, open_reader
from docindex_dagster.stores.rows import SourceRows
from docindex_dagster.stores.staging import Model

TOP = 10
AT = (1, 5, 10)


@dataclass(frozen=True, slots=True)
class Task:
    """A bug report, the commit to index, and the files that the fix changed."""

    id: str
    set: str
    language: str
    github: str
    commit: str
    text: str
    gold: tuple[str, ...]

    @classmethod
    def of(cls, row: dict[str, Any]) -> "Task":
        """Create a task from a record of the benchmark."""
        return cls(**{**row, "gold": tuple(row["gold"])})


@dataclass(frozen=True, slots=True)
class Result:
    """The ranks, from 1, of a task's files among the first ten files; None for those beyond. Seconds of the search."""

    task: Task
    ranks: tuple[int | None, ...]
    seconds: float = 0.0
    chunks: int = 0

    @classmethod
    def of(cls, task: Task, paths: Sequence[str], seconds: float = 0.0, chunks: int = 0) -> "Result":
        """Compare the files found, best first, with those of the fix."""
        position = {path: rank for rank, path in enumerate(paths[:TOP], start=1)}
        return cls(task, tuple(position.get(path) for path in task.gold), seconds, chunks)

    @property
    def measures(self) -> tuple[float, ...]:
        """Acc@1, 5 and 10; any@5 and 10; the reciprocal rank."""
        found = [rank or TOP + 1 for rank in self.ranks]
        accuracy = [float(max(found) <= k) for k in AT]
        return (*accuracy, *(float(min(found) <= k) for k in AT[1:]), 1 / min(found) if min(found) <= TOP else 0.0)


MEASURES = (*(f"Acc@{k}" for k in AT), *(f"any@{k}" for k in AT[1:]), "MRR")


def read_tasks(bench: Path) -> list[Task]:
    """Return all tasks."""
    files = sorted((bench / "tasks").glob("*.jsonl"))
    return [Task.of(json.loads(line)) for file in files for line in file.read_text().splitlines()]


def mirror_of(mirrors: Path, github: str) -> Path:
    """Return the git folder of a repository, or of its fork swe-bench/OWNER__NAME if it is too large."""
    owner, name = github.split("/")
    wanted = {f"{owner}+{name}".lower(), f"swe-bench+{owner}__{name}".lower()}
    folder = next((folder for folder in sorted(mirrors.iterdir()) if folder.name.lower() in wanted), None)
    if folder is None:
        raise SystemExit(f"{github}: no mirror in {mirrors.name}")
    return folder / "repo" if (folder / "repo").is_dir() else folder


class WorkTree:
    """A work tree without references, which borrows the objects of a mirror."""

    def __init__(self, mirror: Path, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self._git("init", "--quiet")
        (folder / ".git" / "objects" / "info" / "alternates").write_text(f"{(mirror / 'objects').absolute()}\n")

    def date_of(self, commit: str) -> int:
        """Return when a commit was made, in seconds since 1970."""
        return int(self._git("show", "--no-patch", "--format=%ct", commit))

    def check_out(self, commit: str) -> None:
        """Check out a commit, without the files that the mirror lacks."""
        try:
            self._git("checkout", "--quiet", "--force", "--detach", commit)
        except subprocess.CalledProcessError:
            self._git("update-ref", "--no-deref", "HEAD", commit)
            self._git("read-tree", "--reset", commit)
            command = ["git", "-C", str(self.folder), "checkout-index", "--all", "--force"]
            subprocess.run(command, capture_output=True, check=False)  # fails if a file is missing
        self._git("clean", "--quiet", "-fdx")
        shutil.rmtree(self.folder / ".git" / "logs", ignore_errors=True)

    def _git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@dataclass(slots=True)
class Repository:
    """The tables of the last commit indexed, from which the next one is indexed."""

    source: Source
    home: Path
    plan: GraphPlan
    files: pa.Table | None = None
    commits: pa.Table | None = None
    chunks: pa.Table | None = None
    vectors: pa.Table | None = None
    graph: Extraction | None = None

    def index(self, commit: str) -> Reader:
        """Index the work tree, which is at this commit."""
        settings, embedder = ChunkingSettings(), StaticEmbedder()
        self.files = discover(self.source, self.files)
        self.commits = read_commits(self.source, commit, self.commits, HistorySettings().commits)
        inputs = gather(self.files, settings, self.commits)
        wants_references = self.plan.settings.enabled
        made = build_chunks(self.source, inputs, self.chunks, settings, wants_references=wants_references)
        self.chunks = made.table
        self.vectors = build_embeddings(self.chunks, self.vectors, embedder, self.source.key).table
        references = as_table(made.references, "") if wants_references else None
        layout = Layout(self.home)
        self.graph = extract(layout, self.source.key, self.chunks, references, plan=self.plan, previous=None)
        rows = SourceRows(self.source.key, self.chunks, self.vectors, self.graph)
        publish(layout, rows, Model.of(embedder), plan=self.plan)
        return open_reader(layout)


Ranker = Callable[[Reader, str], Sequence[str]]
"""Returns the paths of the best files for a report."""


def by_default(reader: Reader, text: str) -> Sequence[str]:
    """Search for files as `docindex search --granularity file` does."""
    return [hit.path for hit in search(reader, text, StaticEmbedder, granularity=Granularity.FILE, top_k=TOP)]


def code_only(reader: Reader, text: str) -> Sequence[str]:
    """Search for files of code."""
    filters = Filters(source_types=("code",))
    hits = search(reader, text, StaticEmbedder, granularity=Granularity.FILE, top_k=TOP, filters=filters)
    return [hit.path for hit in hits]


RANKERS: dict[str, Ranker] = {"default": by_default, "code only": code_only}


def readers(
    tasks: Sequence[Task], mirrors: Path, *, graph: bool = False, keep: Path | None = None
) -> Iterator[tuple[Task, Reader]]:
    """Yield each task with the index of its commit."""
    by_repository: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        by_repository[task.github].append(task)
    plan = EVERYTHING if graph else GraphPlan(GraphSettings(enabled=False), LLMSettings())
    for github, of_repository in by_repository.items():
        with tempfile.TemporaryDirectory() as scratch:
            name = github.partition("/")[2]
            tree = WorkTree(mirror_of(mirrors, github), Path(scratch) / name)
            repository = Repository(Source(f"git/{name}", "git", name, tree.folder), Path(scratch) / "home", plan)
            for task in sorted(of_repository, key=lambda task: tree.date_of(task.commit)):
                tree.check_out(task.commit)
                reader = repository.index(task.commit)
                if keep:
                    shutil.rmtree(keep / task.id, ignore_errors=True)
                    shutil.copytree(repository.home, keep / task.id, copy_function=os.link)
                yield task, reader


def measure(ranker: Ranker, task: Task, reader: Reader) -> Result:
    """Ask for the files of a task."""
    started = time.perf_counter()
    paths = ranker(reader, task.text)
    seconds = time.perf_counter() - started
    return Result.of(task, paths, seconds, sum(source.chunks for source in reader.generation.sources.values()))


def row_of(label: str, results: Sequence[Result]) -> str:
    """Return a row of the table: each mean with half the width of its interval."""
    values = np.array([result.measures for result in results])
    chosen = np.random.default_rng(0).integers(0, len(values), (SAMPLES, len(values)))
    low, high = np.quantile(values[chosen].mean(axis=1), [0.025, 0.975], axis=0)
    cells = [f"{mean:>8.1%} {f'{a:.0%}-{b:.0%}':>9}" for mean, a, b in zip(values.mean(axis=0), low, high, strict=True)]
    return f"{label:<44}{len(results):>5}{''.join(cells)}"


def table(results: Sequence[Result], ranker: str) -> None:
    """Print the results by set, language and repository."""
    print(f"\n{ranker:<44}{'tasks':>5}" + "".join(f"{name:>18}" for name in MEASURES))
    for column in ("set", "language", "github"):
        for value in sorted({getattr(result.task, column) for result in results}):
            print(row_of(value, [result for result in results if getattr(result.task, column) == value]))
    milliseconds = np.median([1000 * result.seconds for result in results])
    chunks = np.median([result.chunks for result in results])
    print(f"median search: {milliseconds:.0f} ms over {chunks:,.0f} chunks")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("mirrors", type=Path)
    parser.add_argument("--set", help="Only this set.")
    parser.add_argument("--repository", action="append", help="Only this repository.")
    parser.add_argument("--most", type=int, help="Only this many tasks of each repository, spread over time.")
    parser.add_argument("--graph", action="store_true", help="Also build the graph.")
    parser.add_argument("--keep", type=Path, help="Store the index of each task here.")
    arguments = parser.parse_args()
    tasks = [task for task in read_tasks(arguments.bench) if arguments.set in {None, task.set}]
    if arguments.repository:
        tasks = [task for task in tasks if task.github in arguments.repository]
    if arguments.most:
        tasks = list(_thinned(tasks, arguments.most))
    found: dict[str, list[Result]] = defaultdict(list)
    for task, reader in readers(tasks, arguments.mirrors, graph=arguments.graph, keep=arguments.keep):
        for name, ranker in RANKERS.items():
            found[name].append(measure(ranker, task, reader))
        print(
            f"{task.id:<44}" + "  ".join(f"{name} {results[-1].ranks}" for name, results in found.items()), flush=True
        )
    for name, results in found.items():
        table(results, name)


def _thinned(tasks: Sequence[Task], most: int) -> Iterator[Task]:
    by_repository: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        by_repository[task.github].append(task)
    for of_repository in by_repository.values():
        chosen = np.linspace(0, len(of_repository) - 1, min(most, len(of_repository))).round().astype(int)
        yield from (of_repository[at] for at in chosen)


if __name__ == "__main__":
    main()
