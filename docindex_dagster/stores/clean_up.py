"""Removing what no generation needs: all but the published one and the one before it."""

import shutil

from docindex_dagster.layout import Layout
from docindex_dagster.stores import graph_files
from docindex_dagster.stores.generation import Generation, read_generation


def next_number(layout: Layout) -> int:
    """A generation number that no folder has had and kept, not even one that was never published."""
    numbers = [int(folder.name) for folder in layout.tantivy.glob("*") if folder.name.isdecimal()]
    kept = [generation.number for generation in _kept(layout)]
    return max([0, *numbers, *kept]) + 1


def remove_old_generations(layout: Layout) -> None:
    """Delete the Tantivy folders and graph files of other generations, and those of a publication that failed."""
    kept = _kept(layout)
    folders = {generation.tantivy for generation in kept}
    for folder in layout.tantivy.glob("*"):
        if folder.name not in folders:
            shutil.rmtree(folder, ignore_errors=True)
    graph_files.remove_unused(layout, {name for generation in kept for name in generation.graph_files()})


def _kept(layout: Layout) -> list[Generation]:
    both = (read_generation(layout), read_generation(layout, previous=True))
    return [generation for generation in both if generation]
