"""Removing what no generation needs: all but the published one and the one before it."""

import shutil
from dataclasses import replace

from docindex_dagster.errors import StoreError
from docindex_dagster.files import sync
from docindex_dagster.layout import Layout
from docindex_dagster.stores import graph_files, lance_table, vector_files
from docindex_dagster.stores.generation import Generation, read_generation, replace_generation


def next_number(layout: Layout) -> int:
    """A generation number that no folder has had and kept, not even one that was never published."""
    numbers = [int(folder.name) for folder in layout.tantivy.glob("*") if folder.name.isdecimal()]
    kept = [generation.number for generation in (_read(layout), _read(layout, previous=True)) if generation]
    return max([0, *numbers, *kept]) + 1


def remove_old_generations(layout: Layout) -> None:
    """Delete what only other generations need, and what a publication that failed left.

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
    vector_files.remove_unused(layout, {name for generation in kept for name in vector_files.names(generation)})


def compact(layout: Layout, *, keep_previous: bool = True) -> None:
    """Compact the LanceDB table at once, and drop its versions but for those of the two kept generations.

    The published generation stays the one that it is, and names the table's new version. Without `keep_previous` there
    is nothing left to roll back to. The caller holds the publication lock.

    Raises:
        StoreError: what is published cannot be read.
    """
    current, previous = read_generation(layout), read_generation(layout, previous=True)
    if current is None:
        return
    if not keep_previous:
        layout.previous.unlink(missing_ok=True)
        previous = None
    files_before = lance_table.files(layout)
    table = lance_table.open_for_writing(layout, current.model, 0, current.table_version)
    is_shared = previous is not None and previous.table == current.table
    oldest = min(previous.table_version, current.table_version) if previous and is_shared else current.table_version
    lance_table.drop_versions_before(table, oldest)
    sync(lance_table.files(layout) - files_before)
    replace_generation(layout, replace(current, table_version=table.version, optimized_version=table.version))
    remove_old_generations(layout)


def _read(layout: Layout, *, previous: bool = False) -> Generation | None:
    """A generation, or None where its file is missing or cannot be read."""
    try:
        return read_generation(layout, previous=previous)
    except StoreError:
        return None
