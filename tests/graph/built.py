"""Graphs built from chunks alone: file contents are the chunk texts joined end to end."""

from functools import cache

import pyarrow as pa

from docindex_dagster.callgraph.table import Extracted, as_table, reference_rows, referring
from docindex_dagster.chunking.references import extract_references
from docindex_dagster.graph import build
from docindex_dagster.graph.build import Content
from docindex_dagster.graph.source_graph import Graph


def references_of(chunks: pa.Table) -> pa.Table:
    """Extract the references of files, as their stage does."""
    texts: dict[str, str] = {}
    for path, text in zip(chunks["path"].to_pylist(), chunks["text"].to_pylist(), strict=True):
        texts[path] = texts.get(path, "") + text
    files = (tuple(row.values()) for row in referring(chunks).to_pylist())
    rows = [_extracted(Extracted(path, hashed, language, None), texts[path]) for path, hashed, language in files]
    return as_table(reference_rows(rows), "")


@cache
def _extracted(blank: Extracted, text: str) -> Extracted:
    return extract_references(blank, text, None)


def build_graph(chunks: pa.Table, content: Content | None = None) -> Graph:
    return build.build_graph(chunks, references_of(chunks), content or Content())


def update_graph(previous: Graph, chunks: pa.Table, content: Content | None = None) -> Graph:
    return build.update_graph(previous, chunks, references_of(chunks), content or Content())
