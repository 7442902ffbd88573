"""Removing what no generation needs: all but the published one, the one before it, and one that is to take over."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from docindex_dagster.core.errors import StoreError
from docindex_dagster.core.files import remove_tree, reporting_full_disk, sync_new
from docindex_dagster.core.layout import Layout
from docindex_dagster.stores import lance_table, link_files, packs, row_files, takeover
from docindex_dagster.stores.damage import reading_stores
from docindex_dagster.stores.generation import Generation, read_generation, replace_generation


def next_number(layout: Layout) -> int:
    """A generation number that no folder has had and kept, not even one that was never published."""
    numbers = [int(folder.name) for folder in layout.entries(layout.tantivy) if folder.name.isdecimal()]
    return max([0, *numbers, *(generation.number for generation in kept(layout))]) + 1


def kept(layout: Layout) -> list[Generation]:
    """The generations whose stores stay."""
    named = (_read(layout), _read(layout, previous=True), takeover.pending(layout))
    return [generation for generation in named if generation]


def oldest_version(layout: Layout, table: str) -> int | None:
    """The oldest version of a table that a generation needs; None where none needs the table."""
    return min((generation.table_version for generation in kept(layout) if generation.table == table), default=None)


def remove_old_generations(layout: Layout) -> None:
    """Delete what only other generations need, and what a publication that failed left.

    Nothing is deleted while `CURRENT` cannot be read: who mends it by hand finds everything in place.
    """
    if _read(layout) is None and layout.current.exists():
        return
    needed = kept(layout)
    folders = {generation.tantivy for generation in needed}
    for folder in layout.entries(layout.tantivy):  # before all else: by it readers see that their generation is gone
        if folder.name not in folders:
            remove_tree(folder)  # threads of Tantivy's that failed may still write into it
    current = _read(layout)
    for file in layout.all_previous:
        if current is None or file.name != current.previous:
            file.unlink(missing_ok=True)
    of_generations: dict[Path, Callable[[Generation], set[str]]] = {
        layout.graph: Generation.loose_graph_files,
        layout.rows: row_files.names,
        layout.packs: packs.names,
        layout.links: link_files.names,
    }
    for folder, names in of_generations.items():
        remove_unused(layout, folder, {name for generation in needed for name in names(generation)})
    lance_table.remove_unused(layout, {generation.table for generation in needed})


def remove_unused(layout: Layout, folder: Path, used: set[str]) -> None:
    """Delete the files of generations that are gone, and what writers that were killed left half written.

    The caller holds the publication lock.
    """
    for file in layout.entries(folder):
        if file.name not in used:
            file.unlink(missing_ok=True)


def give_up_next(layout: Layout, model: str) -> None:
    """Remove a generation that was to take over, if publications of this model cannot go on from it.

    The caller holds the publication lock.
    """
    takeover.drop_other(layout, _read(layout), model)
    remove_old_generations(layout)


def stop_maintenance(layout: Layout) -> None:
    """Remove the copy of a table that is being maintained; who works on it notices, and publishes nothing.

    The caller holds the publication lock.
    """
    remove_tree(layout.maintenance)


def compact(layout: Layout, *, keep_previous: bool = True) -> None:
    """Compact the published LanceDB table at once, and drop its versions but for those of the kept generations.

    The published generation stays the one that it is, and names the table's new version. Without `keep_previous` there
    is nothing left to roll back to. The caller holds the publication lock.

    Raises:
        StoreError: what is published cannot be read.
        FullDiskError: there is no space to write what is left.
    """
    current = read_generation(layout)
    read_generation(layout, previous=True)  # one that cannot be read now may be mended by hand: it loses nothing
    if current is None:
        return
    if not keep_previous:
        current = replace(current, previous="")
        replace_generation(layout, current)
    files_before = lance_table.files(layout)
    with reading_stores(), reporting_full_disk(layout.stores):
        table = lance_table.open_for_writing(layout, current.table, 0, current.table_version)
        lance_table.drop_versions_before(table, oldest_version(layout, current.table) or current.table_version)
    sync_new(lance_table.written_since(layout, files_before), layout.home.parent)
    sources = {
        key: replace(source, rows=row_files.alone(layout, key, source)) for key, source in current.sources.items()
    }
    compacted = replace(
        current, table_version=table.version, optimized_version=table.version, changed_rows=0, sources=sources
    )
    replace_generation(layout, compacted)
    remove_old_generations(layout)


def _read(layout: Layout, *, previous: bool = False) -> Generation | None:
    """A generation, or None where its file is missing or cannot be read."""
    try:
        return read_generation(layout, previous=previous)
    except StoreError:
        return None
