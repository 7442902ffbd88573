"""Indexing a source as a plain function: the stages, tables and locks of a Dagster run, without Dagster's record of it.

For programs that embed docindex, for tests, and for measuring what a run costs beside what Dagster adds.
"""

import os
from collections.abc import Callable

import pyarrow as pa

from docindex_dagster import tables
from docindex_dagster.chunking.build import build_chunks
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.reuse import embed
from docindex_dagster.events import Waiting, emit
from docindex_dagster.layout import Layout
from docindex_dagster.locks import exclusive
from docindex_dagster.settings import Settings
from docindex_dagster.sources.discover import discover
from docindex_dagster.sources.memory import HEAD
from docindex_dagster.sources.model import Source
from docindex_dagster.stores.publish import Publication, SourceRows, publish
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
    """
    layout = Layout(settings.home)
    layout.prepare()
    owner = f"process {os.getpid()}"
    with exclusive(layout.source_lock(source.key), owner, _waiting(source.key, "another run of this source")):

        def previous(asset: str) -> pa.Table | None:
            return None if full else tables.read(layout.table(asset, source.key))

        files = discover(source, previous("discovered_files"))
        files = tables.stamp(files, tables.data_version(files))
        tables.write(layout.table("discovered_files", source.key), files)
        chunks = build_chunks(source, files, previous("chunks"), settings.chunking).table
        tables.write(layout.table("chunks", source.key), chunks)
        embeddings = embed(layout, source.key, chunks, previous("embeddings"), embedder, full=full).table
        tables.write(layout.table("embeddings", source.key), embeddings)
        head = (files.schema.metadata or {}).get(HEAD)
        rows = SourceRows(source.key, chunks, embeddings, source.version or (head.decode() if head else None))
        model = Model(embedder.name, embedder.dimension)
        with exclusive(layout.publication_lock, owner, _waiting(source.key, "another publication")):
            return publish(layout, rows, model, with_graph=settings.graph.enabled, force=full)


def _waiting(key: str, what: str) -> Callable[[str], None]:
    return lambda owner: emit(Waiting(key, f"{what} ({owner})"))
