"""Removal of files that no kept generation needs: the published, the previous and the pending generation are kept."""

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
    """Return a generation number that no existing folder has, including folders of unpublished generations."""
    numbers = [int(folder.name) for folder in layout.entries(layout.tantivy) if folder.name.isdecimal()]
    return max([0, *numbers, *(generation.number for generation in kept(layout))]) + 1


def kept(layout: Layout) -> list[Generation]:
    """Return the generations whose stores are kept."""
    candidates = (_read(layout), _read(layout, previous=True), takeover.pending(layout))
    return [generation for generation in candidates if generation]


def oldest_version(layout: Layout, table: str) -> int | None:
    """Return the oldest version of a table that a kept generation needs; None if none uses the table."""
    return min((generation.table_version for generation in kept(layout) if generation.table == table), default=None)


def remove_old_generations(layout: Layout) -> None:
    """Delete files that only other generations need, and leftovers of failed publications.

    Nothing is deleted while `CURRENT` is unreadable, so that it can be repaired by hand.
    """
    if _read(layout) is None and layout.current.exists():
        return
    needed = kept(layout)
    folders = {generation.tantivy for generation in needed}
    for folder in layout.entries(layout.tantivy):  # first: its absence tells readers that their generation is gone
        if folder.name not in folders:
            remove_tree(folder)  # Tantivy threads that failed may still write into it
    current = _read(layout)
    for file in layout.all_previous:
        if current is None or file.name != current.previous:
            file.unlink(missing_ok=True)
    names_by_folder: dict[Path, Callable[[Generation], set[str]]] = {
        layout.graph: Generation.loose_graph_files,
        layout.rows: row_files.names,
        layout.packs: packs.names,
        layout.links: link_files.names,
    }
    for folder, names in names_by_folder.items():
        remove_unused(layout, folder, {name for generation in needed for name in names(generation)})
    lance_table.remove_unused(layout, {generation.table for generation in needed})


def remove_unused(layout: Layout, folder: Path, used: set[str]) -> None:
    """Delete files of removed generations, and partial files of killed writers.

    The caller must hold the publication lock.
    """
    for file in layout.entries(folder):
        if file.name not in used:
            file.unlink(missing_ok=True)


def discard_pending(layout: Layout, model: str) -> None:
    """Discard the pending generation if publications of this model cannot continue it.

    The caller must hold the publication lock.
    """
    takeover.drop_other(layout, _read(layout), model)
    remove_old_generations(layout)


def stop_maintenance(layout: Layout) -> None:
    """Remove the table copy of a running maintenance, which notices this and publishes nothing.

    The caller must hold the publication lock.
    """
    remove_tree(layout.maintenance)


def compact(layout: Layout, *, keep_previous: bool = True) -> None:
    """Compact the published LanceDB table immediately, and drop all versions that no kept generation needs.

    The published generation stays the same, but names the table's new version. Without `keep_previous`, rollback is no
    longer possible. The caller must hold the publication lock.

    Raises:
        StoreError: the published or previous generation cannot be read.
        FullDiskError: the disk is too full for the compacted table.
    """
    current = read_generation(layout)
    read_generation(layout, previous=True)  # raises if it is unreadable: it may be repaired by hand, so keep its data
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
        key: replace(source, rows=row_files.merge_row_files(layout, key, source))
        for key, source in current.sources.items()
    }
    compacted = replace(
        current, table_version=table.version, optimized_version=table.version, changed_rows=0, sources=sources
    )
    replace_generation(layout, compacted)
    remove_old_generations(layout)


def _read(layout: Layout, *, previous: bool = False) -> Generation | None:
    """Return a generation, or None if its file is missing or unreadable."""
    try:
        return read_generation(layout, previous=previous)
    except StoreError:
        return None
