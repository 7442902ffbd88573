"""Packing the files of small sources: which, when, and how a generation comes to name the packs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from docindex_dagster.core.layout import Layout
from docindex_dagster.stores import packs, row_files
from docindex_dagster.stores.generation import Generation, PublishedSource
from docindex_dagster.stores.parts import Parts
from docindex_dagster.stores.reader import open_generation

# To open the files of so many sources takes some 20 ms; and a pack of fewer would soon be written anew.
_MOST_LOOSE = 50


def why_due(generation: Generation) -> str | None:
    """Why small sources should be packed; None where few have files of their own."""
    loose = len(packs.loose(generation))
    return f"{loose} small sources have files of their own" if loose >= _MOST_LOOSE else None


def pack(layout: Layout, generation: Generation, keys: Sequence[str], folder: Path) -> dict[str, str]:
    """Write packs of some sources into a folder; returns the pack of each whose graph could be read."""
    reader = open_generation(layout, generation)
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, str] = {}
    for batch in packs.batches(keys):
        files = {key: _graph_files(generation.sources[key]) for key in batch}
        packed = [key for key in batch if files[key] <= reader.graphs.keys()]
        name = uuid4().hex[:16]
        if packed:
            graphs = {file: reader.graphs[file] for key in packed for file in sorted(files[key])}
            packs.write_graphs(folder, name, graphs)
            if any(generation.sources[key].chunks for key in packed):
                row_files.write_tables(packs.rows_file(folder, name), _rows(reader.parts, packed))
            found |= dict.fromkeys(packed, name)
    return found


def _graph_files(source: PublishedSource) -> set[str]:
    return {source.graph.nodes, source.graph.triples} if source.graph else set()


def _rows(parts: Parts, keys: Sequence[str]) -> Iterator[pa.Table]:
    """The rows of some sources, those of each by path and chunk_index, as many in a table as in a batch of a file."""
    of_sources = ([*row_files.tables_of(parts.of_source(key))] for key in keys)
    rows = pa.concat_tables(
        pa.concat_tables(tables).sort_by([("path", "ascending"), ("chunk_index", "ascending")])
        if len(tables) > 1
        else tables[0]
        for tables in of_sources
        if tables
    )
    for start in range(0, rows.num_rows, row_files.ROWS_A_BATCH):
        yield rows.slice(start, row_files.ROWS_A_BATCH)


def naming(current: Generation, base: Generation, packed: Mapping[str, str]) -> Generation:
    """The current generation, which names the packs of those sources that are as `base` has them."""
    same = {key: name for key, name in packed.items() if current.sources.get(key) == base.sources[key]}
    named = {key: replace(current.sources[key], pack=name, rows=()) for key, name in same.items()}
    return replace(current, sources={**current.sources, **named})
