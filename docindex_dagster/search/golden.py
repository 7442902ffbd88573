"""A golden query: a chunk that was just published must be found by its own text."""

from collections.abc import Callable
from dataclasses import replace

from docindex_dagster.core.layout import Layout
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.model import Mode
from docindex_dagster.stores import tantivy_index
from docindex_dagster.stores.reader import open_written

_WITHIN = 10


def golden_query(layout: Layout, source: str, embedder: Callable[[], Embedder]) -> str:
    """Search a source for the text of one of its chunks by each retriever; an empty string when all find it.

    What the model's last publication wrote is searched, whether it took over yet or not, and only this source's rows:
    exactly if they are few, even if searches of the whole index are approximate.
    """
    reader = open_written(layout, embedder().name)
    narrowed = {key: one for key, one in reader.generation.sources.items() if key == source}
    reader = replace(reader, generation=replace(reader.generation, sources=narrowed))  # others need not be read
    rows = tantivy_index.matching(reader.searcher, reader.index.schema, "source", source, 1)
    if not rows:
        return ""
    chunk = rows[0]
    query = f"{chunk['path']} {chunk['qualified_name'] or ''} {chunk['text']}"
    filters = Filters(sources=(source,), source_types=(chunk["source_type"],))
    missed = [
        mode.value
        for mode in (Mode.BM25, Mode.VECTOR)
        if all(
            hit.text != chunk["text"]
            for hit in search(reader, query, embedder, mode=mode, top_k=_WITHIN, filters=filters)
        )
    ]
    place = f"{chunk['path']}:{chunk['start_line']}"
    return f"{' and '.join(missed)} did not find {place} by its own text" if missed else ""
