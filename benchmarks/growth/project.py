"""A project that grows by libraries of real files, or by sources of copied chunks, while one repository is edited."""

import json
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa

from docindex_dagster.chunking.build import build_chunks
from docindex_dagster.chunking.inputs import gather
from docindex_dagster.chunking.rows import chunk_id, with_row_hashes
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import CHUNKS
from docindex_dagster.core.settings import CONFIG_NAME, ChunkingSettings, GraphSettings, Settings, load_settings
from docindex_dagster.embedding.build import build_embeddings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.graph.extraction import GraphPlan, extract
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.stages import stages
from docindex_dagster.runner.run import index, run_stages
from docindex_dagster.sources import registry
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source
from docindex_dagster.stores import maintenance
from docindex_dagster.stores.generation import Generation, read_generation
from docindex_dagster.stores.publish import publish
from docindex_dagster.stores.rows import SourceRows
from docindex_dagster.stores.staging import Model

CHUNKS_OF_A_COPY = 10_000
_FILES_OF_A_LIBRARY = 6
_SUFFIXES = frozenset({".py", ".go", ".rs", ".java", ".js", ".rb", ".md", ".rst"})
_SMALLEST, _LARGEST = 500, 15_000  # bytes of a library's file
_EDITED = "edited"
_NO_GRAPH = GraphPlan(GraphSettings(enabled=False))


@dataclass(frozen=True, slots=True)
class Project:
    """A project in a folder, with files of several repositories; the first repository is edited."""

    root: Path
    repositories: tuple[Path, ...]

    @property
    def clone(self) -> Path:
        """The edited work tree."""
        return self.root / _EDITED

    @property
    def settings(self) -> Settings:
        """The project's settings."""
        return load_settings(self.root)

    @property
    def layout(self) -> Layout:
        """The location of the index."""
        return Layout(self.settings.home)

    @property
    def edited(self) -> Source:
        """The edited source."""
        return registry.sources(self.settings)[f"git/{_EDITED}"]

    def generation(self) -> Generation:
        """The published generation."""
        found = read_generation(self.layout)
        if found is None:
            raise SystemExit(f"nothing is published in {self.root}")
        return found

    def begin(self) -> None:
        """Clone and index the edited repository, unless it exists."""
        if self.clone.is_dir():
            return
        self.root.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "clone", "--quiet", self.repositories[0], self.clone], check=True)
        (self.root / CONFIG_NAME).write_text(_table("git", _EDITED))
        index(self.settings, self.edited, StaticEmbedder())

    def grow_sources(self, number: int) -> None:
        """Add libraries up to the given number of sources: one run each creates its tables, one run publishes all."""
        present = len(self.generation().sources)
        names = [f"libraries/library{each:05}" for each in range(present, number)]
        files = _files(self.repositories, present * _FILES_OF_A_LIBRARY)
        for name in names:
            _write_library(self.root / name, list(islice(files, _FILES_OF_A_LIBRARY)))
        with (self.root / CONFIG_NAME).open("a") as config:
            config.writelines(_table("library", name) for name in names)
        if not names:
            return
        settings, embedder = self.settings, StaticEmbedder()
        declared = registry.sources(settings)
        for name in names:
            make_tables(SourceRun(settings, declared[f"library/{Path(name).name}"], lambda: embedder))
        self.layout.current.write_text("damaged")  # so that the next publication rebuilds the stores from all tables
        index(settings, self.edited, embedder)
        while maintenance.bring_up_to_date(self.layout):
            pass

    def grow_chunks(self, number: int) -> None:
        """Publish copies of real chunks as sources without graphs, up to the given number of chunks."""
        embedder = StaticEmbedder()
        present = _chunks_of(self.generation())
        if present >= number:
            return
        chunks, vectors = _real_chunks(self.repositories, embedder)
        while (missing := number - present) > 0:
            key = f"library/copy{len(self.generation().sources):05}"
            rows = _copied(key, chunks.slice(0, missing), vectors.slice(0, missing), self.layout)
            publish(self.layout, rows, Model.of(embedder))
            maintenance.bring_up_to_date(self.layout)
            present = _chunks_of(self.generation())

    def edits(self) -> Iterator[str]:
        """Add a line with a new word to one file after another, and yield the word."""
        listed = subprocess.run(["git", "ls-files"], cwd=self.clone, check=True, capture_output=True, text=True).stdout
        files = [name for name in listed.splitlines() if Path(name).suffix in _SUFFIXES]
        random.Random(0).shuffle(files)
        first = (self.root / "edits").stat().st_size if (self.root / "edits").exists() else 0
        for number, name in enumerate(files, start=first):
            word = f"zebrafinch{number}"
            with (self.clone / name).open("a") as file:
                file.write(f"\n# {word}\n")
            with (self.root / "edits").open("a") as counted:
                counted.write(".")
            yield word


def make_tables(run: SourceRun) -> None:
    """Run all stages except the last, which publishes."""
    run_stages(run, is_complete=True, selected=[stage.name for stage in stages()[:-1]])


def _chunks_of(generation: Generation) -> int:
    return sum(source.chunks for source in generation.sources.values())


def _table(kind: str, place: str) -> str:
    return f"[[source]]\nkind = {json.dumps(kind)}\npath = {json.dumps(place)}\n\n"


def _files(repositories: Sequence[Path], first: int) -> Iterator[Path]:
    """Yield files of repositories in a reproducible order, repeatedly."""
    found = [
        path
        for repository in repositories
        for path in sorted(repository.rglob("*"))
        if path.suffix in _SUFFIXES and path.is_file() and _SMALLEST <= path.stat().st_size <= _LARGEST
    ]
    random.Random(0).shuffle(found)
    while True:
        yield from found[first % len(found) :]
        first = 0


def _write_library(folder: Path, files: Sequence[Path]) -> None:
    folder.mkdir(parents=True)
    for number, file in enumerate(files):
        shutil.copyfile(file, folder / f"{number}_{file.name}")


def _real_chunks(repositories: Sequence[Path], embedder: StaticEmbedder) -> tuple[pa.Table, pa.Table]:
    """Return real chunks of the repositories with their vectors, as many as a copy has."""
    found: list[pa.Table] = []
    for repository in repositories:
        source = Source(f"library/{repository.name}", "library", repository.name, repository)
        found.append(build_chunks(source, gather(discover(source), ChunkingSettings()), None, ChunkingSettings()).table)
        if sum(chunks.num_rows for chunks in found) >= CHUNKS_OF_A_COPY:
            break
    chunks = pa.concat_tables(found).slice(0, CHUNKS_OF_A_COPY).combine_chunks()
    return chunks, build_embeddings(chunks, None, embedder, "library/real").table


def _copied(key: str, chunks: pa.Table, vectors: pa.Table, layout: Layout) -> SourceRows:
    """Return chunks and their vectors for another source."""
    ids = [chunk_id(key, one, 0) for one in chunks["chunk_id"].to_pylist()]
    chunks = _set(_set(chunks, "source", [key] * len(ids)), "chunk_id", ids)
    chunks = with_row_hashes(_set(chunks, "parent_chunk", [None] * len(ids)))
    vectors = vectors.set_column(0, vectors.schema.field(0), pa.array(ids))
    return SourceRows(key, chunks, vectors, extract(layout, key, chunks, None, plan=_NO_GRAPH, previous=None))


def _set(table: pa.Table, column: str, values: list[str] | list[None]) -> pa.Table:
    position = CHUNKS.get_field_index(column)
    return table.set_column(position, CHUNKS.field(position), pa.array(values, pa.string()))
