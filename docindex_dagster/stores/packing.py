"""Packing the files of small sources: which, when, and how a generation comes to name the packs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from docindex_dagster.core.layout import Layout
from docindex_dagster.stores import graph_files, packs, vector_files
from docindex_dagster.stores.generation import Generation, PublishedSource

# To open the files of so many sources takes some 20 ms; and a pack of fewer would soon be written anew.
_MOST_LOOSE = 50


def why_due(generation: Generation) -> str | None:
    """Why small sources should be packed; None where few have files of their own."""
    loose = len(packs.loose(generation))
    return f"{loose} small sources have files of their own" if loose >= _MOST_LOOSE else None


def pack(layout: Layout, generation: Generation, keys: Sequence[str], folder: Path) -> dict[str, str]:
    """Write packs of some sources into a folder; returns the pack of each whose files could be read."""
    graphs = graph_files.mapped(layout, generation)
    found: dict[str, str] = {}
    for batch in packs.batches(keys):
        read = [_small(layout, key, generation.sources[key], graphs) for key in batch]
        sources = [source for source in read if source is not None]
        name = uuid4().hex[:16]
        if sources:
            packs.write(folder, name, sources)
            found |= {source.key: name for source in sources}
    return found


def _small(layout: Layout, key: str, source: PublishedSource, graphs: Mapping[str, pa.Buffer]) -> packs.Small | None:
    names = [source.graph.nodes, source.graph.triples] if source.graph else []
    if any(name not in graphs for name in names):
        return None
    if source.pack is None:
        vectors = vector_files.read_rows(layout, key, source.version)
    else:
        vectors = packs.vector_rows(layout, source.pack, [key])
    return packs.Small(key, {name: graphs[name] for name in names}, vectors)


def naming(current: Generation, base: Generation, packed: Mapping[str, str]) -> Generation:
    """The current generation, which names the packs of those sources that are as `base` has them."""
    same = {key: name for key, name in packed.items() if current.sources.get(key) == base.sources[key]}
    named = {key: replace(current.sources[key], pack=name) for key, name in same.items()}
    return replace(current, sources={**current.sources, **named})
