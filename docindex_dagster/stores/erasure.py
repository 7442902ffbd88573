"""Erasing: of a text that is not published any more, nothing is left in the stores.

A store that takes a row out only marks it as deleted, and what was published before stays for a rollback. So the
published generation is written anew from its rows, and all else goes: older versions, the generation before it, and
one that is to take over, which the next runs make again from the tables.
"""

from dataclasses import replace

from docindex_dagster.core.errors import StoreError
from docindex_dagster.core.files import reporting_full_disk, sync_new
from docindex_dagster.core.layout import Layout
from docindex_dagster.stores import clean_up, doctor, lance_table, packing, takeover, text_files
from docindex_dagster.stores.damage import damaged, reading_stores
from docindex_dagster.stores.generation import Generation, PublishedSource, read_generation, replace_generation
from docindex_dagster.stores.staging import Model, Staged


def erase(layout: Layout) -> None:
    """Leave nothing in the stores but the rows of the published generation. The caller holds the publication lock.

    Stopped anywhere, it leaves the generation published, in its old form or its new one; a second call does the rest. A
    reader that is open has to open anew.

    Raises:
        StoreError: what is published cannot be read, or is damaged; nothing was removed.
        FullDiskError: there is no space for a second copy of the stores; nothing was removed.
    """
    current = read_generation(layout)
    if current is None:
        return
    doctor.check(layout, current)
    clean_up.stop_maintenance(layout)
    model = Model(current.model, 0, current.endpoint)
    with reading_stores():
        with Staged.opened(layout, model, current, rewritten=True) as staged:
            staged.go_live(_written_anew(layout, current), _publish_alone, changed_rows=0)
        with reporting_full_disk(layout.stores):
            lance_table.drop_other_versions(staged.table)
        lance_table.remove_unused(layout, {staged.table.name}, spare_last=False)
        lance_table.remove_unnamed(layout)
    left = [folder for folder in layout.entries(layout.tantivy) if folder != staged.folder]
    if left:
        raise StoreError(f"{left[0]} cannot be removed; it may hold what was to be erased")


def _written_anew(layout: Layout, current: Generation) -> dict[str, PublishedSource]:
    """The sources, with files and packs that hold nothing else."""
    packed = _packed_anew(layout, current)
    return {
        key: replace(packed.get(key, source), texts=text_files.alone(layout, key, source))
        for key, source in current.sources.items()
    }


def _packed_anew(layout: Layout, current: Generation) -> dict[str, PublishedSource]:
    """The sources that are in packs, in new ones that hold nothing else."""
    keys = [key for key, source in current.sources.items() if source.pack is not None]
    packed = packing.pack(layout, current, keys, layout.packs)
    if packed:
        sync_new(layout.entries(layout.packs), layout.home.parent)
    return {key: replace(current.sources[key], pack=pack) for key, pack in packed.items()}


def _publish_alone(layout: Layout, generation: Generation) -> None:
    """Publish a generation, once it is known to be whole, and give up all others."""
    doctor.check(layout, generation)
    expected = sum(source.chunks for source in generation.sources.values())
    table = lance_table.open_for_reading(layout, generation.table, generation.table_version)
    if table.count_rows() != expected:
        raise damaged(f"LanceDB holds {table.count_rows()} rows of {expected} that are published")
    written = replace(generation, previous="", optimized_version=generation.table_version, changed_rows=0)
    replace_generation(layout, written)
    takeover.drop(layout)
