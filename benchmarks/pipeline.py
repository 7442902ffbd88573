"""The library without Dagster: one source, from its files to a published generation."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from docindex_dagster.callgraph.table import as_table
from docindex_dagster.chunking.build import build_chunks
from docindex_dagster.chunking.inputs import gather
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import ChunkingSettings
from docindex_dagster.embedding.build import build_embeddings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.graph.extraction import EVERYTHING, extract
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source
from docindex_dagster.stores.publish import publish
from docindex_dagster.stores.reader import Reader, open_reader
from docindex_dagster.stores.rows import SourceRows
from docindex_dagster.stores.staging import Model

_AS_IT_IS = ChunkingSettings()


@dataclass(frozen=True, slots=True)
class Indexed:
    """A published source with its tables."""

    reader: Reader
    files: int
    chunks: int


def index(
    folder: Path,
    home: Path,
    kind: str = "library",
    settings: ChunkingSettings = _AS_IT_IS,
    embedded: Callable[[pa.Table], pa.Table] = lambda chunks: chunks,
) -> Indexed:
    """Index a folder from nothing. `embedded` may change the columns of the embedded text."""
    layout = Layout(home)
    source = Source(
        key=f"{kind}/{folder.name}", kind="git" if kind == "git" else "library", name=folder.name, path=folder
    )
    embedder = StaticEmbedder()
    files = discover(source)
    made = build_chunks(source, gather(files, settings), None, settings, wants_references=True)
    chunks, references = made.table, as_table(made.references, "")
    vectors = build_embeddings(embedded(chunks), None, embedder, source.key).table
    graph = extract(layout, source.key, chunks, references, plan=EVERYTHING, previous=None)
    publish(layout, SourceRows(source.key, chunks, vectors, graph), Model.of(embedder))
    return Indexed(open_reader(layout), len(chunks["path"].unique()), chunks.num_rows)
