"""The `docindex prune` command: free disk space and erase traces of deleted texts."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from docindex_dagster.cli.common import Json, publication
from docindex_dagster.cli.selected_project import load_project, load_settings
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings
from docindex_dagster.render import console
from docindex_dagster.runner import journal
from docindex_dagster.sources import registry

if TYPE_CHECKING:
    from docindex_dagster.objects.bucket import ObjectInfo
    from docindex_dagster.stores.prune import Orphan


def prune(
    previous: Annotated[
        bool, typer.Option("--previous", help="Also delete the previous generation, which docindex rollback restores.")
    ] = False,
    erase: Annotated[
        bool, typer.Option("--erase", help="Also erase every trace of deleted texts. This cannot be undone.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be deleted, without deleting it.")
    ] = False,
    json: Json = False,
) -> None:
    """Delete outdated rows and the data of removed sources."""
    settings = load_project()
    freed = 0
    with publication(settings, "prune") as layout:
        if dry_run:
            found = _orphans(layout, erase=erase)
        else:
            found, freed = _prune(settings, layout, keep_previous=not previous, erase=erase)
    objects = _objects(settings, remove=not dry_run)
    if json:
        of_objects = {} if objects is None else {"objects": [object_.name for object_ in objects]}
        console.as_json({"orphans": found, "freed_bytes": freed, **of_objects})
    else:
        _show_pruned(Layout(settings.home), found, freed, is_done=not dry_run)
        if objects is not None:
            size = sum(object_.size for object_ in objects) / 1e6
            what = "would delete" if dry_run else "deleted"
            console.out.print(f"{what} {console.count(len(objects), 'object')} in the object store ({size:.1f} MB)")
    if erase and not dry_run:
        _show_erased(settings, found)


def erase(settings: Settings) -> None:
    """Erase every trace of texts that are no longer indexed, and report it. Exit if a run still uses one."""
    with publication(settings, "prune") as layout:
        found, _ = _prune(settings, layout, keep_previous=False, erase=True)
    _objects(settings, remove=True)
    _show_erased(settings, found)


def _objects(settings: Settings, *, remove: bool) -> "list[ObjectInfo] | None":
    """Return the unreferenced objects, after deleting them if `remove` is set; None if there is no object store."""
    if settings.storage.url is None:
        return None
    from docindex_dagster.objects import garbage_collection
    from docindex_dagster.objects.shared_stores import configured_bucket

    return (garbage_collection.collect if remove else garbage_collection.unreferenced_objects)(
        configured_bucket(settings)
    )


def _orphans(layout: Layout, *, erase: bool) -> "list[Orphan]":
    from docindex_dagster.stores import prune as pruning

    return pruning.orphans(layout, _known(layout), erase=erase)


def _prune(settings: Settings, layout: Layout, *, keep_previous: bool, erase: bool) -> "tuple[list[Orphan], int]":
    """Delete what no source needs and no run uses; return all of it, and the number of bytes freed."""
    from docindex_dagster.core.files import folder_bytes
    from docindex_dagster.stores import prune as pruning

    before = folder_bytes(layout.home)
    if erase:
        journal.drop_samples(layout)
    found = pruning.prune(layout, _known(layout), keep_previous=keep_previous, erase=erase)
    if erase:
        _erase_samples(settings)
    return found, max(0, before - folder_bytes(layout.home))  # compaction copies what the previous generation needs


def _known(layout: Layout) -> set[str]:
    """Return the keys of all sources that are declared, published or about to be published."""
    from docindex_dagster.stores import takeover
    from docindex_dagster.stores.generation import read_generation

    declared = registry.sources(load_settings())  # includes sources declared while this waited for the lock
    generations = read_generation(layout), takeover.pending(layout)
    return {key for found in generations if found for key in found.sources} | declared.keys()


def _show_erased(settings: Settings, found: "list[Orphan]") -> None:
    if any(orphan.is_busy for orphan in found):
        console.failure("some texts are not erased yet, since a run uses them: run `docindex prune --erase` afterwards")
        raise typer.Exit(1)
    if settings.storage.url is None:
        console.err.print("erased all texts that are no longer indexed; rollback is no longer possible")
        return
    from docindex_dagster.objects.contents import MAX_UNREFERENCED_AGE

    hours = MAX_UNREFERENCED_AGE.total_seconds() / 3600
    console.err.print(
        "no index refers to texts that are no longer indexed, and rollback is no longer possible; objects younger than "
        f"{hours:.0f} hours are deleted by the first prune after that, and copies on workers by their next runs"
    )


def _erase_samples(settings: Settings) -> None:
    """Delete the row samples of runs from Dagster's record, if there is one."""
    if "DAGSTER_HOME" not in os.environ and not Layout(settings.home).dagster.is_dir():
        return
    from docindex_dagster.cli import dagster_runs
    from docindex_dagster.defs.retention import erase_samples

    with dagster_runs.instance(settings) as instance:
        erase_samples(instance)


def _show_pruned(layout: Layout, found: "list[Orphan]", freed: int, *, is_done: bool) -> None:
    """Print a line per orphan, and what was or would be freed."""
    for orphan in found:
        place, busy = orphan.path.relative_to(layout.home), "; kept while a run uses it" if orphan.is_busy else ""
        console.out.print(f"{place}: {orphan.reason} ({orphan.size / 1e6:.1f} MB){busy}")
    if is_done:
        console.out.print(f"freed {freed / 1e6:.1f} MB" if freed > 0 else "nothing to free")
        return
    deletable = [orphan for orphan in found if not orphan.is_busy]
    size = sum(orphan.size for orphan in deletable) / 1e6
    what = "file or folder" if len(deletable) == 1 else "files and folders"
    console.out.print(f"would delete {len(deletable)} {what} ({size:.1f} MB) and compact the stores")
