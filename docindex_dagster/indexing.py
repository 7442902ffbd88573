"""Indexing a source as a plain function: the stages, tables and locks of a Dagster run, without Dagster's record of it.

For programs that embed docindex, for tests, and for measuring what a run costs beside what Dagster adds.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from docindex_dagster import tables
from docindex_dagster.chunking.build import MADE_FROM, build_chunks, gather, was_made_from
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
    owner = f"process {os.getpid()}"
    waiting = _waiting(source.key, "another run of this source")
    with telling_full_disk(layout.home), exclusive(layout.source_lock(source.key), owner, waiting):
        layout.prepare()

        clone.update(
            source, layout, history=settings.history.commits, report=lambda text: emit(Notice(source.key, text))
        )

        def previous(asset: str) -> pa.Table | None:
            return None if full else tables.read(layout.table(asset, source.key))

        with stage(source.key, "discovered_files"):
            files = discover(source, previous("discovered_files"))
            files = tables.stamp(files, tables.data_version(files))
            tables.write(layout.table("discovered_files", source.key), files)
        value = (files.schema.metadata or {}).get(HEAD)
        head = value.decode() if value else None
        with stage(source.key, "commits"):
            commits = read_history(source, head, previous("commits"), settings.history.commits).commits
            tables.write(layout.table("commits", source.key), commits)
        model, revision = Model(embedder.name, embedder.dimension), source.version or head
        with_graph = settings.graph.enabled
        inputs = gather(source, files, settings.chunking, commits)
        unchanged = published_from(layout, source.key, inputs.made_from, revision, model, with_graph=with_graph)
        if unchanged is not None and not full and _holds(layout, source.key, inputs.made_from):
            return unchanged
        with ThreadPoolExecutor(1) as writer:  # tables are written while the next stages work
            with stage(source.key, "chunks"):
                chunks = build_chunks(source, inputs, previous("chunks"), settings.chunking).table
                written = [writer.submit(tables.write, layout.table("chunks", source.key), chunks)]
            with stage(source.key, "embeddings"):
                embeddings = embed(layout, source.key, chunks, previous("embeddings"), embedder, full=full).table
                written.append(writer.submit(tables.write, layout.table("embeddings", source.key), embeddings))
            rows = SourceRows(source.key, chunks, embeddings, revision, was_made_from(chunks))

            def ready() -> None:
                for future in written:
                    future.result()

            with (
                exclusive(layout.publication_lock, owner, _waiting(source.key, "another publication")),
                stage(source.key, "stores"),
            ):
                publication = publish(layout, rows, model, with_graph=with_graph, force=full, ready=ready)
            ready()
            return publication


def _holds(layout: Layout, key: str, inputs: str) -> bool:
    """Whether the tables are those of the same inputs, as far as their footers tell."""
    is_same = tables.metadata_value(layout.table("chunks", key), MADE_FROM) == inputs
    return is_same and tables.is_there(layout.table("embeddings", key))


def _waiting(key: str, what: str) -> Callable[[str], None]:
    return lambda owner: emit(Waiting(key, f"{what} ({owner})"))
