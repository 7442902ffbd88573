"""Small sources for the graph: files as chunks, and their opened graphs."""

from collections.abc import Mapping

import pyarrow as pa

from docindex_dagster.chunking.chunker import ChunkOptions, Sizes, SourceFile
from docindex_dagster.chunking.chunkers import load_chunker
from docindex_dagster.chunking.rows import CutFile, FileIdentity, rows
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.tokenizer import count_tokens
from docindex_dagster.graph.build import Content
from docindex_dagster.graph.open_graph import OpenGraph, open_graphs
from docindex_dagster.graph.source_graph import Graph
from docindex_dagster.sources.classify import classify_name
from tests.graph.built import build_graph

KEY = "library/sample"
Edge = tuple[str, str, str]


def chunks_of(files: Mapping[str, str], source: str = KEY, sizes: Sizes | None = None) -> pa.Table:
    """Return the `chunks` table of files given by path."""
    options = ChunkOptions(sizes or Sizes(), code_chars=1500)
    cut = []
    for path, text in sorted(files.items()):
        kind = classify_name(path.encode())
        assert kind is not None
        about = FileIdentity(
            source, "library", path, digest(text.encode()), kind.source_type, kind.language, None, is_uncommitted=False
        )
        drafts = load_chunker(kind.loader)(SourceFile(path, text, kind.language), options)
        cut.append(CutFile(about, drafts))
    return rows(cut, count_tokens)


def graph_of(files: Mapping[str, str], source: str = KEY, content: Content | None = None) -> Graph:
    return build_graph(chunks_of(files, source), content or Content())


def opened(files: Mapping[str, str], content: Content | None = None) -> OpenGraph:
    return open_graphs({KEY: graph_of(files, KEY, content)})


def edges(graph: OpenGraph, *predicates: str) -> set[Edge]:
    """Return the edges with the given predicates, as end names without the source prefix."""
    names = [name.removeprefix(f"{KEY}!") for name in graph.ids]
    return {
        (names[row["subject"]], row["predicate"], names[row["object"]])
        for row in graph.edges.to_pylist()
        if row["predicate"] in predicates
    }
