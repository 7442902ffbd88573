"""Bug reports, and an index of each at its commit."""

import json
import os
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from docindex_dagster.chunking.build import build_chunks
from docindex_dagster.chunking.inputs import gather
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import ChunkingSettings, GraphSettings, HistorySettings, LLMSettings
from docindex_dagster.embedding.build import build_embeddings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.graph.extraction import GraphPlan, extract
from docindex_dagster.sources.commits import read_commits
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source
from docindex_dagster.stores.publish import publish
from docindex_dagster.stores.reader import Reader, open_reader
from docindex_dagster.stores.rows import SourceRows
from docindex_dagster.stores.staging import Model


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

    def index(self, commit: str) -> Reader:
        """Index the work tree, which is at this commit."""
        settings, embedder = ChunkingSettings(), StaticEmbedder()
        self.files = discover(self.source, self.files)
        self.commits = read_commits(self.source, commit, self.commits, HistorySettings().commits)
        inputs = gather(self.files, settings, self.commits)
        made = build_chunks(self.source, inputs, self.chunks, settings)
        self.chunks = made.table
        self.vectors = build_embeddings(self.chunks, self.vectors, embedder, self.source.key).table
        layout = Layout(self.home)
        graph = extract(layout, self.source.key, self.chunks, None, plan=self.plan, previous=None)
        rows = SourceRows(self.source.key, self.chunks, self.vectors, graph)
        publish(layout, rows, Model.of(embedder), plan=self.plan)
        return open_reader(layout)


def readers(tasks: Sequence[Task], mirrors: Path, *, keep: Path | None = None) -> Iterator[tuple[Task, Reader]]:
    """Yield each task with the index of its commit."""
    by_repository: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        by_repository[task.github].append(task)
    plan = GraphPlan(GraphSettings(enabled=False), LLMSettings())  # ranking does not use the graph
    for github, of_repository in by_repository.items():
        with tempfile.TemporaryDirectory() as scratch:
            name = github.partition("/")[2]
            tree = WorkTree(mirror_of(mirrors, github), Path(scratch) / name)
            repository = Repository(Source(f"git/{name}", "git", name, tree.folder), Path(scratch) / "home", plan)
            is_kept = keep is not None and all((keep / task.id).is_dir() for task in of_repository)
            for task in sorted(of_repository, key=lambda task: tree.date_of(task.commit)):
                if keep is not None and is_kept:
                    yield task, open_reader(Layout(keep / task.id))
                    continue
                tree.check_out(task.commit)
                reader = repository.index(task.commit)
                if keep:
                    shutil.rmtree(keep / task.id, ignore_errors=True)
                    shutil.copytree(repository.home, keep / task.id, copy_function=os.link)
                yield task, reader
