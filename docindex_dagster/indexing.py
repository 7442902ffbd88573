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
from docindex_dagster.access import writing
from docindex_dagster.chunking.build import MADE_FROM, ChunkInputs, build_chunks, gather
from docindex_dagster.chunking.fallbacks import fallbacks, left_out_warning, warning
from docindex_dagster.chunking.pool import check_main_guard
from docindex_dagster.chunking.summaries import Summariser, summariser_of
from docindex_dagster.embedding import kept
from docindex_dagster.embedding.build import CHUNKS_VERSION
from docindex_dagster.embedding.protocol import Embedder, cut_note
from docindex_dagster.embedding.providers import load_embedder
from docindex_dagster.embedding.reuse import embed
from docindex_dagster.events import Notice, Waiting, emit, stage
from docindex_dagster.files import telling_full_disk
from docindex_dagster.graph import extraction
from docindex_dagster.graph.plan import GraphPlan
from docindex_dagster.layout import Layout
from docindex_dagster.locks import exclusive
from docindex_dagster.schemas import DISCOVERED_FILES
from docindex_dagster.settings import Settings
from docindex_dagster.sources import clone
from docindex_dagster.sources.commits import is_history, read_history
from docindex_dagster.sources.discover import discover
from docindex_dagster.sources.fingerprint import fingerprint
from docindex_dagster.sources.memory import FINGERPRINT, HEAD
from docindex_dagster.sources.model import Source
from docindex_dagster.stores import clean_up
from docindex_dagster.stores.publish import Publication, publish, published_from
from docindex_dagster.stores.reader import can_be_opened, check_published
from docindex_dagster.stores.rows import SourceRows
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
        WorkerError: the script that calls it has no main guard.
    """
    check_main_guard()
    layout = Layout(settings.home)
    run = _Run(settings, source, embedder, layout, full)
    lock = layout.source_lock(source.key)
    with telling_full_disk(layout.home), writing(settings), run.holding(lock, "another run of this source"):
        clone.update(source, layout, history=settings.history.commits, report=run.notice)
        return run.run_stages()


def is_current(settings: Settings, source: Source, seen: str | None = None) -> bool:
    """Whether what is published of a source was made from its files and settings as they are now.

    No file is read, and no stage runs. Of a repository that docindex clones, its files are those that are checked out.
    It is False where nobody can tell: after a run over single files, and while files were written as they were read.

    Args:
        settings: as they are now.
        source: what is asked about.
        seen: what `fingerprint` says of it now, where that is known.

    Raises:
        SourceError: the source cannot be listed.
    """
    seen = fingerprint(source) if seen is None else seen
    run = _Run(settings, source, load_embedder(settings.embedding), Layout(settings.home), full=False)
    files, commits = run.previous("discovered_files"), run.previous("commits")
    if files is None or commits is None or not files.schema.equals(DISCOVERED_FILES):
        return False
    head = _text(files, HEAD)
    if _text(files, FINGERPRINT) != seen or not is_history(source, commits, head, settings.history.commits):
        return False
    inputs = gather(files, settings.chunking, commits, run.summariser)
    return run.published(inputs, source.version or head) is not None


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
        head = _text(files, HEAD)
        inputs = gather(files, self.settings.chunking, self._read_commits(head), self.summariser)
        revision = self.source.version or head
        published = None if self.full else self.published(inputs, revision)
        if published is not None and self._stands(published):
            return published
        return self._build(inputs, revision)

    def _stands(self, published: Publication) -> bool:
        """Whether there is nothing to do about what was found.

        Raises:
            DamagedStoreError: searches use it, and it cannot be opened.
        """
        if published.takeover is not None:  # a candidate that is damaged, or that is late, is mended by a publication
            return bool(published.takeover.missing) and can_be_opened(self.layout, published.generation)
        check_published(self.layout)  # nothing would be found, and no later run would notice
        if self.layout.next.exists():
            with self.holding(self.layout.publication_lock, "another publication"):
                clean_up.give_up_next(self.layout, self._model.name)
        return True

    def published(self, inputs: ChunkInputs, revision: str | None) -> Publication | None:
        """What is published, if it and the tables were made from exactly this."""
        made_from = inputs.made_from
        published = published_from(self.layout, self.source.key, made_from, revision, self._model, plan=self._plan)
        return published if published is not None and self._holds(made_from) else None

    def previous(self, asset: str) -> pa.Table | None:
        """The table that an earlier run wrote; None where nothing may be reused."""
        return None if self.full else tables.read(self.layout.table(asset, self.source.key))

    def _discover(self) -> pa.Table:
        with stage(self.source.key, "discovered_files"):
            files = discover(self.source, self.previous("discovered_files"))
            files = tables.stamp(files, tables.data_version(files))
            self._write("discovered_files", files)
        return files

    def _read_commits(self, head: str | None) -> pa.Table:
        with stage(self.source.key, "commits"):
            limit = self.settings.history.commits
            commits = read_history(self.source, head, self.previous("commits"), limit).commits
            self._write("commits", commits)
        return commits

    def _build(self, inputs: ChunkInputs, revision: str | None) -> Publication:
        key, plan = self.source.key, self._plan
        with ThreadPoolExecutor(1) as writer:  # tables are written while the next stages work
            with stage(key, "chunks"):
                previous, chunking = self.previous("chunks"), self.settings.chunking
                result = build_chunks(self.source, inputs, previous, chunking, self.summariser)
                for problem in result.summaries.problems if result.summaries else ():
                    self.notice(problem)
                chunks = result.table
                cut_as_text = warning(fallbacks(chunks), inputs.files.num_rows)
                for problem in filter(None, (left_out_warning(result.left_out), cut_as_text)):
                    self.notice(problem)
                written = [writer.submit(self._write, "chunks", chunks)]
            with stage(key, "embeddings"):
                previous = self.previous("embeddings")
                embeddings = embed(self.layout, key, chunks, previous, self.embedder, full=self.full).table
                written.append(writer.submit(self._write, "embeddings", embeddings))
            if note := cut_note(self.embedder):
                self.notice(note)
            with stage(key, "graph"):
                before = None if self.full else extraction.read(self.layout, key)
                graph = extraction.extract(self.layout, key, chunks, plan, before)
                written.append(writer.submit(extraction.write, self.layout, key, graph))

            def ready() -> None:
                for table in written:
                    table.result()

            rows = SourceRows(key, chunks, embeddings, graph, revision)
            with self.holding(self.layout.publication_lock, "another publication"), stage(key, "stores"):
                publication = publish(self.layout, rows, self._model, plan=plan, force=self.full, ready=ready)
        kept.settle(self.layout, key, embeddings)
        return publication

    @property
    def summariser(self) -> Summariser | None:
        """Who writes summaries, if the settings want any."""
        return summariser_of(self.settings, self.source.key)

    @property
    def _model(self) -> Model:
        return Model.of(self.embedder)

    @property
    def _plan(self) -> GraphPlan:
        return GraphPlan(self.settings.graph, self.settings.llm)

    def _write(self, asset: str, table: pa.Table) -> None:
        tables.write(self.layout.table(asset, self.source.key), table)

    def _holds(self, made_from: str) -> bool:
        """Whether the tables are those of the same inputs, as far as their footers tell."""
        chunks, embeddings = (self.layout.table(asset, self.source.key) for asset in ("chunks", "embeddings"))
        version = tables.metadata_value(chunks, tables.VERSION)
        if version is None or tables.metadata_value(chunks, MADE_FROM) != made_from:
            return False
        is_embedded = tables.metadata_value(embeddings, CHUNKS_VERSION) == version
        return is_embedded and extraction.is_of(self.layout, self.source.key, version, self._plan)

    def holding(self, lock: Path, what: str) -> AbstractContextManager[None]:
        """Hold a lock, and say for whom this run waits."""
        return exclusive(
            lock, f"process {os.getpid()}", lambda owner: emit(Waiting(self.source.key, f"{what} ({owner})"))
        )

    def notice(self, text: str) -> None:
        """Tell the user something."""
        emit(Notice(self.source.key, text))


def _text(table: pa.Table, key: bytes) -> str | None:
    """One value of a table's metadata."""
    value = (table.schema.metadata or {}).get(key)
    return value.decode() if value else None
