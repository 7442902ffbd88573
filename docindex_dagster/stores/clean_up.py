"""Removing what no generation needs: all but the published one and the one before it."""

import shutil

from docindex_dagster.errors import StoreError
from docindex_dagster.layout import Layout
from docindex_dagster.stores import graph_files
from docindex_dagster.stores.generation import Generation, read_generation


def next_number(layout: Layout) -> int:
    """A generation number that no folder has had and kept, not even one that was never published."""
    numbers = [int(folder.name) for folder in layout.tantivy.glob("*") if folder.name.isdecimal()]
    kept = [generation.number for generation in (_read(layout), _read(layout, previous=True)) if generation]
    return max([0, *numbers, *kept]) + 1


def remove_old_generations(layout: Layout) -> None:
    """Delete the Tantivy folders and graph files of other generations, and those of a publication that failed.

    Nothing is deleted while `CURRENT` cannot be read: who mends it by hand finds everything in place.
    """
    current = _read(layout)
    if current is None and layout.current.exists():
        return
    kept = [generation for generation in (current, _read(layout, previous=True)) if generation]
    folders = {generation.tantivy for generation in kept}
    for folder in layout.tantivy.glob("*"):
        if folder.name not in folders:
            shutil.rmtree(folder, ignore_errors=True)
    graph_files.remove_unused(layout, {name for generation in kept for name in generation.graph_files()})


def _read(layout: Layout, *, previous: bool = False) -> Generation | None:
    """A generation, or None where its file is missing or cannot be read."""
    try:
        return read_generation(layout, previous=previous)
    except StoreError:
        return None
