"""Indexing a source as a plain function: the stages, tables and locks of a Dagster run, without Dagster's record of it.

For programs that embed docindex, for tests, and for measuring what a run costs beside what Dagster adds.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from docindex_dagster import tables
from docindex_dagster.chunking.build import MADE_FROM, ChunkInputs, build_chunks, gather
from docindex_dagster.embedding.build import CHUNKS_VERSION
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.reuse import embed
from docindex_dagster.events import Notice, Waiting, emit, stage
from docindex_dagster.files import telling_full_disk
from docindex_dagster.layout import Layout
from docindex_dagster.locks import exclusive
from docindex_dagster.settings import Settings
from docindex_dagster.sources import clone
from docindex_dagster.sources.commits import read_history
from docindex_dagster.sources.discover import discover
from docindex_dagster.sources.memory import HEAD
from docindex_dagster.sources.model import Source
from docindex_dagster.stores.publish import Publication, SourceRows, publish, published_from
from docindex_dagster.stores.staging import Model


def index(settings: Settings, source: Source, embedder: Embedder, *, full: bool = False) -> Publication:
    """Bring the index of one source up to date, waiting for another run of it.

    Args:
        settings: sizes, models, and where the index lives.
        source: what to index.
        embedder: the model of the vectors.
        full: reuse nothing, and compare every row of the stores.

    Raises:
        SourceError: the source cannot be read.
        EmbeddingError: the provider failed.
        VerificationError: rows break a rule; what was published stays.
        DamagedStoreError: the stores are damaged, and `full` was not asked for.
        FullDiskError: there is no space left; what was published stays.
    """
    layout = Layout(settings.home)
    run = _Run(settings, source, embedder, layout, full)
    with telling_full_disk(layout.home), run.holding(layout.source_lock(source.key), "another run of this source"):
        layout.prepare()
        clone.update(source, layout, history=settings.history.commits, report=run.notice)
        return run.run_stages()


@dataclass(frozen=True, slots=True)
class _Run:
    """One run over one source, which holds the source's lock."""

    settings: Settings
    source: Source
    embedder: Embedder
    layout: Layout
    full: bool

    def run_stages(self) -> Publication:
        """Do all stages; the later ones only where something differs from what is published."""
        files = self._discover()
        value = (files.schema.metadata or {}).get(HEAD)
        head = value.decode() if value else None
        inputs = gather(files, self.settings.chunking, self._read_commits(head))
        revision = self.source.version or head
        published = published_from(
            self.layout, self.source.key, inputs.made_from, revision, self._model, with_graph=self._with_graph
        )
        if published is not None and not self.full and self._holds(inputs.made_from):
            return published
        return self._build(inputs, revision)

    def _discover(self) -> pa.Table:
        with stage(self.source.key, "discovered_files"):
            files = discover(self.source, self._previous("discovered_files"))
            files = tables.stamp(files, tables.data_version(files))
            self._write("discovered_files", files)
        return files

    def _read_commits(self, head: str | None) -> pa.Table:
        with stage(self.source.key, "commits"):
            limit = self.settings.history.commits
            commits = read_history(self.source, head, self._previous("commits"), limit).commits
            self._write("commits", commits)
        return commits

    def _build(self, inputs: ChunkInputs, revision: str | None) -> Publication:
        key = self.source.key
        with ThreadPoolExecutor(1) as writer:  # tables are written while the next stages work
            with stage(key, "chunks"):
                chunks = build_chunks(self.source, inputs, self._previous("chunks"), self.settings.chunking).table
                written = [writer.submit(self._write, "chunks", chunks)]
            with stage(key, "embeddings"):
                previous = self._previous("embeddings")
                embeddings = embed(self.layout, key, chunks, previous, self.embedder, full=self.full).table
                written.append(writer.submit(self._write, "embeddings", embeddings))

            def ready() -> None:
                for table in written:
                    table.result()

            rows = SourceRows(key, chunks, embeddings, revision)
            with self.holding(self.layout.publication_lock, "another publication"), stage(key, "stores"):
                publication = publish(
                    self.layout, rows, self._model, with_graph=self._with_graph, force=self.full, ready=ready
                )
        return publication

    @property
    def _model(self) -> Model:
        return Model(self.embedder.name, self.embedder.dimension)

    @property
    def _with_graph(self) -> bool:
        return self.settings.graph.enabled

    def _previous(self, asset: str) -> pa.Table | None:
        return None if self.full else tables.read(self.layout.table(asset, self.source.key))

    def _write(self, asset: str, table: pa.Table) -> None:
        tables.write(self.layout.table(asset, self.source.key), table)

    def _holds(self, made_from: str) -> bool:
        """Whether the tables are those of the same inputs, as far as their footers tell."""
        chunks, embeddings = (self.layout.table(asset, self.source.key) for asset in ("chunks", "embeddings"))
        version = tables.metadata_value(chunks, tables.VERSION)
        is_whole = version is not None and tables.metadata_value(embeddings, CHUNKS_VERSION) == version
        return is_whole and tables.metadata_value(chunks, MADE_FROM) == made_from

    def holding(self, lock: Path, what: str) -> AbstractContextManager[None]:
        """Hold a lock, and say for whom this run waits."""
        return exclusive(
            lock, f"process {os.getpid()}", lambda owner: emit(Waiting(self.source.key, f"{what} ({owner})"))
        )

    def notice(self, text: str) -> None:
        """Tell the user something."""
        emit(Notice(self.source.key, text))
